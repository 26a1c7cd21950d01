"""A killed plain `pulumi up`, and the commands of docs/operations.md that finish it."""

import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError
from kubernetes.dynamic.resource import ResourceList

from runner.environment import inherited
from tests.local.environment import ROOT, WITHOUT_CHECKPOINTS, Cluster, Project

OPERATIONS = ROOT / "docs" / "operations.md"
STACK_OF_THE_PAGE = "mysite"
MANAGER = "pulumi-kubernetes"
_RECORDED = b'"type": "kubernetes:'

Identity = tuple[str, str, str]
"""Kind, namespace (empty for none) and name."""


def documented_commands() -> str:
    """Return the commands of docs/operations.md that finish a killed update, in the order of the steps."""
    (steps,) = re.findall(
        r"^## An update that was killed\n(.*?)^Exceptions:", OPERATIONS.read_text(), re.DOTALL | re.MULTILINE
    )
    return "\n".join(re.findall(r"^   ((?:\w+=true )?pulumi (?:cancel|up|refresh) .*)$", steps, re.MULTILINE))


def await_under(process: subprocess.Popen[Any], is_time: Callable[[], Any]) -> None:
    """Wait for a condition while an update runs, without a time limit. Fails if the update ends first."""
    while not is_time():
        assert process.poll() is None, f"the update ended with {process.returncode} before it was killed"
        time.sleep(0.1)


class Killed:
    """A stack that plain `pulumi` commands update, with checkpoints."""

    def __init__(self, project: Project, cluster: Cluster) -> None:
        self.project, self.cluster = project, cluster
        engine = project.engine
        engine.prepare()
        variables = {name: value for name, value in engine.variables().items() if name not in WITHOUT_CHECKPOINTS}
        self._environment = {
            **inherited(),
            **variables,
            "PULUMI_OPTION_CONFIG_FILE": str(engine.configuration),
            "PULUMI_SKIP_CONFIRMATIONS": "true",
        }

    @property
    def recorded(self) -> int:
        """Number of objects in the state, including pending ones."""
        file = self.project.state_file
        return file.read_bytes().count(_RECORDED) if file.exists() else 0

    def kill_at(self, objects: int, delay: float = 0.0) -> None:
        """Run `pulumi up`, and kill it `delay` seconds after the state has this many objects."""
        self.kill_when(lambda: self.recorded >= objects, delay)

    def kill_when(self, is_time: Callable[[], Any], delay: float = 0.0) -> None:
        """Run `pulumi up`, and kill it `delay` seconds after a condition holds."""
        command = ["pulumi", "up", "--stack", self.project.stack, "--yes", "--skip-preview", "--non-interactive"]
        options: dict[str, Any] = {"cwd": self.project.folder, "env": self._environment, "stdin": subprocess.DEVNULL}
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options) as process:
            await_under(process, is_time)
            time.sleep(delay)
            process.kill()
            assert process.wait() == -signal.SIGKILL

    def plain_up(self) -> subprocess.CompletedProcess[str]:
        """Run `pulumi cancel` and a `pulumi up` that does not take objects over."""
        return self.shell(f"pulumi cancel --stack {self.project.stack}\npulumi up --stack {self.project.stack}")

    def finish(self) -> None:
        """Run the documented commands; each must succeed."""
        commands = documented_commands().replace(STACK_OF_THE_PAGE, self.project.stack)
        assert commands.count(f"--stack {self.project.stack}") == len(commands.splitlines())
        done = self.shell(commands)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def judge(self) -> None:
        """Assert that the state has everything that the program declares, and every created object exactly once."""
        self.project.unchanged()
        state = self.project.engine.read_state()
        assert not state.get("pending_operations")
        recorded = Counter(_recorded(state["resources"]))
        twice = [each for each, count in recorded.items() if count > 1]
        assert not twice, f"twice in the state: {twice}"
        orphans = made_by_pulumi(self.cluster) - recorded.keys()
        assert not orphans, f"made, and not in the state: {orphans}"

    def destroy(self) -> None:
        """Destroy the stack and assert that no created object remains."""
        self.project.destroy()
        left = made_by_pulumi(self.cluster)
        assert not left, f"left behind: {left}"

    def shell(self, commands: str) -> subprocess.CompletedProcess[str]:
        """Run commands in the stack's environment. They are not killed, so they need not write the state at each
        step.
        """
        return subprocess.run(
            ["bash", "-ec", commands],
            cwd=self.project.folder,
            env={**self._environment, **WITHOUT_CHECKPOINTS},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )


def _recorded(resources: Sequence[dict[str, Any]]) -> Iterator[Identity]:
    for each in resources:
        if each["type"].startswith("kubernetes:"):
            metadata = each["outputs"]["metadata"]
            yield each["outputs"]["kind"], metadata.get("namespace") or "", metadata["name"]


def made_by_pulumi(cluster: Cluster) -> set[Identity]:
    """Return all objects that the Kubernetes provider created, of kinds that the cluster can list."""
    found: set[Identity] = set()
    for resource in cluster.client.resources.search():
        if isinstance(resource, ResourceList) or "list" not in (resource.verbs or ()):
            continue
        try:
            items = cluster.client.get(resource).to_dict().get("items") or ()
        except (ApiException, DynamicApiError):
            continue  # its API server does not run
        for item in items:
            managers = [entry.get("manager", "") for entry in item["metadata"].get("managedFields") or ()]
            if any(manager.startswith(MANAGER) for manager in managers):
                found.add((resource.kind, item["metadata"].get("namespace") or "", item["metadata"]["name"]))
    return found
