"""How long, and how often, a job that fails or is told to go may hold on to its quota, and how large it is.

AppWrapper lets its author decide by annotations, each up to one day (v1.2.2, `api/v1beta2/appwrapper_types.go` and
`internal/controller/appwrapper`). The defaults of what is not annotated are AppWrapper's configuration. The size of all
that members write is bounded too. All teams share the API server's store, which keeps each version of an object for
five to ten minutes. An object that leaves no room for its own status makes its controller repeat what it did:
AppWrapper then creates one more job with each attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from components.kubernetes.admission import AdmissionPolicy, Requests, Validation
from components.tenancy import growing_jobs
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.callers import IS_PERSON
from components.tenancy.promises import Promise
from components.tenancy.quota_gate import JOBS

_PREFIX: Final = "workload.codeflare.dev.appwrapper/"
_FORCED: Final = f"{_PREFIX}forcefulDeletionGracePeriodDuration"
_DURATION: Final = "^([0-9]{1,6}([.][0-9]{1,6})?(h|m|s|ms))+$"
"""Go's durations (time.ParseDuration), without a sign and what is shorter than milliseconds."""

SIZE: Final = 256 * 1024
"""Most bytes of an object, as CEL writes it, without what the API server itself adds. A request has at most 1.5 MiB."""


@dataclass(frozen=True, kw_only=True)
class JobBounds:
    """The most that a job may ask for, in seconds but for retries, which are a number.

    admission_grace: for all of its pods to be there. warmup_grace: for all of them to run.
    failure_grace: for a failed pod to be replaced. retry_pause: between attempts. retries: attempts after the first.
    failed_grace: a failed job's pods are left there for, to look into. forced_deletion_grace: pods that are told to go
    get before they are killed.
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
        """The longest of all, in seconds."""
        return max(seconds for _, seconds in self.annotated())

    def annotated(self) -> Iterator[tuple[str, int]]:
        """Yield the annotations that have a duration, with its bound."""
        yield f"{_PREFIX}admissionGracePeriodDuration", self.admission_grace
        yield f"{_PREFIX}warmupGracePeriodDuration", self.warmup_grace
        yield f"{_PREFIX}failureGracePeriodDuration", self.failure_grace
        yield f"{_PREFIX}retryPausePeriodDuration", self.retry_pause
        yield f"{_PREFIX}deletionOnFailureGracePeriodDuration", self.failed_grace
        yield _FORCED, self.forced_deletion_grace


_BESIDE_JOBS: Final = ("configmaps", "persistentvolumeclaims", "secrets", "services")
_CONTENT: Final = ("spec", "data", "binaryData")
_METADATA: Final = (("labels", "{}"), ("annotations", "{}"), ("ownerReferences", "[]"), ("managedFields", "[]"))


def _written(item: str) -> str:
    """Return CEL of the bytes of an object that people write."""
    fields = [f"{item}.?{field}.orValue({{}})" for field in _CONTENT]
    fields += [f"{item}.metadata.?{field}.orValue({empty})" for field, empty in _METADATA]
    return f"bytes('{'%s' * len(fields)}'.format([{', '.join(fields)}])).size()"


_SIZE: Final = Validation(
    expression=f"!{IS_PERSON} || {_written('object')} <= {SIZE} || "
    f"(oldObject != null && {_written('object')} <= {_written('oldObject')})",
    message=f"an object has at most {SIZE // 1024} KiB, labels and annotations included: keep large files in a volume",
)


def policy(bounds: JobBounds, longest_grace: int) -> AdmissionPolicy:
    """Return the policy. A job keeps what it was submitted with, though the bounds have changed since.

    longest_grace: seconds that a pod may take to end. AppWrapper then deletes it from the API server, though its
    containers still run: quota that is given back earlier is not free.
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
            "before": "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})",
            "changed": "variables.annotations.filter(key, variables.annotations[?key] != variables.before[?key])",
        },
        validations=[
            *(
                _duration(name, seconds, longest_grace if name == _FORCED else 0)
                for name, seconds in bounds.annotated()
            ),
            _retries(bounds.retries),
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


def spoken(seconds: int) -> str:
    """Return seconds as Go writes a duration in its largest whole unit, such as 5m."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
