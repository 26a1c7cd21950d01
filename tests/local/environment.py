"""A project folder, its stack and its cluster, for tests."""

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeVar

import yaml
from kubernetes.dynamic.exceptions import NotFoundError

from components import catalogue
from emulator import cluster as local_cluster
from emulator import mirror, pending
from emulator.environment import environment as emulated_environment
from emulator.openstack.installation import Installation
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.toolchain import KUEUE_0_18, Toolchain, needs
from runner.engine import Engine
from runner.environment import Environment, inherited
from runner.files import write_private
from runner.report import connect
from runner.settings import ARTIFACTS, filled
from tests.local import official

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_CHECKPOINTS = {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}
"""Make the engine write the state only at the end, in a third of the time. Not for updates that are killed."""
DEFAULT_KUEUE = catalogue.versions(catalogue.KUEUE)[0]
KUEUE_VERSION = os.environ.get("MLBATCH_TEST_KUEUE") or DEFAULT_KUEUE
"""The Kueue of the dev stack; `make soak` also runs its tests with an older one."""
PROGRAM = ("Pulumi.yaml", "__main__.py", "components", "stacks", ".venv")
"""Links in a test's project folder to files of the checkout."""
_UNREADY = "Refreshed resource is in an unhealthy state"
"""The Kubernetes provider's message about such a Deployment."""

T = TypeVar("T")


def eventually(
    what: str, probe: Callable[[], T], accept: Callable[[T], bool] = bool, seconds: float = 180, every: float = 0.5
) -> T:
    """Return the probe's first accepted value. Fails with the last value after this many seconds.

    Most tests wait only a few seconds; the rest is for a busy machine.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = probe()
        if accept(value):
            return value
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s; last seen: {value!r}"
        time.sleep(every)


@contextlib.contextmanager
def local_environment(
    prepare: Callable[[Paths], None] = lambda paths: None,
    *,
    admission_policies: bool = True,
    openshift: bool = False,
    operator_hub: bool = False,
    openstack: bool = False,
    job_operators: bool = False,
    stack: str = "",
) -> Iterator[Paths]:
    """Yield a running local cluster in its own state folder.

    It ends with this process, even if the process is killed, because no other process would stop it.

    prepare: called with the folders before the start.
    admission_policies: its API server has that API.
    openshift: it is an OpenShift.
    operator_hub: it installs operators from a catalog.
    openstack: an OpenStack runs with it.
    job_operators: it can run the operators of PyTorch's and Ray's kinds.
    stack: its nodes come from this stack's seeds, as in `make up`.
    """
    with tempfile.TemporaryDirectory(prefix="mlbatch-test-") as folder:
        paths = Paths.of(root=ROOT, state=Path(folder))
        toolchain = Toolchain(paths)
        parts = {"openshift": openshift, "operator_hub": operator_hub}
        older = () if DEFAULT_KUEUE == KUEUE_VERSION else (KUEUE_0_18.need(),)
        toolchain.install((*needs(job_operators=job_operators, **parts), *older), Progress(0))
        if openstack:
            Installation(paths).install(Progress(0))
        mirror.fill(paths, toolchain, **parts)
        prepare(paths)
        local_cluster.start(
            paths,
            print,
            stack=stack,
            admission_policies=admission_policies,
            openstack=openstack,
            owner=os.getpid(),
            **parts,
        )
        try:
            yield paths
        finally:
            local_cluster.kill(paths)


@contextlib.contextmanager
def environment_of_tests() -> Iterator[Paths]:
    """Yield the cluster that the environment's variables name, else a new local one."""
    named = official.named_cluster()
    if named is None:
        with local_environment(job_operators=True) as paths:
            yield paths
        return
    with tempfile.TemporaryDirectory(prefix="mlbatch-test-") as folder:
        paths = Paths.of(root=ROOT, state=Path(folder))
        write_private(paths.kubeconfig, named.read_text())
        yield paths


def engine_environment(paths: Paths) -> Environment:
    """Return the engine's environment on the tests' cluster."""
    if official.named_cluster() is None:
        return replace(emulated_environment(paths), disposable=True)
    return Environment(kubeconfig=paths.kubeconfig, plugins=official.plugins(), disposable=True)


