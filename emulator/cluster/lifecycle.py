"""Starting, stopping and asking after the local cluster."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.cluster import controlplane, lock, processes, seeds
from emulator.cluster.api import Api, ApiError
from emulator.cluster.credentials import read_kubeconfig
from emulator.cluster.layout import Layout
from emulator.cluster.seeds import SeedError
from emulator.paths import Paths

_START_SECONDS = 120.0
_STOP_SECONDS = 45.0
_WIPE_SECONDS = 90.0
_POLL_SECONDS = 0.1
_LOG_LINES = 15


class ClusterError(Exception):
    """The local cluster could not be started or stopped; the message says what to look at."""


@dataclass(frozen=True)
class ProcessStatus:
    """One supervised process.

    state: waiting (for what it needs), starting, running (and ready), restarting, or failed (ended again and again
    before it was ready; it is still retried).
    """

    name: str
    pid: int | None
    state: str
    restarts: int
    log: Path


@dataclass(frozen=True)
class ClusterStatus:
    """The cluster as it is now, asked of the living processes.

    supervisor_pid: None when no supervisor answers.
    server:         URL of the API server while a supervisor runs.
    provider_port:  port of the stand-in Kubernetes provider while the supervisor runs one.
    azure_port:     port of the emulated Azure, which stands in for azure-native and random, likewise.
    leftovers:      processes of the cluster that live without a supervisor, process id -> command line.
    """

    supervisor_pid: int | None
    processes: tuple[ProcessStatus, ...]
    api_ready: bool
    node_ready: bool
    server: str | None
    provider_port: int | None
    leftovers: dict[int, str]
    azure_port: int | None = None

    @property
    def providers(self) -> dict[str, int]:
        """Ports of the stand-in providers that run, by the plugin that each stands for."""
        ports = {"kubernetes": self.provider_port, "azure-native": self.azure_port, "random": self.azure_port}
        return {plugin: port for plugin, port in ports.items() if port is not None}

    @property
    def ready(self) -> bool:
        """Whether every process runs, the API server is ready and the local node too."""
        running = bool(self.processes) and all(process.state == "running" for process in self.processes)
        return running and self.api_ready and self.node_ready


def start(paths: Paths, report: Callable[[str], None], *, stack: str = "", provider: bool = True) -> None:
    """Start the cluster, or wait until the running one is ready; a few seconds at most when it already is.

    A cluster that was started by other code or with other binaries is started again, its data kept. `report` is given
    one line for each step. With `stack`, a new cluster gets what the project seeds that stack's cluster with.
    `provider=False` leaves the emulated providers out.

    Raises ClusterError when a binary is missing, a process fails, the cluster is not ready within two minutes, or a
    seed cannot be applied.
    """
    layout = Layout(paths)
    missing = controlplane.missing_binaries(layout)
    if missing:
        raise ClusterError(f"{paths.bin} lacks {', '.join(missing)}: build the tools first")
    layout.make_folders()
    found = _ask(layout)
    if found is not None and found["fingerprint"] != controlplane.fingerprint(layout, provider=provider):
        report("restarting the local cluster: its code or its binaries have changed")
        stop(paths)
        found = None
    daemon = None if found is not None else _launch(layout, provider=provider)
    _wait_ready(layout, report, daemon)
    if stack:
        try:
            planted = seeds.plant(Api(read_kubeconfig(paths.kubeconfig.read_text())), layout.seed(stack))
        except (ApiError, SeedError) as error:
            raise ClusterError(str(error)) from error
        if planted:
            report(f"{planted} objects of {layout.seed(stack).name} are there")


def stop(paths: Paths) -> None:
    """Stop every process of the cluster and remove its sockets and locks; the data stays.

    Works whatever is left of the cluster, and does nothing when nothing is.
    Raises ClusterError when a process cannot be ended.
    """
    layout = Layout(paths)
    for process, command in processes.find(layout).items():
        if controlplane.SUPERVISOR in command:
            processes.send(layout, process, signal.SIGTERM)
            processes.wait_gone(process, _STOP_SECONDS)
    left = processes.kill_all(layout)
    if left:
        raise ClusterError(f"these processes of the local cluster do not end: {_listed(left)}")
    if not paths.run.is_dir():
        return
    held = lock.take(layout.lock)
    if held is None:
        raise ClusterError(
            f"somebody starts the local cluster of {paths.state} at this moment: stop it again after that"
        )
    try:
        for name in layout.sockets.glob("*.sock"):
            name.unlink(missing_ok=True)
        if layout.sockets != paths.run:
            shutil.rmtree(layout.sockets, ignore_errors=True)
        shutil.rmtree(layout.pods, ignore_errors=True)
        layout.lock.unlink(missing_ok=True)
    finally:
        os.close(held)


def reset(paths: Paths) -> None:
    """Stop the cluster and remove its data: everything in etcd and in the emulated Azure, certificates, tokens and
    the kubeconfig.
    """
    stop(paths)
    layout = Layout(paths)
    for folder in (layout.etcd_data, layout.secrets):
        shutil.rmtree(folder, ignore_errors=True)
    paths.kubeconfig.unlink(missing_ok=True)
    (layout.azure / "subscription.json").unlink(missing_ok=True)


def wipe(paths: Paths) -> None:
    """Throw away everything in etcd; a running cluster starts anew, with the same addresses and credentials.

    What serves the engine goes on running. Raises ClusterError when the cluster is not ready again in time.
    """
    layout = Layout(paths)
    before = _ask(layout)
    if before is None:
        shutil.rmtree(layout.etcd_data, ignore_errors=True)
        return
    processes.send(layout, before["pid"], signal.SIGUSR1)
    deadline = time.monotonic() + _WIPE_SECONDS
    while time.monotonic() < deadline:
        found = _ask(layout)
        if found is not None and found["wipes"] > before["wipes"] and status(paths).ready:
            return
        time.sleep(_POLL_SECONDS)
    late = ", ".join(each.name for each in status(paths).processes if each.state != "running") or "the node"
    raise ClusterError(f"the emptied cluster is not ready after {_WIPE_SECONDS:.0f} s: {late}; see {paths.logs}")


def status(paths: Paths) -> ClusterStatus:
    """Ask the living processes how they are; files of an earlier life are not believed."""
    layout = Layout(paths)
    found = _ask(layout)
    if found is None:
        return ClusterStatus(None, (), False, False, None, None, processes.find(layout))
    api_ready = node_ready = False
    with contextlib.suppress(OSError, ValueError):
        api = Api(read_kubeconfig(paths.kubeconfig.read_text()), timeout=2.0)
        api_ready = api.ready()
        node_ready = api_ready and controlplane.node_ready(api)
    return ClusterStatus(
        supervisor_pid=found["pid"],
        processes=tuple(
            ProcessStatus(item["name"], item["pid"], item["state"], item["restarts"], Path(item["log"]))
            for item in found["processes"]
        ),
        api_ready=api_ready,
        node_ready=node_ready,
        server=f"https://127.0.0.1:{found['api_port']}",
        provider_port=found["provider_port"],
        leftovers={},
        azure_port=found["azure_port"],
    )


def _ask(layout: Layout) -> dict[str, Any] | None:
    """Return what the supervisor tells of itself, or None when none answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(10.0)
        try:
            connection.connect(str(layout.supervisor_socket))
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
            found = json.loads(answer)
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except (OSError, ValueError):
            return None
    pid, _, _ = struct.unpack("3i", peer)
    return found if isinstance(found, dict) and found.get("pid") == pid else None


