"""The daemon that keeps the local cluster's processes running.

Started by `emulator.cluster.start` in a session of its own. It holds a lock for as long as it lives, so there is one
for each state folder; the kernel kills its children when it dies, even by SIGKILL; and it tells its state, live, to
whoever connects to its socket.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator.cluster import controlplane, lock, ports, processes
from emulator.cluster.api import ApiError
from emulator.cluster.controlplane import ProcessSpec
from emulator.cluster.layout import Layout
from emulator.paths import Paths

_log = logging.getLogger("supervisor")
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 15.0
_CHECK_AGAIN = 5.0
_FAILURES_BEFORE_FAILED = 3
_LOG_LIMIT = 20 * 1024 * 1024


@dataclass
class Child:
    """One supervised process and its life so far.

    failures: how often in a row it ended before it was ever ready; it decides the pause before the next start.
    """

    spec: ProcessSpec
    log: Path
    process: subprocess.Popen[bytes] | None = None
    ready: bool = False
    restarts: int = 0
    failures: int = 0
    start_at: float = 0.0
    check_at: float = 0.0

    @property
    def state(self) -> str:
        if self.failures >= _FAILURES_BEFORE_FAILED:
            return "failed"
        if self.process is None:
            return "restarting" if self.restarts else "waiting"
        return "running" if self.ready else "starting"

    def start(self, environment: dict[str, str], folder: Path, before: Callable[[], None]) -> None:
        """Start the process; its output is appended to its log."""
        try:
            self.spec.prepare()
        except ApiError as error:
            self._ended(f"cannot be prepared: {error}")
            return
        _rotate(self.log)
        with self.log.open("ab") as log:
            try:
                self.process = subprocess.Popen(
                    self.spec.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    cwd=folder,
                    preexec_fn=before,  # noqa: PLW1509 (the supervisor has one thread)
                )
            except OSError as error:
                log.write(f"cannot start {self.spec.command[0]}: {error}\n".encode())
                self._ended(f"cannot start: {error}")
                return
        self.ready = False
        self.check_at = 0.0
        _log.info("%s started, pid %d", self.spec.name, self.process.pid)

    def look(self, now: float) -> None:
        """Notice an end, and ask for readiness when that is due."""
        if self.process is None:
            return
        code = self.process.poll()
        if code is not None:
            self._ended(f"ended with {code}")
        elif now >= self.check_at:
            ready = self.spec.ready()
            if ready and not self.ready:
                _log.info("%s is ready", self.spec.name)
            if ready:
                self.failures = 0
            self.ready = ready
            self.check_at = now + (_CHECK_AGAIN if ready else 0.0)

    def _ended(self, how: str) -> None:
        self.process = None
        self.failures = 0 if self.ready else self.failures + 1
        self.ready = False
        self.restarts += 1
        pause = min(_FIRST_PAUSE * 2**self.failures, _LONGEST_PAUSE)
        self.start_at = time.monotonic() + pause
        _log.warning("%s %s; starting it again in %.1f s", self.spec.name, how, pause)


@dataclass
class Supervisor:
    """Starts the children in order, restarts those that end and stops all of them.

    data: the folders that hold the cluster's content. wipes: how often they were emptied.
    """

    children: list[Child]
    environment: dict[str, str]
    folder: Path
    facts: dict[str, Any]
    data: Sequence[Path] = ()
    stopping: bool = field(default=False, init=False)
    wiping: bool = field(default=False, init=False)
    wipes: int = field(default=0, init=False)

    def run(self, listener: socket.socket, wakeup: socket.socket) -> None:
        """Supervise until told to stop, then stop everything."""
        before = processes.die_with_parent()
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(wakeup, selectors.EVENT_READ)
            while not self.stopping:
                if self.wiping:
                    self.wipe()
                now = time.monotonic()
                for child in self.children:
                    child.look(now)
                    if child.process is None and now >= child.start_at and self._may_start(child):
                        child.start(self.environment, self.folder, before)
                settled = all(child.ready for child in self.children)
                for key, _ in selector.select(1.0 if settled else 0.1):
                    if key.fileobj is listener:
                        self._tell(listener)
                    else:
                        wakeup.recv(4096)
        self.stop()

    def describe(self) -> dict[str, Any]:
        """Return the state, as `emulator.cluster.status` reports it."""
        described = [
            {
                "name": child.spec.name,
                "pid": child.process.pid if child.process else None,
                "state": child.state,
                "restarts": child.restarts,
                "log": str(child.log),
            }
            for child in self.children
        ]
        return {"pid": os.getpid(), "processes": described, "wipes": self.wipes, **self.facts}

    def wipe(self) -> None:
        """Stop what works on the cluster's content, throw that away, and let everything start anew."""
        self.wiping = False
        concerned = [child for child in self.children if child.spec.name not in controlplane.OUTLIVING]
        self.stop(concerned)
        for folder in self.data:
            shutil.rmtree(folder, ignore_errors=True)
        for child in concerned:
            child.process, child.ready, child.failures, child.start_at = None, False, 0, 0.0
        self.wipes += 1
        _log.info("the cluster's content is gone; starting anew")

    def stop(self, children: Sequence[Child] | None = None) -> None:
        """End children (default: all) in reverse order of dependence, each with a bounded wait before it is killed."""
        left = [child for child in children or self.children if child.process is not None]
        while left:
            needed = {name for child in left for name in child.spec.after}
            ending = [child for child in left if child.spec.name not in needed]
            _log.info("stopping %s", ", ".join(child.spec.name for child in ending))
            _end(ending)
            left = [child for child in left if child not in ending]

    def _may_start(self, child: Child) -> bool:
        return all(other.ready for other in self.children if other.spec.name in child.spec.after)

    def _tell(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(1.0)
                connection.sendall(json.dumps(self.describe()).encode())


def _end(children: Sequence[Child]) -> None:
    for child in children:
        if child.process is not None:
            child.process.terminate()
    started = time.monotonic()
    for child in children:
        if child.process is None:
            continue
        try:
            child.process.wait(max(0.0, started + child.spec.stop_seconds - time.monotonic()))
        except subprocess.TimeoutExpired:
            _log.warning("%s did not end in %.0f s: killed", child.spec.name, child.spec.stop_seconds)
            child.process.kill()
            child.process.wait()


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > _LOG_LIMIT:
        log.replace(log.with_suffix(".log.1"))


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(16)
    listener.setblocking(False)
    return listener


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the supervisor of one state folder until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m emulator.cluster.supervisor", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--state", type=Path, required=True, help="the environment's state folder")
    parser.add_argument("--without-provider", action="store_true", help="run the cluster alone")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")

    layout = Layout(Paths.of(root=options.root, state=options.state))
    layout.make_folders()
    if lock.take(layout.lock) is None:
        _log.info("another supervisor runs for %s", layout.paths.state)
        return controlplane.LOCK_HELD
    # What an earlier life left, should the kernel not have finished with it, is in the way of ports and of etcd's data.
    left = processes.kill_all(layout)
    if left:
        _log.error("cannot end the processes of an earlier start: %s", left)
        return 1
    chosen = ports.choose(str(layout.paths.state), ports.load(layout.ports_file))
    ports.save(layout.ports_file, chosen)
    controlplane.prepare(layout, chosen)

    provider = not options.without_provider
    supervisor = Supervisor(
        children=[
            Child(spec, layout.log(spec.name)) for spec in controlplane.processes(layout, chosen, provider=provider)
        ],
        environment=controlplane.environment(layout),
        folder=layout.paths.root,
        facts={
            "fingerprint": controlplane.fingerprint(layout, provider=provider),
            "api_port": chosen.api,
            "provider_port": chosen.provider if provider else None,
            "azure_port": chosen.azure if provider else None,
        },
        data=(layout.etcd_data,),
    )
    wakeup_read, wakeup_write = socket.socketpair()
    wakeup_write.setblocking(False)
    signal.set_wakeup_fd(wakeup_write.fileno(), warn_on_full_buffer=False)

    def stop(number: int, frame: object) -> None:
        supervisor.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)

    def wipe(number: int, frame: object) -> None:
        supervisor.wiping = True

    signal.signal(signal.SIGUSR1, wipe)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    with _listen(layout.supervisor_socket) as listener:
        supervisor.run(listener, wakeup_read)
    layout.supervisor_socket.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
