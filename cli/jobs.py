"""`mlbatch jobs`: a batch job as the settings make it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.ending import FINE, failed
from stacks.config import stack_file
from stacks.config.errors import SettingsError
from stacks.job_manifests import change, manifest


def run(job: str, stack: str, settings: Sequence[str], submission: Mapping[str, str | None]) -> int:
    """Print the job's manifest; return the exit code, 2 for settings of which no job can be made."""
    try:
        changes = dict(change(each) for each in settings)
        raw = stack_file.configuration(stack, Path.cwd())
        print(manifest(raw, job, changes, submission), end="")
    except (SettingsError, OSError, ValueError) as error:
        return failed(error)
    return FINE
