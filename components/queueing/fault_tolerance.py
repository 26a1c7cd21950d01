"""How AppWrapper handles jobs that fail, are deleted or have completed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, kw_only=True)
class FaultTolerance:
    """The values for jobs that set none, in seconds except `retries`.

    The defaults are AppWrapper's (v1.2.2, `pkg/config/config.go`).
    admission_grace: until all pods of a job exist.
    warmup_grace: until all pods run.
    failure_grace: until a failed pod is replaced.
    retry_pause: between attempts.
    retries: number of attempts after the first one.
    forced_deletion_grace: from the deletion of pods until they are killed.
    grace_ceiling: the most that a job may set for any of these.
    """

    admission_grace: int = 60
    warmup_grace: int = 5 * 60
    failure_grace: int = 60
    retry_pause: int = 90
    retries: int = 3
    forced_deletion_grace: int = 10 * 60
    grace_ceiling: int = 24 * 3600

    def body(self) -> Mapping[str, Any]:
        """Return it with AppWrapper's field names. Durations are nanoseconds."""
        return {
            "admissionGracePeriod": _nanoseconds(self.admission_grace),
            "warmupGracePeriod": _nanoseconds(self.warmup_grace),
            "failureGracePeriod": _nanoseconds(self.failure_grace),
            "resetPause": _nanoseconds(self.retry_pause),
            "retryLimit": self.retries,
            "deletionGracePeriod": _nanoseconds(self.forced_deletion_grace),
            "gracePeriodCeiling": _nanoseconds(self.grace_ceiling),
        }


DEFAULTS: Final = FaultTolerance()


def _nanoseconds(seconds: int) -> int:
    return seconds * 10**9
