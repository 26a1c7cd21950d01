"""How AppWrapper treats jobs that fail, are told to go, or have ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, kw_only=True)
class FaultTolerance:
    """What jobs get that ask for nothing, in seconds but for retries, which are a number.

    The values are AppWrapper's own (v1.2.2, `pkg/config/config.go`).
    admission_grace: for all pods of a job to be there. warmup_grace: for all of them to run.
    failure_grace: for a failed pod to be replaced. retry_pause: between attempts. retries: attempts after the first.
    forced_deletion_grace: for pods that are told to go, before they are killed.
    grace_ceiling: the most that a job may ask for of any of these.
    """

    admission_grace: int = 60
    warmup_grace: int = 5 * 60
    failure_grace: int = 60
    retry_pause: int = 90
    retries: int = 3
    forced_deletion_grace: int = 10 * 60
    grace_ceiling: int = 24 * 3600

    def body(self) -> Mapping[str, Any]:
        """Return it in AppWrapper's words, which are not those of its fields; durations are nanoseconds."""
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
