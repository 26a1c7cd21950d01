"""The engine with this program, compared with kubectl, on the same objects.

For each number of teams, the dev platform is installed without teams. Then:
- `pulumi up` adds the teams, and later `kubectl apply --server-side` creates the same objects;
- `pulumi preview` finds no changes, and `kubectl diff --server-side` finds none in all objects.
Both sides run as whole processes against the same API server. Pulumi writes its state once, like a first `make up`.
Figures are wall seconds, medians of repetitions, and MiB of the largest process.
"""

import json
import math
import os
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.paths import Paths
from emulator.progress import Progress, duration
from lab.bench.budget import Budget
from lab.scenarios.size import sized
from tests.local.environment import Project

GPUS_PER_NODE = 8
HEADER = "teams  objects |  up s  apply s  ratio  ms/team | preview s  diff s  ratio | MiB pulumi  kubectl"
_DISCOVERY_SECONDS = 40.0
"""Seconds until the quota controller has the kinds that the first update defined; it checks every 30 s. An earlier
update waits for it, and kubectl does not.
"""
_SECONDS = 90.0
"""Approximate duration of the first row."""
_GROWTH = 0.7
"""Estimated growth of the other rows: power of the number of teams."""


@dataclass(frozen=True)
class Sample:
    """Measurements with one number of teams, in seconds and MiB."""

    teams: int
    objects: int
    up: float
    apply: float
    preview: float
    diff: float
    memory: float
    kubectl_memory: float

    def row(self) -> str:
        return (
            f"{self.teams:5}  {self.objects:7} | {self.up:5.1f}  {self.apply:7.1f}  {self.up / self.apply:5.1f}  "
            f"{1000 * self.up / self.teams:7.0f} | {self.preview:9.1f}  {self.diff:6.1f}  "
            f"{self.preview / self.diff:5.1f} | {self.memory:10.0f}  {self.kubectl_memory:7.0f}"
        )


def lines(paths: Paths, folder: Path, counts: Sequence[int], repeats: int, budget: Budget) -> Iterator[str]:
    """Measure each number of teams; yield a table, row by row, and the growth of the cost."""
    progress = Progress(len(counts))
    expected = _SECONDS
    last: Sample | None = None
    yield HEADER
    for teams in counts:
        if not budget.allows(f"{teams} teams", expected * (teams / last.teams if last else 1) ** _GROWTH):
            continue
        began = time.monotonic()
        with progress.step(f"{teams} teams"):
            sample = measure(paths, folder, teams, repeats, progress)
        expected = time.monotonic() - began
        yield sample.row()
        if last is not None:
            yield from growth(last, sample)
        last = sample


def measure(paths: Paths, folder: Path, teams: int, repeats: int, progress: Progress) -> Sample:
    """Measure one number of teams on a new stack, and delete it."""
    project = Project(folder / f"teams-{teams}", paths, f"bench{teams}")
    settings = bench_settings(project.mirror, teams)

    def stage(title: str, *command: str, allowed: Sequence[int] = (0,)) -> tuple[float, float]:
        project.engine.prepare()
        began = time.monotonic()
        process = start(project, paths, command)
        memory = peak(process, allowed)
        seconds = time.monotonic() - began
        project.engine.finish(process)
        progress.note(f"{title}: {duration(seconds)}")
        return seconds, memory

    project.configure({**settings, "teams": []})
    up_command = ("pulumi", "up", "--yes", "--skip-preview")
    stage("pulumi up without teams", *up_command)
    base = {resource["urn"] for resource in project.resources()}
    time.sleep(_DISCOVERY_SECONDS)
    project.configure(settings)
    up, memory = stage("pulumi up with teams", *up_command)
    previews = [stage("pulumi preview", "pulumi", "preview", "--expect-no-changes")[0] for _ in range(repeats)]

    declared = [r for r in project.resources() if r["type"].startswith("kubernetes:")]
    everything = manifest(project.folder / "everything.json", declared)
    tenancy = manifest(project.folder / "tenancy.json", [r for r in declared if r["urn"] not in base])
    diff_command = ("kubectl", "diff", "--server-side", "--force-conflicts", "-f", everything)
    diffs = [stage("kubectl diff", *diff_command, allowed=(0, 1))[0] for _ in range(repeats)]
    project.configure({**settings, "teams": []})
    stage("pulumi up without teams", *up_command)
    apply, kubectl_memory = stage("kubectl apply", "kubectl", "apply", "--server-side", "-f", tenancy)
    stage("kubectl delete", "kubectl", "delete", "--ignore-not-found", "--timeout=600s", "-f", tenancy)
    stage("pulumi destroy", "pulumi", "destroy", "--yes", "--skip-preview")
    return Sample(
        teams=teams,
        objects=len(declared),
        up=up,
        apply=apply,
        preview=statistics.median(previews),
        diff=statistics.median(diffs),
        memory=memory,
        kubectl_memory=kubectl_memory,
    )


def bench_settings(mirror: Path | None, teams: int) -> dict[str, Any]:
    """Return the dev settings with this number of teams of one GPU and one user each, and enough nodes."""
    quota = {"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": 1, "pods": 10}
    declared = [{"name": f"team-{i:03}", "users": [f"user-{i:03}"], "quota": quota} for i in range(teams)]
    return sized(mirror, math.ceil(teams / GPUS_PER_NODE) + 1, declared, {})


def start(project: Project, paths: Paths, command: Sequence[str]) -> subprocess.Popen[str]:
    """Start pulumi on the project's stack, or kubectl on the benchmark's cluster."""
    if command[0] == "pulumi":
        return project.start(*command[1:])
    environment = {
        **os.environ,
        "KUBECONFIG": str(paths.kubeconfig),
        "PATH": f"{paths.bin}{os.pathsep}{os.environ['PATH']}",
    }
    return subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def peak(process: subprocess.Popen[str], allowed: Sequence[int]) -> float:
    """Wait for a command; return the peak MiB of the largest of its processes."""
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in allowed, printed
    return usage.ru_maxrss / 1024


def manifest(file: Path, resources: Sequence[Mapping[str, Any]]) -> str:
    """Write the resources' inputs as one List, in the stack's order."""
    items = [{key: value for key, value in r["inputs"].items() if not key.startswith("__")} for r in resources]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def growth(first: Sample, last: Sample) -> Iterator[str]:
    """Yield the growth of a team's cost from one row to another."""
    for name in ("up", "preview"):
        power = math.log(getattr(last, name) / getattr(first, name)) / math.log(last.teams / first.teams)
        yield f"{name} grows with teams^{power:.2f} from {first.teams} to {last.teams} teams (1 is linear)"
