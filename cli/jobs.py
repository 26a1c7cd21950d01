"""`mlbatch jobs`: print a batch job with the settings of a stack."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.ending import FINE, failed
from stacks.config import stack_file
from stacks.config.errors import SettingsError
from stacks.job_manifests import change, manifest


def run(job: str, stack: str, settings: Sequence[str], submission: Mapping[str, str | None]) -> int:
    """Print the job's manifest. Return the exit code, 2 if the settings are invalid."""
    try:
        changes = dict(change(each) for each in settings)
        raw = stack_file.configuration(stack, Path.cwd())
        print(manifest(raw, job, changes, submission), end="")
    except (SettingsError, OSError, ValueError) as error:
        return failed(error)
    return FINE
