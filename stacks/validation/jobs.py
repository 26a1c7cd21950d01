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
    jobs, pause, timeout = tenancy.jobs, recovery.retry_pause_seconds, recovery.start_timeout_minutes * 60
    if jobs.retry_pause_seconds < pause:
        yield _conflict(
            ("retryPauseSeconds", jobs.retry_pause_seconds),
            "retryPauseSeconds",
            message=f"AppWrapper itself gives a job that asks for nothing {pause} seconds",
            expected=f"at least {pause}",
            hint="raise it, or lower",
        )
    if jobs.warmup_grace_seconds >= timeout:
        yield _conflict(
            ("warmupGraceSeconds", jobs.warmup_grace_seconds),
            "startTimeoutMinutes",
            message=f"Kueue queues a job anew whose pods do not all run after {timeout} seconds",
            expected=f"less than {timeout}",
            hint="lower it, or raise",
        )


def _conflict(bound: tuple[str, int], recovery: str, *, message: str, expected: str, hint: str) -> ConfigError:
    """Return the error of a bound that does not go with a key of mlbatch:recovery, which message and hint name last."""
    name, value = bound
    other = key(("recovery", recovery))
    return ConfigError(
        path=("tenancy", "jobs", name),
        value=value,
        message=f"{message} ({other})",
        expected=expected,
        hint=f"{hint} {other}",
    )
