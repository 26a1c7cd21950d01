"""How long things may take that have to work again after a node is lost."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from components.queueing.fault_tolerance import DEFAULTS
from components.workloads.submission import WARM_UP_SECONDS
from stacks.config.errors import ConfigError, Path, key
from stacks.settings.model import SettingsModel


class RepairSettings(SettingsModel):
    """Takes GPU nodes out of service when an alert or a node condition reports a broken GPU or link."""

    enabled: bool = False
    """Install the repair controller. It taints nodes, and an administrator returns them with `mlbatch repair`. Needs
    mlbatch:queueing, and mlbatch:monitoring for signals from alerts.
    """
    most_percent: Annotated[int, Field(ge=1, le=100)] = 25
    """Number of nodes that the controller may take out of service, in percent of all GPU nodes. One node is always
    allowed.
    """


class RecoverySettings(SettingsModel):
    """Timeouts after the loss of nodes.

    A job without running pods is requeued, and reclaims its team's quota from borrowers. No other job is evicted.
    """

    retry_pause_seconds: Annotated[int, Field(ge=1, le=3600)] = DEFAULTS.retry_pause
    """Seconds that AppWrapper waits before it recreates the pods of a job."""
    recovery_timeout_seconds: Annotated[int, Field(ge=10, le=24 * 3600)] = 300
    """Seconds after which a job that lost pods and does not have all of them back is requeued. Must exceed
    retryPauseSeconds by the time that pods need to end, pull the image and start.
    """
    start_timeout_minutes: Annotated[int, Field(ge=WARM_UP_SECONDS // 60 + 1, le=24 * 60)] = 35
    """Minutes after which an admitted job is requeued if its pods never all ran. Must exceed every job's warm-up, which
    is up to 30 minutes for the platform's workloads.
    """
    health_seconds: Annotated[int, Field(ge=0, le=24 * 3600)] = 300
    """Seconds that a node which was cordoned, not ready or sick must be healthy before its GPUs are lent again. A loss
    counts at once.
    """

    repair: RepairSettings = RepairSettings()

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.recovery_timeout_seconds <= self.retry_pause_seconds:
            pause = key((*path, "retryPauseSeconds"))
            yield ConfigError(
                (*path, "recoveryTimeoutSeconds"),
                "a job would be requeued before AppWrapper recreates its pods, which takes at least "
                f"{self.retry_pause_seconds} seconds",
                f"set it to {self.retry_pause_seconds + 60} or more, or lower {pause}",
            )
