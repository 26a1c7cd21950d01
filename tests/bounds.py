"""Longest time that a team may have less than its quota after it lost a node: the sum in docs/recovery.md."""

from typing import Final

from components.queueing.fault_tolerance import DEFAULTS
from components.queueing.kueue import BACKOFF_SECONDS

LOOK: Final = 60
"""Seconds between two checks by AppWrapper of a job whose pods all run (v1.2.2,
`internal/controller/appwrapper/appwrapper_controller.go`, Reconcile).
"""
GRACE: Final = DEFAULTS.failure_grace
"""Seconds that AppWrapper waits for failed pods to be replaced, by default."""
REQUEUE: Final = BACKOFF_SECONDS[0]
"""Seconds until Kueue requeues a job after its first eviction."""
END: Final = 30
"""Seconds that a borrower's pods get to end, Kubernetes' own terminationGracePeriodSeconds."""
REST: Final = 30
"""Seconds for all that controllers do in between: limits, eviction, admission, binding."""


def recovery(timeout: int, failure_grace: int = GRACE) -> int:
    """Return the bound, in seconds. timeout: `mlbatch:recovery.recoveryTimeoutSeconds`. failure_grace: the job's."""
    return LOOK + failure_grace + timeout + REQUEUE + END + REST
