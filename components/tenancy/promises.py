"""What a team is promised by admission, by names that settings and messages use."""

from __future__ import annotations

from enum import StrEnum


class Promise(StrEnum):
    """A promise that one admission policy keeps, which is named after it: without the API it does not hold."""

    POD_ISOLATION = "pod-isolation"
    """A pod has no rights on its node."""
    SERVICE_EXPOSURE = "service-exposure"
    """A team's services are reached from the cluster alone."""
    WRAPPED_KINDS = "wrapped-kinds"
    """AppWrappers contain kinds that the platform counts, and no rights."""
    QUOTA_GATE = "quota-gate"
    """A job starts when its queue admits it, and grows no more."""
    TRAIN_JOBS = "train-jobs"
    """A TrainJob runs what the platform's runtimes say, with fields that its queue counts."""
    USER_QUEUES = "user-queues"
    """Where users of a team have queues of their own, a user's jobs go through the user's own queue."""
    JOB_BOUNDS = "job-bounds"
    """A job holds its quota through failures and evictions for a bounded time, and has a bounded size."""
    PROMPT_DELETION = "prompt-deletion"
    """Nothing of a job outlives it, so that what it had can be given to others."""

    OWN_VOLUMES = "own-volumes"
    """A team's claims take no volume that was made for somebody else."""
    NO_LASTING_TOKENS = "no-lasting-tokens"
    """Nobody makes a token of a team's service accounts that lasts when its author has left the team."""
    APPWRAPPER_SCOPE = "appwrapper-scope"
    """AppWrapper, whoever has taken it over, acts in teams' namespaces alone."""
    KUEUE_SCOPE = "kueue-scope"
    """Kueue, whoever has taken it over, acts on its queues and in teams' namespaces alone."""
    JOB_OPERATOR_SCOPE = "job-operator-scope"
    """The operators of jobs, whoever has taken them over, act in teams' namespaces alone."""
    LENDING_SCOPE = "lending-scope"
    """The slack controller, whoever has taken it over, changes what queues lend and nothing else."""

    @classmethod
    def of_operators(cls) -> tuple[Promise, ...]:
        """Return those about the operators of jobs that the platform itself installs."""
        return cls.APPWRAPPER_SCOPE, cls.KUEUE_SCOPE, cls.JOB_OPERATOR_SCOPE

    @property
    def policy(self) -> str:
        """Name of the admission policy that keeps it."""
        return f"mlbatch-team-{self}"
