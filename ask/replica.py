"""A local control plane that copies a cluster: its queues, nodes, policies, workloads and controllers."""

import contextlib
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ask.content import content
from ask.source import Source
from emulator import cluster
from emulator.cluster import lock, memory
from emulator.cluster.content import Content, save
from emulator.cluster.images import makes_pods_of_jobs, of_operator_hub
from emulator.cluster.layout import Layout
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.toolchain import Toolchain, needs
from runner.files import private_folder
from runner.report import Client, connect, is_true, objects
from runner.waiting import awaited

FOLDER: Final = "ask"
"""The replica's environment in the state folder, next to those of stacks. `make down` stops it too."""
SECONDS: Final = 120.0
_VOLATILE: Final = ("lastHeartbeatTime", "lastProbeTime")
"""Times that a kubelet updates regularly in conditions of its node and pods."""


class ReplicaError(Exception):
    """The replica does not run. The message names what is missing."""


class Replica:
    """A replica of a cluster. It remains for the next question. A changed cluster gets a new replica."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self._mark = paths.state / "asked.json"
        self._stands_for = ""

    @contextlib.contextmanager
    def turn(self, report: Callable[[str], None]) -> Iterator[None]:
        """Lock the replica for the length of the context, after other questions have been answered."""
        private_folder(self.paths.run)
        file, waits = self.paths.run / "asked.lock", False
        while (held := lock.take(file)) is None:
            if not waits:
                report("waiting for another question to be answered")
            waits = True
            time.sleep(0.2)
        try:
            yield
        finally:
            os.close(held)

    def stand(self, source: Source, report: Callable[[str], None]) -> Client:
        """Make the replica match a cluster that was read. Return a client of the replica.

        The next question gets a new replica unless this one is kept, because an interrupted question leaves it half
        changed. Raises ReplicaError, and ClusterError of the local environment.
        """
        wanted = content(source)
        self._stands_for = _digest(wanted)
        layout = Layout(self.paths)
        stood_for = self._mark.read_text() if self._mark.exists() else ""
        self.forget()
        if stood_for == self._stands_for and cluster.status(self.paths).ready:
            return connect(self.paths.kubeconfig)
        cluster.reset(self.paths)
        _check_memory(wanted)
        _install(self.paths, wanted)
        private_folder(self.paths.state)
        report("filling the replica with what the cluster holds")
        save(layout, wanted)
        cluster.start(self.paths, lambda line: None, azure=False, content=True)
        client = connect(self.paths.kubeconfig)
        _await_controllers(client, wanted)
        return client

    def keep(self) -> None:
        """Keep this replica, which is unchanged, for the next question."""
        self._mark.write_text(self._stands_for)

    def forget(self) -> None:
        """Have the next question create a new replica."""
        self._mark.unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop the replica and remove its copy of the cluster, which the next question does not need."""
        self.forget()
        cluster.reset(self.paths)


def _check_memory(wanted: Content) -> None:
    """Check that a replica fits the free memory of this machine. Raises ReplicaError if it does not.

    Every node counts. Every job that is not over counts too, running or waiting, because the controllers keep all of
    them.
    """
    kinds = Counter(item["kind"] for item in wanted["exact"])
    over = sum(is_true(item, "Finished") for item in wanted["exact"] if item["kind"] == "Workload")
    nodes, jobs, pods = kinds["Node"], kinds["Workload"] - over, kinds["Pod"] + over
    takes, free = memory.needed(nodes, jobs, pods), memory.free_memory()
    if takes > free:
        raise ReplicaError(
            f"a replica of {nodes} nodes, {jobs} jobs and {pods} pods or jobs that are over takes up to "
            f"{memory.gib(takes)} of memory, and {memory.gib(free)} are free here: end something else on this machine "
            "(`make down` stops local clusters), or ask on one with more"
        )


def _install(paths: Paths, wanted: Content) -> None:
    """Build and link the programs of the replica's controllers."""
    images = [
        container["image"]
        for item in wanted["last"]
        if item["kind"] == "Deployment"
        for container in item["spec"]["template"]["spec"]["containers"]
    ]
    of_jobs, of_hub = any(map(makes_pods_of_jobs, images)), any(map(of_operator_hub, images))
    Toolchain(paths).install(needs(job_operators=of_jobs, operator_hub=of_hub), Progress(0))


def _await_controllers(client: Client, wanted: Content) -> None:
    names = {item["metadata"]["name"] for item in wanted["last"] if item["kind"] == "Deployment"}

    def missing() -> set[str]:
        found = objects(client, "apps/v1", "Deployment")
        return names - {item["metadata"]["name"] for item in found if (item.get("status") or {}).get("readyReplicas")}

    awaited(lambda: not missing(), SECONDS, 0.2)
    if left := missing():
        raise ReplicaError(f"these controllers do not run on the replica: {', '.join(sorted(left))}")


def _digest(wanted: Content) -> str:
    """Return a digest that identifies a content. Objects that are created again contain no fields that change."""
    steady = {**wanted, "exact": [_steady(item) for item in wanted["exact"]]}
    return hashlib.sha256(json.dumps(steady, sort_keys=True).encode()).hexdigest()


def _steady(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the times that change regularly.

    Deeper fields are not examined, which would take several times as long as the rest of the work on the object.
    """
    metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    status = item.get("status") or {}
    conditions = [
        {key: value for key, value in each.items() if key not in _VOLATILE} for each in status.get("conditions") or ()
    ]
    return {**item, "metadata": metadata, "status": {**status, "conditions": conditions}}
