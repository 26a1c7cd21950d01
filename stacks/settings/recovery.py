"""How long things may take that have to work again after a node is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from components.queueing.fault_tolerance import DEFAULTS
from components.workloads.submission import WARM_UP_SECONDS
from stacks.errors import ConfigError, Path, key
from stacks.settings.model import SettingsModel


class RecoverySettings(SettingsModel):
    """How long things may take that have to work again after nodes are lost.

    A job whose pods do not run is queued again and takes its team's quota back from those who borrow it; nobody else is
    evicted.
    """

    retry_pause_seconds: Annotated[int, Field(ge=1, le=3600)] = DEFAULTS.retry_pause
    """Seconds for which AppWrapper waits before it makes the pods of a job anew."""
    recovery_timeout_seconds: Annotated[int, Field(ge=10, le=24 * 3600)] = 300
    """Seconds after which a job whose pods have gone, and are not all back, is queued again. More than the pause by as
    much as pods need to end and to start, an image that is not on the new node included.
    """
    start_timeout_minutes: Annotated[int, Field(ge=WARM_UP_SECONDS // 60 + 1, le=24 * 60)] = 35
    """Minutes after which a job that was admitted, and whose pods have never all run, is queued again. More than any
    job may warm up: those of the platform's workloads may for 30 minutes.
    """
    health_seconds: Annotated[int, Field(ge=0, le=24 * 3600)] = 300
    """Seconds for which a node that was cordoned, not ready or sick has to be well before its GPUs are lent again. What
    is lost counts at once.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Let AppWrapper try again before Kueue takes the quota away."""
        if self.recovery_timeout_seconds <= self.retry_pause_seconds:
            pause = key((*path, "retryPauseSeconds"))
            yield ConfigError(
                path=(*path, "recoveryTimeoutSeconds"),
                value=self.recovery_timeout_seconds,
                message="a job would be queued again before AppWrapper has made its pods anew, which takes "
                f"{self.retry_pause_seconds} seconds and more",
                expected=f"more than {pause}, by what pods need to end and to start",
                hint=f"set it to {self.retry_pause_seconds + 60} or more, or lower {pause}",
            )
