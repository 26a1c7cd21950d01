"""The daemon that keeps the local cluster's processes running.

`emulator.cluster.start` starts it in a new session. It holds a lock while it runs, so each state folder has only one.
The kernel kills its children when it ends, even after SIGKILL. It reports its state to clients of its socket.
"""

import argparse
import contextlib
import json
import logging
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from emulator.cluster import child, controlplane, lock, ports, processes
from emulator.cluster.child import Child
from emulator.cluster.controlplane import Parts
from emulator.cluster.layout import Layout
from emulator.paths import Paths
from runner.files import UMASK

STATUS, WIPE = b"status", b"wipe"
"""Requests to a supervisor. It returns its state as JSON, after a wipe if requested."""

_log = logging.getLogger("supervisor")
_LOOK_SECONDS = 0.1


@dataclass
class Supervisor:
    """Starts the children in order, restarts those that end, and stops all of them.

    data: folders with the cluster's content.
    owner: descriptor of a process (pidfd_open(2)); the cluster stops when it ends.
    """

    children: list[Child]
    environment: dict[str, str]
    folder: Path
    facts: dict[str, Any]
    data: Sequence[Path] = ()
    owner: int | None = None
    stopping: bool = field(default=False, init=False)

    def run(self, listener: socket.socket) -> None:
        """Supervise children and serve requests until `stopping` is set; then stop all children."""
        before = processes.die_with_parent()
        watched: list[socket.socket | int] = [listener] if self.owner is None else [listener, self.owner]
        while not self.stopping:
            now = time.monotonic()
            for each in self.children:
                each.look(now)
                if each.process is None and now >= each.start_at and self._may_start(each):
                    each.start(self.environment, self.folder, before)
            found = select.select(watched, [], [], _LOOK_SECONDS)[0]
            if listener in found:
                self._answer(listener)
            if self.owner in found:
                _log.info("the owner of the cluster has ended")
                self.stopping = True
        self.stop()

    def describe(self) -> dict[str, Any]:
        """Return the state for `emulator.cluster.status`."""
        described = [asdict(each.status) for each in self.children]
        return {"pid": os.getpid(), "processes": described, **self.facts}

    def wipe(self) -> None:
        """Stop the processes that use the cluster's content, delete it, and let them start again."""
        concerned = [each for each in self.children if each.spec.name != controlplane.AZURE]
        child.stop(concerned)
        for folder in self.data:
            shutil.rmtree(folder, ignore_errors=True)
        for each in concerned:
            each.forget()
        _log.info("the cluster's content is deleted; starting again")

    def stop(self) -> None:
        """Stop all children."""
        child.stop(self.children)

    def _may_start(self, wanted: Child) -> bool:
        return all(each.ready for each in self.children if each.spec.name in wanted.spec.after)

    def _answer(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with contextlib.suppress(OSError), connection:
            connection.settimeout(1.0)
            if connection.recv(len(STATUS)) == WIPE:
                self.wipe()
            connection.sendall(json.dumps(self.describe(), default=str).encode())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the supervisor of one state folder until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m emulator.cluster.supervisor", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--state", type=Path, required=True, help="the environment's state folder")
    parser.add_argument("--parts", type=json.loads, default={}, help="flags of the cluster's parts, as JSON")
    parser.add_argument("--owner", type=int, help="stop when this process ends")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")

    try:
        owner = None if options.owner is None else os.pidfd_open(options.owner)
    except ProcessLookupError:
        return 0
    os.umask(UMASK)  # of every process of the cluster
    layout = Layout(Paths.of(root=options.root, state=options.state))
    layout.make_folders()
    if lock.take(layout.lock) is None:
        _log.info("another supervisor runs for %s", layout.paths.state)
        return controlplane.LOCK_HELD
    # Processes of an earlier supervisor, if any still run, would block ports and etcd's data.
    left = processes.kill_all(layout)
    if left:
        _log.error("cannot end the processes of an earlier start: %s", left)
        return 1
    chosen = ports.choose(str(layout.paths.state), ports.load(layout.ports_file))
    ports.save(layout.ports_file, chosen)
    parts = Parts(**options.parts)
    controlplane.prepare(layout, chosen, parts)
    specs = controlplane.processes(layout, chosen, parts)
    supervisor = Supervisor(
        children=[Child(spec, layout.log(spec.name)) for spec in specs],
        environment=controlplane.environment(layout),
        folder=layout.paths.root,
        facts={
            "fingerprint": controlplane.fingerprint(layout, parts),
            "server": f"https://127.0.0.1:{chosen.api}",
            "azure_port": chosen.azure if parts.azure else None,
            "openstack": parts.openstack,
        },
        data=(layout.etcd_data, layout.paths.openstack),
        owner=owner,
    )

    def stop(number: int, frame: object) -> None:
        supervisor.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    layout.socket("supervisor").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(layout.socket("supervisor")))
        listener.listen(16)
        supervisor.run(listener)
    layout.socket("supervisor").unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
