"""Bounds on how long and how often a failed or deleted job may keep its quota, and on its size.

AppWrapper reads these values from annotations of the job, each up to one day (v1.2.2, `api/v1beta2/appwrapper_types.go`
and `internal/controller/appwrapper`). Without an annotation, AppWrapper's configuration applies. The size of all
objects that members write has a bound too. All teams share the API server's store, which keeps each version of an
object for five to ten minutes. If an object leaves no room for its own status, its controller repeats its last step.
AppWrapper then creates one more job with each attempt.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, json_size, words, written
from components.tenancy import growing_jobs
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.callers import IS_PERSON
from components.tenancy.promises import Promise
from components.tenancy.quota_gate import JOBS

_PREFIX: Final = "workload.codeflare.dev.appwrapper/"
_FORCED: Final = f"{_PREFIX}forcefulDeletionGracePeriodDuration"
_FAILED: Final = f"{_PREFIX}deletionOnFailureGracePeriodDuration"
_DURATION: Final = "^([0-9]{1,6}([.][0-9]{1,6})?(h|m|s|ms))+$"
"""Go's durations (time.ParseDuration), without a sign and without units below milliseconds."""

SIZE: Final = 64 * 1024
"""The most bytes of a job or other object as JSON, without what the API server adds. AppWrapper and Kueue keep all jobs
in memory. The jobs of the platform and of `examples` have at most 3.2 KiB, 7 KiB with the copy of `kubectl apply`."""
FILE_SIZE: Final = 256 * 1024
"""The same for ConfigMaps and Secrets. A request has at most 1.5 MiB."""
_FILES: Final = ("configmaps", "secrets")


@dataclass(frozen=True, kw_only=True)
class JobBounds:
    """The largest values that a job may set. All are seconds, except `retries`.

    admission_grace: until all pods exist.
    warmup_grace: until all pods run.
    failure_grace: until a failed pod is replaced.
    retry_pause: between attempts.
    retries: number of attempts after the first one.
    failed_grace: how long the pods of a failed job are kept for inspection.
    forced_deletion_grace: from the deletion of pods until they are killed.
    """

    admission_grace: int = 10 * 60
    warmup_grace: int = 30 * 60
    failure_grace: int = 10 * 60
    retry_pause: int = 3 * 60
    retries: int = 10
    failed_grace: int = 60 * 60
    forced_deletion_grace: int = 2 * 60

    @property
    def longest(self) -> int:
        """The largest of all durations, in seconds."""
        return max(seconds for _, seconds in self.annotated())

    def annotated(self) -> Iterator[tuple[str, int]]:
        """Yield the annotations that contain a duration, each with its bound in seconds."""
        yield f"{_PREFIX}admissionGracePeriodDuration", self.admission_grace
        yield f"{_PREFIX}warmupGracePeriodDuration", self.warmup_grace
        yield f"{_PREFIX}failureGracePeriodDuration", self.failure_grace
        yield f"{_PREFIX}retryPausePeriodDuration", self.retry_pause
        yield _FAILED, self.failed_grace
        yield _FORCED, self.forced_deletion_grace


_BESIDE_JOBS: Final = ("persistentvolumeclaims", "services", *_FILES)


def _size(item: str) -> str:
    """Return CEL of the number of bytes of an object that people write."""
    metadata = {"labels": "{}", "annotations": "{}", "ownerReferences": "[]", "managedFields": "[]"}
    return json_size(written(item, metadata))


_SIZE: Final = Validation(
    expression=f"!{IS_PERSON} || "
    f"variables.size <= (request.resource.resource in {words(_FILES)} ? {FILE_SIZE} : {SIZE}) || "
    "(oldObject != null && variables.size <= variables.sizeBefore)",
    message=f"an object has at most {SIZE // 1024} KiB, and a ConfigMap or Secret {FILE_SIZE // 1024} KiB, labels and "
    "annotations included, and 6 bytes for each <, > and &: keep programs in a ConfigMap beside the job, and large "
    "files in a volume",
)


def policy(bounds: JobBounds, longest_grace: int) -> AdmissionPolicy:
    """Return the policy. A job keeps its values when the bounds change after its submission.

    longest_grace: seconds that a pod may take to end. When this time is over, AppWrapper deletes the pod from the API
    server, even if its containers still run. Quota that is returned earlier is not free.
    """
    return AdmissionPolicy(
        name=Promise.JOB_BOUNDS.policy,
        requests=[
            *(Requests(group=group, resources=resources) for group, resources in JOBS),
            Requests(group="scheduling.x-k8s.io", resources=["podgroups"]),
            Requests(group="", resources=_BESIDE_JOBS),
        ],
        namespaces=TEAM_NAMESPACES,
        variables={
            "annotations": "object.metadata.?annotations.orValue({})",
            "size": _size("object"),
            "sizeBefore": _size("oldObject"),
            "before": "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})",
            "changed": "variables.annotations.filter(key, variables.annotations[?key] != variables.before[?key])",
        },
        validations=[
            *(
                _duration(name, seconds, longest_grace if name == _FORCED else 0)
                for name, seconds in bounds.annotated()
            ),
            Validation(
                expression=f"oldObject == null || variables.annotations[?'{_FAILED}'] == "
                f"variables.before[?'{_FAILED}']",
                message=f"{_FAILED} is not changed: AppWrapper would keep a failed job for this time again",
            ),
            _retries(bounds.retries),
            *map(_exit_codes, ("terminalExitCodes", "retryableExitCodes")),
            *(
                rule.validation("object", "request.resource.resource != 'podgroups' || ({rule})")
                for rule in growing_jobs.POD_GROUP
            ),
            _SIZE,
        ],
    )


def _duration(annotation: str, most: int, least: int) -> Validation:
    value = f"variables.annotations['{annotation}']"
    is_long = f" && duration({value}) >= duration('{least}s')" if least else ""
    return Validation(
        expression=f"!('{annotation}' in variables.changed) || "
        f"({value}.matches('{_DURATION}') && duration({value}) <= duration('{most}s'){is_long})",
        message=f"{annotation} is a duration such as 90s or 5m, "
        + (f"of at least {spoken(least)} and " if least else "")
        + f"of at most {spoken(most)}",
    )


def _retries(most: int) -> Validation:
    name = f"{_PREFIX}retryLimit"
    value = f"variables.annotations['{name}']"
    return Validation(
        expression=f"!('{name}' in variables.changed) || ({value}.matches('^[0-9]{{1,6}}$') && int({value}) <= {most})",
        message=f"{name} is a number from 0 to {most}",
    )


def _exit_codes(annotation: str) -> Validation:
    """Return the rule for a list of exit codes. AppWrapper's only worker reads it again for each failed pod."""
    name = f"{_PREFIX}{annotation}"
    codes = "^[0-9]{1,3}(,[0-9]{1,3}){0,31}$"
    return Validation(
        expression=f"!('{name}' in variables.changed) || variables.annotations['{name}'].matches('{codes}')",
        message=f"{name} has at most 32 numbers, with commas between them",
    )


def spoken(seconds: int) -> str:
    """Return seconds as a duration of Go in its largest whole unit, such as 5m."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