class Cluster:
    """Short forms of the Kubernetes API for assertions."""

    def __init__(self, kubeconfig: Path) -> None:
        self.client = connect(kubeconfig)

    def kind(self, api_version: str, kind: str) -> Any:
        return self.client.resources.get(api_version=api_version, kind=kind)

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        try:
            return dict(self.client.get(self.kind(api_version, kind), name=name, namespace=namespace).to_dict())
        except NotFoundError:
            return None

    def existing(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
        """Return an object; fail if it does not exist."""
        found = self.get(api_version, kind, name, namespace)
        assert found is not None, f"{kind} {name} does not exist"
        return found

    def list(self, api_version: str, kind: str, namespace: str | None = None, **options: Any) -> list[dict[str, Any]]:
        found = self.client.get(self.kind(api_version, kind), namespace=namespace, **options)
        return list(found.to_dict()["items"])

    def create(self, document: Mapping[str, Any], **query: str) -> None:
        """Create an object. query: parameters of the request that the client does not support."""
        resource, namespace = self.kind(document["apiVersion"], document["kind"]), document["metadata"].get("namespace")
        self.client.create(resource, body=dict(document), namespace=namespace, query_params=list(query.items()))

    def patch(
        self, api_version: str, kind: str, name: str, body: Mapping[str, Any], namespace: str | None = None
    ) -> None:
        self.client.patch(
            self.kind(api_version, kind),
            name=name,
            namespace=namespace,
            body=dict(body),
            content_type="application/merge-patch+json",
        )

    def delete(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> None:
        with contextlib.suppress(NotFoundError):
            self.client.delete(self.kind(api_version, kind), name=name, namespace=namespace)


def parts(named: str) -> tuple[str, str, str, str | None]:
    """Return API version, kind, name and namespace of an object: "v1 Pod blue/name", or without a namespace."""
    api, kind, place = named.split()
    namespace, _, name = place.rpartition("/")
    return api, kind, name, namespace or None


class Project:
    """A folder with links to the program and a stack file, and the engine on that stack.

    as_written: the engine reads the settings unchanged from the file, like a plain `pulumi`, without local values.
    """

    def __init__(self, folder: Path, paths: Paths, stack: str, *, as_written: bool = False) -> None:
        self.folder = folder
        self.stack = stack
        folder.mkdir(exist_ok=True)
        for name in PROGRAM:
            (folder / name).symlink_to(ROOT / name)
        self._paths = paths
        environment = engine_environment(paths)
        environment = replace(environment, variables={**environment.variables, **WITHOUT_CHECKPOINTS})
        self.mirror = environment.mirror
        self.engine = self.attached_to(replace(environment, mirror=None) if as_written else environment)

    def attached_to(self, environment: Environment) -> Engine:
        """Return an engine on this project's stack in another environment."""
        return Engine(self.folder, self.folder / "state", self.stack, environment)

    @property
    def state_file(self) -> Path:
        return self.engine.state_file

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Write the stack's settings; top-level keys have no `mlbatch:` prefix."""
        config = {f"mlbatch:{key}": value for key, value in settings.items()}
        (self.folder / f"Pulumi.{self.stack}.yaml").write_text(yaml.safe_dump({"config": config}, sort_keys=False))

    def secret(self, key: str, value: str) -> dict[str, str]:
        """Return a value in the form of a secret setting: encrypted for this stack and this key."""
        self.engine.prepare()
        done = self.engine.capture("config", ["set", "--secret", f"mlbatch:{key}", value])
        assert done.returncode == 0, done.stderr
        written = yaml.safe_load(self.engine.configuration.read_text())
        return dict(written["config"][f"mlbatch:{key}"])

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `pulumi <command>`. Before an update, finish a killed one, like the make targets."""
        self.engine.prepare()
        if command in ("up", "destroy"):
            self.recover()
        return self.engine.capture(command, ["--non-interactive", "--color", "never", *arguments])

    def recover(self) -> None:
        self.engine.unlock()
        pending.finish(self.engine, self._paths)

    def up(self, *arguments: str) -> str:
        """Run `pulumi up`; fail if it fails. Return its output."""
        return self._succeed("up", "--yes", "--skip-preview", *arguments)

    def destroy(self, *arguments: str) -> str:
        return self._succeed("destroy", "--yes", "--skip-preview", *arguments)

    def preview(self, *arguments: str) -> str:
        return self._succeed("preview", *arguments)

    def previewed_with(self, **sections: Any) -> str:
        """Return what a preview prints with other sections. The stack keeps its settings."""
        file = self.folder / f"Pulumi.{self.stack}.yaml"
        own = file.read_text()
        config = yaml.safe_load(own)["config"]
        self.configure({**{key.removeprefix("mlbatch:"): value for key, value in config.items()}, **sections})
        done = self.run("preview")
        file.write_text(own)
        return done.stdout + done.stderr

    def unchanged(self) -> None:
        """Assert that a preview, which refreshes first, plans no changes.

        A Deployment counts as changed until its pods are ready, so the preview waits for them.
        """
        done = eventually(
            "what the stack runs is ready",
            lambda: self.run("preview", "--expect-no-changes", "--diff"),
            lambda done: _UNREADY not in done.stdout + done.stderr,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def drift(self) -> str:
        """Return the changes that `pulumi refresh` would make in the state; fail without any."""
        done = self.run("refresh", "--preview-only", "--expect-no-changes", "--diff")
        assert done.returncode != 0, f"refresh found no changes:\n{done.stdout}"
        return done.stdout

    def changes(self) -> dict[str, str]:
        """Return the steps of a preview, which refreshes first: operation by the resource's name."""
        done = self.run("preview", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        steps = [step for step in json.loads(done.stdout)["steps"] if step["op"] not in ("same", "refresh", "read")]
        return {step["urn"].rpartition("::")[2]: step["op"] for step in steps}

    def resources(self) -> list[dict[str, Any]]:
        return list(self.engine.read_state().get("resources") or ())

    def start(self, command: str, *arguments: str, output: int | IO[str] = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start `pulumi <command>` on the prepared stack without waiting for it. The caller must call `engine.finish`.

        output: where it prints. It blocks when it has filled a pipe without a reader.
        """
        return self.engine.start(
            command,
            ["--non-interactive", "--color", "never", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _succeed(self, command: str, *arguments: str) -> str:
        done = self.run(command, *arguments)
        assert done.returncode == 0, f"pulumi {command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout


@contextlib.contextmanager
def local_project(**parts: Any) -> Iterator[tuple[Paths, Project]]:
    """Yield a running local cluster and a project with the stack dev on it. Both are deleted at the end.

    parts: see `local_environment`.
    """
    with tempfile.TemporaryDirectory(prefix="mlbatch-project-") as folder, local_environment(**parts) as paths:
        yield paths, Project(Path(folder), paths, "dev")


def drift(project: Project, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the drift check as a user does."""
    command = [str(ROOT / "mlbatch"), "drift", "--stack", project.stack, *arguments]
    environment = {**inherited(), **project.engine.variables(), **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def stack_settings(stack: str) -> dict[str, Any]:
    """Return the settings of one of the checkout's stacks, without the project's name."""
    config = yaml.safe_load(filled((ROOT / f"Pulumi.{stack}.yaml").read_text()))["config"]
    return {key.removeprefix("mlbatch:"): value for key, value in config.items() if key.startswith("mlbatch:")}


def mirrored(mirror: Path | None) -> dict[str, Any]:
    """Return the section that reads upstream's files from a mirror, empty without a mirror."""
    return {"mirror": {ARTIFACTS: str(mirror), "verify": False}} if mirror is not None else {}


def dev_settings(mirror: Path | None) -> dict[str, Any]:
    """Return the settings of Pulumi.dev.yaml with the mirror of the tests' environment.

    On a busy machine a simulated node misses its heartbeat. A short healthSeconds keeps the lower lending limit from
    affecting another test.
    """
    settings = stack_settings("dev")
    settings["recovery"] = {"healthSeconds": 2}
    if KUEUE_VERSION != DEFAULT_KUEUE:
        settings["queueing"]["kueueVersion"] = KUEUE_VERSION
    return dict(json.loads(json.dumps({**settings, **mirrored(mirror)})))


def member_settings(project: Project) -> dict[str, Any]:
    """Return those settings without the sample, with more rights of members, and a third team without quota.

    Members may exec into pods and submit Ray's kinds directly. Queues accept jobs of other namespaces. Red has Services
    for clients outside the cluster. Users of green have their own queues.
    """
    found = dev_settings(project.mirror)
    quota = {"cpu": 0, "memory": "0", "nvidia.com/gpu": 0, "pods": 0}
    found["teams"][1]["services"] = {"loadBalancers": 1, "nodePorts": True}
    found["teams"].append({"name": "green", "users": ["carol"], "quota": quota, "userFairSharing": True})
    found["queueing"]["openToAll"] = True
    return {**found, "samples": {}, "tenancy": {"exec": True, "unwrappedRay": True}}


OPERATORS = {name: {"enabled": True} for name in ("kuberay", "trainingOperator", "trainer", "jobSet")}
"""Settings of queueing: all operators of jobs."""


def operators_settings(project: Project) -> dict[str, Any]:
    """Return those settings without the sample, with all operators of jobs. Members may submit Ray's kinds directly."""
    dev = dev_settings(project.mirror)
    queueing = {**dev["queueing"], **OPERATORS}
    return {**dev, "samples": {}, "queueing": queueing, "tenancy": {"unwrappedRay": True}}


def existing_settings(project: Project) -> dict[str, Any]:
    """Return the settings of Pulumi.existing.yaml, with scratch disks."""
    settings = stack_settings("existing")
    settings["gpu"]["nvmeScratch"] = {"enabled": True, "diskModel": "Lab NVMe"}
    return {**settings, **mirrored(project.mirror)}


def machines(cluster: Cluster) -> list[str]:
    """Return the names of the nodes that really run pods, the platform's controllers. The others are simulated."""
    nodes = cluster.list("v1", "Node", label_selector="node-role.kubernetes.io/control-plane")
    return [node["metadata"]["name"] for node in nodes]


def is_ready(cluster: Cluster, name: str) -> bool:
    """Tell whether a node is ready."""
    node = cluster.get("v1", "Node", name) or {}
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any((item["type"], item["status"]) == ("Ready", "True") for item in conditions)


def gang(name: str, namespace: str, pods: int, gpus: int, seconds: int = 3600, **metadata: Any) -> dict[str, Any]:
    """Return an AppWrapper with one Job of this many pods and GPUs per pod, which start together."""
    resources = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(gpus)}
    container = {
        "name": "main",
        "image": "docker.io/library/busybox:1.37.0",
        "command": ["sleep", str(seconds)],
        "resources": {"requests": resources, "limits": resources},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"components": [{"template": job}]},
    }
