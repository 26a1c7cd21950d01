"""Time until the AKS stack registers its first resource, compared with an empty program that only imports pulumi.

The engine writes its events at once, so the log shows the first resource. The engine creates the stack's own entry
before the program runs. That entry counts only for the empty program, which has no other resource.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from emulator.paths import Paths
from emulator.progress import Progress
from lab.bench.budget import Budget
from runner.engine import Engine
from runner.environment import Environment
from tests.local.environment import ROOT, Project, stack_settings

STACK_TYPE = "pulumi:pulumi:Stack"
_POLL_SECONDS = 0.005
_SECONDS = 150
"""Approximate duration in seconds."""

IMPORTS = """
import time
began = time.perf_counter()
import pulumi, pulumi_kubernetes
core = time.perf_counter()
import pulumi_azure_native
from pulumi_azure_native import (
    authorization, containerregistry, containerservice, features, managedidentity, network, resources, storage
)
# The SDK loads a module when somebody first looks into it.
(authorization.RoleAssignment, containerregistry.Registry, containerservice.ManagedCluster,
 features.SubscriptionFeatureRegistration, managedidentity.UserAssignedIdentity, network.Subnet,
 resources.ResourceGroup, storage.StorageAccount)
azure = time.perf_counter()
import stacks.targets.aks.deploy
print(core - began, azure - core, time.perf_counter() - azure)
"""


def lines(paths: Paths, folder: Path, repeats: int, budget: Budget) -> Iterator[str]:
    """Measure, and yield each figure as text."""
    progress = Progress(5)
    with progress.step("imports"):
        core, azure, rest = (
            statistics.median(column) for column in zip(*(imports() for _ in range(repeats)), strict=True)
        )
    yield f"imports: pulumi and pulumi-kubernetes {core:.2f} s, azure-native {azure:.2f} s, the stack {rest:.2f} s"
    if not budget.allows("start of the aks stack", _SECONDS):
        return
    empty = empty_program(folder / "empty", paths)
    project = Project(folder / "start", paths, "start")
    project.configure(stack_settings("aks"))
    with progress.step("previews of the empty program"):
        base = statistics.median(first_resource(empty, folder, lambda kind: True) for _ in range(repeats))
    with progress.step("previews of the AKS stack, without an update"):
        ours = statistics.median(
            first_resource(project.engine, folder, lambda kind: kind != STACK_TYPE) for _ in range(repeats)
        )
    yield f"first resource: aks {ours:.2f} s, empty program {base:.2f} s, ratio {ours / base:.1f}"
    with progress.step("pulumi up of the AKS stack"):
        project.up()
    with progress.step("previews without a change"):
        full = statistics.median(preview(project) for _ in range(repeats))
        least = statistics.median(preview_of(empty) for _ in range(repeats))
    yield f"preview without a change: aks {full:.1f} s, empty program {least:.1f} s, ratio {full / least:.1f}"
    project.destroy()


def imports() -> tuple[float, float, float]:
    """Return the seconds of imports: Pulumi's SDKs without Azure's, Azure's, and the rest of the stack."""
    done = subprocess.run([sys.executable, "-c", IMPORTS], cwd=ROOT, capture_output=True, text=True, check=True)
    core, azure, rest = map(float, done.stdout.split())
    return core, azure, rest


def empty_program(folder: Path, paths: Paths) -> Engine:
    """Return an engine on a project whose program only imports pulumi."""
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "empty", "runtime": "python"}))
    (folder / "Pulumi.empty.yaml").write_text("config: {}\n")
    (folder / "__main__.py").write_text("import pulumi\n")
    (folder / ".venv").symlink_to(ROOT / ".venv")
    engine = Engine(folder, folder / "state", "empty", Environment(kubeconfig=paths.kubeconfig, programs=(paths.bin,)))
    engine.prepare()
    return engine


def first_resource(engine: Engine, folder: Path, counts: Callable[[str], bool]) -> float:
    """Return the seconds from the start of a preview to its first counted resource."""
    log = folder / "events.json"
    log.unlink(missing_ok=True)
    engine.prepare()
    began = time.monotonic()
    printed = folder / "printed"
    seconds = None
    with printed.open("w") as stream:
        arguments = ["--non-interactive", "--event-log", str(log)]
        debugging = {"PULUMI_DEBUG_COMMANDS": "true"}
        process = engine.start("preview", arguments, debugging, stdout=stream, stderr=subprocess.STDOUT)
        while seconds is None and process.poll() is None:
            if any(counts(kind) for kind in registered(log)):
                seconds = time.monotonic() - began
            time.sleep(_POLL_SECONDS)
        code = engine.finish(process)
    if code != 0 or seconds is None:
        raise RuntimeError(f"the preview failed, or registered no resource:\n{printed.read_text()}")
    return seconds


def registered(log: Path) -> list[str]:
    """Return the types of the resources in an event log."""
    kinds = []
    for line in log.read_text().splitlines() if log.exists() else ():
        try:
            event = json.loads(line)
        except ValueError:
            break  # the last line may be incomplete
        if "resourcePreEvent" in event:
            kinds.append(event["resourcePreEvent"]["metadata"]["type"])
    return kinds


def preview(project: Project) -> float:
    """Return the seconds of a preview without changes."""
    began = time.monotonic()
    project.unchanged()
    return time.monotonic() - began


def preview_of(engine: Engine) -> float:
    """Return the seconds of a preview of the empty program."""
    began = time.monotonic()
    engine.capture("preview", ["--non-interactive"])
    return time.monotonic() - began
