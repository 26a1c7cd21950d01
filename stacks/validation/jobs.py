"""Checks the bounds of members' jobs against the platform's own timeouts."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.errors import ConfigError, key
from stacks.derived.partial import PartialSettings
from stacks.settings.recovery import RecoverySettings
from stacks.settings.tenancy import TenancySettings
from stacks.validation import network


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield bounds that AppWrapper's defaults violate, or that exceed Kueue's timeout."""
    tenancy, recovery = partial.section(TenancySettings), partial.section(RecoverySettings)
    if tenancy is None or recovery is None:
        return
    jobs, pause, timeout = tenancy.jobs, recovery.retry_pause_seconds, recovery.start_timeout_minutes * 60
    if jobs.retry_pause_seconds < pause:
        yield _conflict(
            ("retryPauseSeconds", jobs.retry_pause_seconds),
            "retryPauseSeconds",
            message=f"AppWrapper's default for a job is {pause} seconds",
            expected=f"at least {pause}",
            hint="raise it, or lower",
        )
    if jobs.warmup_grace_seconds >= timeout:
        yield _conflict(
            ("warmupGraceSeconds", jobs.warmup_grace_seconds),
            "startTimeoutMinutes",
            message=f"Kueue requeues a job whose pods do not all run after {timeout} seconds",
            expected=f"less than {timeout}",
            hint="lower it, or raise",
        )


def _conflict(bound: tuple[str, int], recovery: str, *, message: str, expected: str, hint: str) -> ConfigError:
    """Return the error of a bound that conflicts with a key of mlbatch:recovery. Message and hint end with that key."""
    name, value = bound
    other = key(("recovery", recovery))
    return ConfigError(
        path=("tenancy", "jobs", name),
        value=value,
        message=f"{message} ({other})",
        expected=expected,
        hint=f"{hint} {other}",
    )


def warnings(partial: PartialSettings) -> list[str]:
    """Return warnings about bounds that no job can reach."""
    tenancy, recovery = partial.section(TenancySettings), partial.section(RecoverySettings)
    if tenancy is None or recovery is None or not network.has_teams(partial):
        return []
    pause, grace = tenancy.jobs.retry_pause_seconds, tenancy.longest_grace_seconds
    if recovery.recovery_timeout_seconds >= pause + grace:
        return []
    said = (
        f"{key(('recovery', 'recoveryTimeoutSeconds'))} is {recovery.recovery_timeout_seconds}. A job is requeued "
        f"before it restarts if its pods take {grace} seconds to end ({key(('tenancy', 'longestGraceSeconds'))}) and "
        f"it asks for a pause of {pause} ({key(('tenancy', 'jobs', 'retryPauseSeconds'))})"
    )
    return [said]
