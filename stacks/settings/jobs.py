"""What members' jobs may contain, and how long they may hold on to what they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field

from components.queueing.fault_tolerance import DEFAULTS
from components.tenancy.job_bounds import JobBounds
from components.tenancy.pod_templates import COUNTED
from components.tenancy.wrapped_kinds import FURTHER_KINDS, REFUSED_KINDS, WRAPPED_KINDS
from components.workloads.submission import WARM_UP_SECONDS
from stacks.errors import ConfigError, Path, listed, nearest
from stacks.settings.model import SettingsModel

_DAY: Final = 24 * 3600
"""AppWrapper's own ceiling of every grace (gracePeriodCeiling)."""
_DANGEROUS: Final = {
    "rbac.authorization.k8s.io": "it would give its author any permission",
    "admissionregistration.k8s.io": "it would judge everybody's requests",
    "apiextensions.k8s.io": "it would change what kinds of objects there are",
    "certificates.k8s.io": "it would let its author sign in as somebody else",
    "kueue.x-k8s.io": "it would change quotas",
    "networking.k8s.io": "it would change who reaches whom",
    "policy": "it would hold back the loss of pods on other teams' nodes",
    "scheduling.k8s.io": "it would change which pods give way to others",
    "storage.k8s.io": "it would change the cluster's storage",
    "workload.codeflare.dev": "AppWrapper refuses AppWrappers in AppWrappers",
}
"""Why no setting lets AppWrappers contain kinds of an API group."""
_DANGEROUS_CORE: Final = ("LimitRange", "Namespace", "Node", "PersistentVolume", "ResourceQuota", "ServiceAccount")
_UNCOUNTED: Final = (
    "DaemonSet",
    "CronJob",
    "ReplicaSet",
    "ReplicationController",
    "RayService",
    "MPIJob",
    "TFJob",
    "TrainJob",
)

_OWN: Final = "AppWrapper itself gives a job that asks for nothing"

Grace = Annotated[int, Field(ge=0, le=_DAY)]


class JobsSettings(SettingsModel):
    """Bounds of the jobs that teams' members submit.

    Members change AppWrapper's fault tolerance by annotations of their jobs. What is more than these bounds is refused.
    """

    wrapped_kinds: tuple[str, ...] = ()
    """Kinds that AppWrappers may contain beside the usual ones (pods, services, configuration, Jobs, JobSets,
    PyTorchJobs, Ray clusters and jobs, pod groups), such as `apps/v1/Deployment`.
    """
    admission_grace_seconds: Grace = JobBounds.admission_grace
    """Most seconds that a job may wait for all of its pods to be created."""
    warmup_grace_seconds: Grace = JobBounds.warmup_grace
    """Most seconds that a job may wait for all of its pods to run."""
    failure_grace_seconds: Grace = JobBounds.failure_grace
    """Most seconds that a job may wait for a failed pod to be replaced."""
    retry_pause_seconds: Grace = JobBounds.retry_pause
    """Most seconds that a job may wait before it is started again; it keeps its quota."""
    retries: Annotated[int, Field(ge=0, le=1000)] = JobBounds.retries
    """How many times a job may be started again at most."""
    failed_grace_seconds: Grace = JobBounds.failed_grace
    """Most seconds that a failed job's pods may stay, to be looked into; it keeps its quota unless others want it."""
    forced_deletion_grace_seconds: Grace = JobBounds.forced_deletion_grace
    """After how many seconds the pods of a job that was told to go are killed: the default for each job, and the most
    that one may ask for. An owner waits about as long, at most, for what others borrowed.
    """

    def bounds(self) -> JobBounds:
        """Return the bounds as the policy and AppWrapper's configuration have them."""
        return JobBounds(
            admission_grace=self.admission_grace_seconds,
            warmup_grace=self.warmup_grace_seconds,
            failure_grace=self.failure_grace_seconds,
            retry_pause=self.retry_pause_seconds,
            retries=self.retries,
            failed_grace=self.failed_grace_seconds,
            forced_deletion_grace=self.forced_deletion_grace_seconds,
        )

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the kinds to those that there are, and the bounds to what jobs get that ask for nothing."""
        for position, kind in enumerate(self.wrapped_kinds):
            yield from _kind((*path, "wrappedKinds", position), kind, self.wrapped_kinds[:position])
        least = (
            ("admissionGraceSeconds", self.admission_grace_seconds, DEFAULTS.admission_grace, _OWN),
            ("warmupGraceSeconds", self.warmup_grace_seconds, WARM_UP_SECONDS, "the platform's own jobs ask for"),
            ("failureGraceSeconds", self.failure_grace_seconds, DEFAULTS.failure_grace, _OWN),
            ("retries", self.retries, DEFAULTS.retries, _OWN),
        )
        for name, value, smallest, why in least:
            if value < smallest:
                unit = "" if name == "retries" else " seconds"
                yield ConfigError(
                    path=(*path, name),
                    value=value,
                    message=f"{why} {smallest}{unit}",
                    expected=f"at least {smallest}",
                    hint=f"write {smallest} or more, or leave it out",
                )


def _kind(path: Path, kind: str, before: tuple[str, ...]) -> Iterator[ConfigError]:
    known = [*FURTHER_KINDS, *WRAPPED_KINDS]
    expected = listed(FURTHER_KINDS)
    hint = "remove the entry"
    version, _, name = kind.rpartition("/")
    group = version.rpartition("/")[0]
    if kind in WRAPPED_KINDS:
        message = "AppWrappers may contain this kind anyway"
    elif kind in before:
        message = "this kind is there already"
    elif kind in FURTHER_KINDS:
        return
    elif kind in REFUSED_KINDS:
        message = REFUSED_KINDS[kind]
    elif group in _DANGEROUS or (not group and name in _DANGEROUS_CORE):
        message = f"no AppWrapper may contain this kind: {_DANGEROUS.get(group, 'it is the administrators')}"
    elif version and (name in _UNCOUNTED or name in {each.rpartition("/")[2] for each in COUNTED}):
        message = "AppWrapper does not count the pods of this kind, which would run beside the quota"
    else:
        message = "there is no such kind, or none that AppWrapper may create and counts the pods of"
        meant = nearest(kind, known)
        hint = f"did you mean {meant}?" if meant else hint
    yield ConfigError(path=path, value=kind, message=message, expected=expected, hint=hint)
