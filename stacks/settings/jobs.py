"""Limits for the contents and timeouts of members' jobs."""

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field

from components.queueing.fault_tolerance import DEFAULTS
from components.tenancy.job_bounds import JobBounds
from components.tenancy.pod_templates import COUNTED
from components.tenancy.wrapped_kinds import FURTHER_KINDS, REFUSED_KINDS, WRAPPED_KINDS
from components.workloads.submission import WARM_UP_SECONDS
from stacks.config.errors import ConfigError, Path, instead, listed
from stacks.settings.model import SettingsModel

_DAY: Final = 24 * 3600
"""AppWrapper's own ceiling of every grace (gracePeriodCeiling)."""
_DANGEROUS: Final = {
    "rbac.authorization.k8s.io": "its author could get any permission",
    "admissionregistration.k8s.io": "it could control all requests to the API server",
    "apiextensions.k8s.io": "it could change the cluster's kinds of objects",
    "certificates.k8s.io": "its author could sign in as another user",
    "kueue.x-k8s.io": "it could change quotas",
    "networking.k8s.io": "it could change network access",
    "policy": "it could block evictions on other teams' nodes",
    "scheduling.k8s.io": "it could change which pods are preempted",
    "storage.k8s.io": "it could change the cluster's storage",
    "workload.codeflare.dev": "AppWrapper rejects nested AppWrappers",
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

_OWN: Final = "AppWrapper's default for a job is"

Grace = Annotated[int, Field(ge=0, le=_DAY)]


class JobsSettings(SettingsModel):
    """Limits for members' jobs.

    Members set AppWrapper's fault tolerance by annotations. The platform refuses a job that exceeds these limits.
    """

    wrapped_kinds: tuple[str, ...] = ()
    """More kinds to allow in AppWrappers, such as `apps/v1/Deployment`. Pods, Services, configuration, Jobs, JobSets,
    PyTorchJobs, RayClusters, RayJobs and PodGroups are always allowed.
    """
    admission_grace_seconds: Grace = JobBounds.admission_grace
    """Maximum seconds until all pods of a job are created."""
    warmup_grace_seconds: Grace = JobBounds.warmup_grace
    """Maximum seconds until all pods of a job run."""
    failure_grace_seconds: Grace = JobBounds.failure_grace
    """Maximum seconds until a failed pod is replaced."""
    retry_pause_seconds: Grace = JobBounds.retry_pause
    """Maximum seconds between two attempts of a job. It keeps its quota meanwhile."""
    retries: Annotated[int, Field(ge=0, le=1000)] = JobBounds.retries
    """Maximum number of restarts of a job."""
    failed_grace_seconds: Grace = JobBounds.failed_grace
    """Maximum seconds that the pods of a failed job remain for inspection. The job keeps its quota until another job
    needs it.
    """
    forced_deletion_grace_seconds: Grace = JobBounds.forced_deletion_grace
    """Seconds after which the pods of a deleted or evicted job are killed. This is the default and the maximum. The
    owner of borrowed quota waits about this long at most.
    """

    def bounds(self) -> JobBounds:
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
        for position, kind in enumerate(self.wrapped_kinds):
            yield from _kind((*path, "wrappedKinds", position), kind, self.wrapped_kinds[:position])
        least = (
            ("admissionGraceSeconds", self.admission_grace_seconds, DEFAULTS.admission_grace, _OWN),
            ("warmupGraceSeconds", self.warmup_grace_seconds, WARM_UP_SECONDS, "the platform's own jobs need"),
            ("failureGraceSeconds", self.failure_grace_seconds, DEFAULTS.failure_grace, _OWN),
            ("retries", self.retries, DEFAULTS.retries, _OWN),
        )
        for name, value, smallest, why in least:
            if value < smallest:
                unit = "" if name == "retries" else " seconds"
                yield ConfigError(
                    (*path, name),
                    f"{why} {smallest}{unit}",
                    f"set it to {smallest} or more, or remove the key; the default is enough",
                )


def _kind(path: Path, kind: str, before: tuple[str, ...]) -> Iterator[ConfigError]:
    expected = listed(FURTHER_KINDS)
    hint = "remove the entry"
    version, _, name = kind.rpartition("/")
    group = version.rpartition("/")[0]
    if kind in WRAPPED_KINDS:
        message = "AppWrappers may already contain this kind"
    elif kind in before:
        message = "duplicate kind"
    elif kind in FURTHER_KINDS:
        return
    elif kind in REFUSED_KINDS:
        message = REFUSED_KINDS[kind]
    elif group in _DANGEROUS or (not group and name in _DANGEROUS_CORE):
        message = f"AppWrappers cannot contain this kind: {_DANGEROUS.get(group, 'only administrators create it')}"
    elif version and (name in _UNCOUNTED or name in {each.rpartition("/")[2] for each in COUNTED}):
        message = "AppWrapper does not count the pods of this kind, so they would bypass the quota"
    else:
        message = "unknown kind, or a kind that AppWrapper cannot create or count"
        hint = instead(kind, [*FURTHER_KINDS, *WRAPPED_KINDS], hint)
    yield ConfigError(path, message, hint, expected=expected)
