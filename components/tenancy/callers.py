"""Who sends a request, in CEL: people, or the controllers that make of a job what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from components import names
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

    counts_ray: this Kueue counts all pods of Ray's kinds: each host of a worker group, and what submits a RayJob, as it
    does from 0.10 on.
    """

    kueue: str = KUEUE
    appwrapper: str = APPWRAPPER
    counts_ray: bool = True

    @property
    def is_one(self) -> str:
        """CEL of whether one of them sends the request."""
        return f"(request.userInfo.username in {words((self.kueue, self.appwrapper))})"


IS_PERSON: Final = (
    "(!request.userInfo.username.startsWith('system:') || "
    "request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':'))"
)
"""Everybody but controllers: Kubernetes' own, and service accounts of other namespaces, as operators have them. A
service account of the team's own namespace is the team, which runs pods with it."""
