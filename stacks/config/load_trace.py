"""The trace of the synthetic load, checked against the teams, nodes and queues."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from components import names
from components.workloads.synthetic import SyntheticJob
from stacks.config import trace
from stacks.config.errors import ConfigError
from stacks.config.errors import Path as KeyPath
from stacks.derived.partial import PartialSettings
from stacks.settings.mirror import resolve_path
from stacks.settings.samples import SamplesSettings, SyntheticSettings
from stacks.validation import admission

_PATH: Final[KeyPath] = ("samples", "synthetic")


def read(partial: PartialSettings, base: Path) -> tuple[Sequence[SyntheticJob], list[ConfigError]]:
    """Return the jobs, none where the load is off, and what is wrong. base: what the file's name is relative to."""
    samples = partial.section(SamplesSettings)
    load = samples.synthetic if samples is not None else None
    if load is None or not load.enabled:
        return (), []
    room, teams = None, [team.name for team in partial.known_teams]
    if partial.pool is not None and len(teams) == len(partial.team_names):
        gpus = int(str(partial.pool.shape.resources[names.GPU]))
        room = trace.Room(teams=teams, nodes=partial.pool.count, gpus=gpus)
    try:
        lines = trace.read(resolve_path(load.trace, base), room)
    except trace.TraceError as error:
        return (), [_wrong(str(error), "correct the line")]
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return (), [_wrong(f"the file cannot be read: {reason}", "name a file that exists")]
    if problem := _never_runs(partial, load, lines):
        return (), [problem]
    return trace.jobs(lines, load.name, load.time_scale), []


def _wrong(message: str, hint: str) -> ConfigError:
    expected = "a CSV file of one job a line, as docs/workloads/synthetic.md has it"
    return ConfigError((*_PATH, "trace"), message, hint, expected=expected)


def _never_runs(
    partial: PartialSettings, load: SyntheticSettings, lines: Sequence[trace.TraceLine]
) -> ConfigError | None:
    """Return why a job could never run on the nodes or in its team's queue: of the first such job."""
    for team, pods, gpus in dict.fromkeys((line.team, line.pods, line.gpus) for line in lines):
        job = admission.Job(
            what=f"a job of {pods} pods with {gpus} GPUs each",
            path=_PATH,
            size="trace",
            team=team,
            pods=pods,
            requests={name: amount * gpus for name, amount in load.gpu_and_beside().items()},
            asks={names.CPU: (*_PATH, "cpuPerGpu"), names.MEMORY: (*_PATH, "memoryPerGpu")},
            submitter=(*_PATH, "trace"),
        )
        for problem in admission.admitted(partial, job):
            return problem
    return None
