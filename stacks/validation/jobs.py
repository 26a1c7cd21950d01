"""Bounds of members' jobs against what the platform itself gives a job time for."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.errors import ConfigError, key
from stacks.partial import PartialSettings
from stacks.settings.recovery import RecoverySettings
from stacks.settings.tenancy import TenancySettings


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield the bounds that would forbid what jobs get that ask for nothing, or that Kueue would cut short."""
    tenancy, recovery = partial.section(TenancySettings), partial.section(RecoverySettings)
    if tenancy is None or recovery is None:
        return
    jobs, pause = tenancy.jobs, recovery.retry_pause_seconds
    if jobs.retry_pause_seconds < pause:
        yield ConfigError(
            path=("tenancy", "jobs", "retryPauseSeconds"),
            value=jobs.retry_pause_seconds,
            message=f"AppWrapper itself gives a job that asks for nothing {pause} seconds "
            f"({key(('recovery', 'retryPauseSeconds'))})",
            expected=f"at least {pause}",
            hint=f"raise it, or lower {key(('recovery', 'retryPauseSeconds'))}",
        )
    timeout = recovery.start_timeout_minutes * 60
    if jobs.warmup_grace_seconds >= timeout:
        yield ConfigError(
            path=("tenancy", "jobs", "warmupGraceSeconds"),
            value=jobs.warmup_grace_seconds,
            message=f"Kueue queues a job anew whose pods do not all run after {timeout} seconds "
            f"({key(('recovery', 'startTimeoutMinutes'))})",
            expected=f"less than {timeout}",
            hint=f"lower it, or raise {key(('recovery', 'startTimeoutMinutes'))}",
        )