def _launch(layout: Layout, *, provider: bool) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", controlplane.SUPERVISOR]
    command += ["--root", str(layout.paths.root), "--state", str(layout.paths.state)]
    if not provider:
        command.append("--without-provider")
    with layout.log("supervisor").open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=controlplane.environment(layout),
            cwd=layout.paths.root,
            start_new_session=True,
        )


def _wait_ready(layout: Layout, report: Callable[[str], None], daemon: subprocess.Popen[bytes] | None) -> None:
    deadline = time.monotonic() + _START_SECONDS
    told: set[str] = set()
    now = status(layout.paths)
    while not now.ready:
        if daemon is not None and daemon.poll() not in (None, 0, controlplane.LOCK_HELD):
            raise ClusterError(_failure("supervisor", "ended", layout.log("supervisor")))
        for process in now.processes:
            if process.state == "failed":
                raise ClusterError(_failure(process.name, "ends before it is ready", process.log))
            if process.state == "running" and process.name not in told:
                told.add(process.name)
                report(f"{process.name} is ready")
        if time.monotonic() > deadline:
            late = next((item for item in now.processes if item.state != "running"), None)
            name, log = (late.name, late.log) if late else ("supervisor", layout.log("supervisor"))
            raise ClusterError(_failure(name, f"is not ready after {_START_SECONDS:.0f} s", log))
        time.sleep(_POLL_SECONDS)
        now = status(layout.paths)
    for process in now.processes:
        if process.name not in told:
            report(f"{process.name} is ready")


def _failure(name: str, what: str, log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
    except OSError:
        lines = []
    tail = "\n".join(f"    {line[:300]}" for line in lines) or "    (empty)"
    return f"{name} {what}. The end of its log, {log}:\n{tail}"


def _listed(found: dict[int, str]) -> str:
    return "; ".join(f"{process} ({command[:80]})" for process, command in found.items())
