"""Names of the promises to teams that admission policies enforce, as settings and messages use them."""

from __future__ import annotations

from enum import StrEnum


class Promise(StrEnum):
    """A promise, enforced by the admission policy of this name. A cluster without this API does not enforce it."""

    POD_ISOLATION = "pod-isolation"
    """A pod has no rights on its node."""
    SERVICE_EXPOSURE = "service-exposure"
    """A team's Services are reachable only from the cluster. Only administrators open a team's network."""
    WRAPPED_KINDS = "wrapped-kinds"
    """AppWrappers contain only kinds that the platform counts, and no kinds that grant rights."""
    QUOTA_GATE = "quota-gate"
    """A job starts only when its queue admits it, and does not grow later."""
    TRAIN_JOBS = "train-jobs"
    """A TrainJob runs what the platform's runtimes define, with fields that its queue counts."""
    USER_QUEUES = "user-queues"
    """If a team's users have their own queues, a user submits jobs only to the user's own queue."""
    JOB_BOUNDS = "job-bounds"
    """A job keeps its quota through failures and evictions for a bounded time, and has a bounded size."""
    PROMPT_DELETION = "prompt-deletion"
    """All parts of a job end with it, so that its resources can be given to others."""

    OWN_VOLUMES = "own-volumes"
    """A team's PVCs do not bind volumes of other owners."""
    NO_LASTING_TOKENS = "no-lasting-tokens"
    """A member cannot create a token of a team's service account that remains valid after the member leaves the team.
    """
    APPWRAPPER_SCOPE = "appwrapper-scope"
    """AppWrapper acts only in teams' namespaces, even if an attacker controls it."""
    KUEUE_SCOPE = "kueue-scope"
    """Kueue acts only on its queues and in teams' namespaces, even if an attacker controls it."""
    JOB_OPERATOR_SCOPE = "job-operator-scope"
    """The operators of jobs act only in teams' namespaces, even if an attacker controls them."""
    LENDING_SCOPE = "lending-scope"
    """The slack controller changes only what queues lend and how jobs end, even if an attacker controls it."""

    @classmethod
    def of_operators(cls) -> tuple[Promise, ...]:
        """Return the promises about the operators of jobs that the platform installs."""
        return cls.APPWRAPPER_SCOPE, cls.KUEUE_SCOPE, cls.JOB_OPERATOR_SCOPE

    @property
    def policy(self) -> str:
        """Name of the admission policy that enforces the promise."""
        return f"mlbatch-team-{self}"
