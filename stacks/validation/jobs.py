"""Checks the bounds of members' jobs against the platform's own timeouts."""

from collections.abc import Iterator

from stacks.config.errors import ConfigError
from stacks.derived.partial import PartialSettings
from stacks.settings.recovery import RecoverySettings
from stacks.settings.tenancy import TenancySettings
from stacks.validation import network


def check(partial: PartialSettings, tenancy: TenancySettings, recovery: RecoverySettings) -> Iterator[ConfigError]:
    """Yield bounds that AppWrapper's defaults violate, or that exceed Kueue's timeout."""
    jobs, pause, timeout = tenancy.jobs, recovery.retry_pause_seconds, recovery.start_timeout_minutes * 60
    if jobs.retry_pause_seconds < pause:
        yield ConfigError(
            ("tenancy", "jobs", "retryPauseSeconds"),
            f"AppWrapper's default for a job is {pause} seconds (mlbatch:recovery.retryPauseSeconds)",
            "raise it, or lower mlbatch:recovery.retryPauseSeconds",
            expected=f"at least {pause}",
        )
    if jobs.warmup_grace_seconds >= timeout:
        yield ConfigError(
            ("tenancy", "jobs", "warmupGraceSeconds"),
            f"Kueue requeues a job whose pods do not all run after {timeout} seconds "
            "(mlbatch:recovery.startTimeoutMinutes)",
            "lower it, or raise mlbatch:recovery.startTimeoutMinutes",
            expected=f"less than {timeout}",
        )


def warnings(partial: PartialSettings, tenancy: TenancySettings, recovery: RecoverySettings) -> list[str]:
    """Return warnings about bounds that no job can reach."""
    if not network.has_teams(partial):
        return []
    pause, grace = tenancy.jobs.retry_pause_seconds, tenancy.longest_grace_seconds
    if recovery.recovery_timeout_seconds >= pause + grace:
        return []
    said = (
        f"mlbatch:recovery.recoveryTimeoutSeconds is {recovery.recovery_timeout_seconds}. A job is requeued "
        f"before it restarts if its pods take {grace} seconds to end (mlbatch:tenancy.longestGraceSeconds) and "
        f"it asks for a pause of {pause} (mlbatch:tenancy.jobs.retryPauseSeconds)"
    )
    return [said]
