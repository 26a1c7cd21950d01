"""The callers of the API server, in CEL: people, and the controllers that create what a job needs."""

from dataclasses import dataclass
from typing import Final

from components import names
from components.job_kinds import JOB_SET, TRAIN_JOB
from components.kubernetes.admission import words
from components.queueing import jobset, kuberay, trainer, training_operator

ACCOUNTS: Final = f"system:serviceaccount:{names.SYSTEM_NAMESPACE}"
"""Prefix of the user names of the platform's service accounts."""
APPWRAPPER: Final = f"{ACCOUNTS}:appwrapper-controller-manager"
KUEUE: Final = f"{ACCOUNTS}:kueue-controller-manager"

TRAINER: Final = f"{ACCOUNTS}:{trainer.NAME}"
JOB_OPERATORS: Final = (
    *(f"{ACCOUNTS}:{name}" for name in (jobset.NAME, kuberay.NAME, training_operator.NAME)),
    TRAINER,
)
"""Accounts that create the pods of JobSets, Ray jobs and PyTorchJobs, and the JobSets of TrainJobs."""


@dataclass(frozen=True, kw_only=True)
class Gatekeepers:
    """The accounts that start and suspend jobs. The defaults are the names in the manifests of Kueue and AppWrapper.

    trainer: starts the JobSets of TrainJobs. None if this Kueue does not queue TrainJobs.
    counts_ray: this Kueue counts all pods of Ray kinds, as Kueue does from 0.10 on. This includes each host of a worker
    group, and the pod that submits a RayJob.
    """

    kueue: str = KUEUE
    appwrapper: str = APPWRAPPER
    trainer: str | None = TRAINER
    counts_ray: bool = True

    @property
    def is_one(self) -> str:
        """CEL that is true if one of these accounts sends the request."""
        return f"(request.userInfo.username in {words((self.kueue, self.appwrapper))})"

    @property
    def makes_job_sets(self) -> str:
        """CEL that is true if Trainer sends the request for a JobSet.

        Trainer recreates the JobSet of a TrainJob, not suspended, after the TrainJob has ended. No quota counts this
        JobSet.
        """
        if self.trainer is None:
            return "false"
        return f"(request.userInfo.username == '{self.trainer}' && request.resource.resource == '{JOB_SET.plural}')"

    @property
    def follows(self) -> str:
        """CEL that is true if Trainer starts or suspends a JobSet after Kueue did so with its TrainJob."""
        if self.trainer is None:
            return "false"
        train_job = f"owner.apiVersion == '{TRAIN_JOB.api}' && owner.kind == '{TRAIN_JOB.kind}'"
        return (
            f"({self.makes_job_sets} && object.metadata.?ownerReferences.orValue([]).exists(owner, "
            f"owner.?controller.orValue(false) && {train_job}))"
        )


IS_PERSON: Final = (
    "(!request.userInfo.username.startsWith('system:') || "
    "request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':'))"
)
"""CEL that is true for all callers except controllers: those of Kubernetes, and service accounts of other namespaces,
such as those of operators. A service account of the team's namespace counts as a person, because the team runs pods
with it."""
