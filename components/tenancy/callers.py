"""Who sends a request, in CEL: people, or the controllers that make of a job what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from components import names
from components.job_kinds import JOB_SET, TRAIN_JOB
from components.kubernetes.admission import words
from components.queueing import jobset, kuberay, trainer, training_operator

ACCOUNTS: Final = f"system:serviceaccount:{names.SYSTEM_NAMESPACE}"
"""Begins the names of the platform's own accounts."""
APPWRAPPER: Final = f"{ACCOUNTS}:appwrapper-controller-manager"
KUEUE: Final = f"{ACCOUNTS}:kueue-controller-manager"

TRAINER: Final = f"{ACCOUNTS}:{trainer.NAME}"
JOB_OPERATORS: Final = (
    *(f"{ACCOUNTS}:{name}" for name in (jobset.NAME, kuberay.NAME, training_operator.NAME)),
    TRAINER,
)
"""What makes the pods of JobSets, of Ray's jobs and of PyTorchJobs, and the JobSets of TrainJobs."""


@dataclass(frozen=True, kw_only=True)
class Gatekeepers:
    """The accounts that start and suspend jobs, as the manifests of Kueue and AppWrapper name them by default.

    trainer: starts the JobSets of TrainJobs; None where this Kueue does not queue those.
    counts_ray: this Kueue counts all pods of Ray's kinds: each host of a worker group, and what submits a RayJob, as it
    does from 0.10 on.
    """

    kueue: str = KUEUE
    appwrapper: str = APPWRAPPER
    trainer: str | None = TRAINER
    counts_ray: bool = True

    @property
    def is_one(self) -> str:
        """CEL of whether one of them sends the request."""
        return f"(request.userInfo.username in {words((self.kueue, self.appwrapper))})"

    @property
    def makes_job_sets(self) -> str:
        """CEL of whether Trainer sends the request for a JobSet.

        It makes the JobSet of a TrainJob again, and started, when the TrainJob has ended and no quota counts it.
        """
        if self.trainer is None:
            return "false"
        return f"(request.userInfo.username == '{self.trainer}' && request.resource.resource == '{JOB_SET.plural}')"

    @property
    def follows(self) -> str:
        """CEL of whether Trainer starts or suspends the JobSet of a TrainJob, as Kueue has done with that."""
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
"""Everybody but controllers: Kubernetes' own, and service accounts of other namespaces, as operators have them. A
service account of the team's own namespace is the team, which runs pods with it."""
