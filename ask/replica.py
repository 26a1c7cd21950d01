"""A local control plane that stands for a cluster: its queues, nodes, policies and workloads, and the controllers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from ask.content import content
from ask.source import Source
from emulator import cluster
from emulator.cluster.content import Content, save
from emulator.cluster.images import makes_pods_of_jobs
from emulator.cluster.layout import Layout
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.toolchain import Toolchain
from runner.files import private_folder
from runner.report import Client, connect, objects

FOLDER: Final = "ask"
"""The replica's environment beneath the state folder, beside those of stacks: `make down` stops it too."""
SECONDS: Final = 120.0
_VOLATILE: Final = ("lastHeartbeatTime", "lastProbeTime", "managedFields")


class ReplicaError(Exception):
    """The replica does not stand; the message says what is missing."""


class Replica:
    """A replica of a cluster. It stays for the next question, and is made anew when the cluster is another by then."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self._mark = paths.state / "asked.json"

    def stand(self, source: Source, report: Callable[[str], None]) -> Client:
        """Have the replica stand for a cluster as it was read; return a client of it.

        Raises ReplicaError, and ClusterError of the local environment.
        """
        wanted = content(source)
        digest = _digest(wanted)
        layout = Layout(self.paths)
        if cluster.status(self.paths).ready and self._mark.exists() and self._mark.read_text() == digest:
            return connect(self.paths.kubeconfig)
        self._mark.unlink(missing_ok=True)
        _install(self.paths, wanted)
        private_folder(self.paths.state)
        report("filling the replica with what the cluster holds")
        cluster.reset(self.paths)
        save(layout, wanted)
        cluster.start(self.paths, lambda line: None, provider=False, content=True)
        client = connect(self.paths.kubeconfig)
        _await_controllers(client, wanted)
        self._mark.write_text(digest)
        return client

    def forget(self) -> None:
        """Have the next question find a new replica: this one is no longer as the cluster is."""
        self._mark.unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop it."""
        self.forget()
        cluster.stop(self.paths)


@contextlib.contextmanager
def replica(paths: Paths) -> Iterator[Replica]:
    """Yield the replica of these folders; it is forgotten where a question is interrupted."""
    found = Replica(paths)
    try:
        yield found
    except BaseException:
        found.forget()
        raise


def _install(paths: Paths, wanted: Content) -> None:
    """Build and link the programs of the controllers that the replica runs."""
    toolchain = Toolchain(paths)
    operators = any(
        makes_pods_of_jobs(container["image"])
        for item in wanted["last"]
        if item["kind"] == "Deployment"
        for container in item["spec"]["template"]["spec"]["containers"]
    )
    missing = toolchain.missing(cluster=True, job_operators=operators)
    toolchain.install(cluster=True, job_operators=operators, progress=Progress(len(missing)))


def _await_controllers(client: Client, wanted: Content) -> None:
    names = {item["metadata"]["name"] for item in wanted["last"] if item["kind"] == "Deployment"}
    deadline = time.monotonic() + SECONDS
    while True:
        ready = {
            item["metadata"]["name"]
            for item in objects(client, "apps/v1", "Deployment")
            if (item.get("status") or {}).get("readyReplicas")
        }
        if names <= ready:
            return
        if time.monotonic() > deadline:
            raise ReplicaError(f"these controllers do not run on the replica: {', '.join(sorted(names - ready))}")
        time.sleep(0.2)


def _digest(wanted: Content) -> str:
    return hashlib.sha256(json.dumps(_steady(wanted), sort_keys=True).encode()).hexdigest()


def _steady(value: Any) -> Any:
    """Return a value without what changes by the second while nothing happens."""
    if isinstance(value, dict):
        return {key: _steady(item) for key, item in value.items() if key not in _VOLATILE}
    if isinstance(value, list):
        return [_steady(item) for item in value]
    return value
