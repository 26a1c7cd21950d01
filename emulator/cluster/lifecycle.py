"""Start, stop and status of the local cluster."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from emulator.cluster import controlplane, node, processes, seeds
from emulator.cluster.api import Api, ApiError
from emulator.cluster.cluster_status import ClusterStatus, ProcessStatus
from emulator.cluster.controlplane import Parts
from emulator.cluster.credentials import read_kubeconfig
from emulator.cluster.layout import Layout
from emulator.cluster.seeds import SeedError
from emulator.distribution import read_config
from emulator.openstack.deployment import Deployment
from emulator.paths import Paths

_START_SECONDS = 480.0
_STOP_SECONDS = 45.0
_POLL_SECONDS = 0.1
_LOG_LINES = 15


class ClusterError(Exception):
    """The local cluster cannot be started or stopped; the message names the cause or a log."""


def start(
    paths: Paths,
    report: Callable[[str], None],
    *,
    stack: str = "",
    owner: int | None = None,
    **flags: bool,
) -> None:
    """Start the cluster and wait until it is ready. Takes a few seconds if it already runs.

    A cluster that other code or other binaries started is restarted with its data.

    report: called with one line for each step.
    stack: a new cluster gets the project's seeds of this stack.
    owner: process id; the cluster stops when this process ends.
    flags: see `Parts`. Its content is that of `Layout.content`.

    Raises ClusterError if a binary is missing, a process fails, the cluster is not ready within eight minutes, a seed
    cannot be applied, or another release of OpenStack wrote this environment's data.
    """
    layout = Layout(paths)
    parts = Parts(**flags)
    missing = controlplane.missing_binaries(layout, parts)
    if missing:
        raise ClusterError(f"{', '.join(missing)} missing in {paths.bin}. Build the tools first")
    if parts.openstack and Deployment(paths).foreign:
        raise ClusterError(
            "another release of OpenStack wrote the local data, which this release cannot read. Run "
            "`make clean`, which deletes all local data"
        )
    layout.make_folders()
    found = _ask(layout)
    if found is not None and found["fingerprint"] != controlplane.fingerprint(layout, parts):
        report("restarting the local cluster: its code or its binaries have changed")
        stop(paths)
        found = None
    daemon = None if found is not None else _launch(layout, parts, owner)
    _wait_ready(layout, report, daemon)
    if stack:
        try:
            planted = _plant(layout, stack)
        except (ApiError, SeedError) as error:
            raise ClusterError(str(error)) from error
        if planted:
            report(f"{planted} objects of the site exist")


def _plant(layout: Layout, stack: str) -> int:
    """Apply the seeds of a stack, or of its target with what the stack's settings name. Return their number."""
    api = Api(read_kubeconfig(layout.paths.kubeconfig.read_text()))
    if layout.seed(stack).exists():
        return seeds.plant(api, layout.seed(stack))
    config = read_config(layout.paths.root, stack)
    return seeds.plant(api, layout.seed(str(config.get("mlbatch:target"))), config.get("mlbatch:cluster"))


def stop(paths: Paths) -> None:
    """Stop all processes of the cluster and remove its sockets. The data stays.

    Also works for a partly running cluster. Has no effect if no process runs. Raises ClusterError if a process does not
    end.
    """
    layout = Layout(paths)
    found = _ask(layout)
    if found is not None:
        os.kill(found["pid"], signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while processes.find(layout) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    _end(layout)


def kill(paths: Paths) -> None:
    """Kill all processes of the cluster and remove its sockets, before its data is deleted.

    Raises ClusterError if a process does not end.
    """
    _end(Layout(paths))


def _end(layout: Layout) -> None:
    left = processes.kill_all(layout)
    if left:
        listed = "; ".join(f"{process} ({command[:80]})" for process, command in left.items())
        raise ClusterError(f"these processes of the local cluster do not end: {listed}")
    for name in layout.sockets.glob("*.sock"):
        name.unlink(missing_ok=True)
    if layout.sockets != layout.paths.run:
        shutil.rmtree(layout.sockets, ignore_errors=True)
    shutil.rmtree(layout.pods, ignore_errors=True)


def reset(paths: Paths) -> None:
    """Kill the cluster and delete its data.

    Deletes the data of etcd, the emulated Azure and OpenStack, certificates, tokens and the kubeconfig.
    """
    kill(paths)
    layout = Layout(paths)
    for folder in (layout.etcd_data, layout.secrets, layout.paths.openstack):
        shutil.rmtree(folder, ignore_errors=True)
    paths.kubeconfig.unlink(missing_ok=True)
    layout.content.unlink(missing_ok=True)
    (layout.azure / "subscription.json").unlink(missing_ok=True)


def wipe(paths: Paths) -> None:
    """Delete everything in etcd and in OpenStack. A running cluster starts again, empty.

    Addresses and credentials stay the same, and the emulated Azure keeps running. Raises ClusterError if the cluster is
    not ready again in time.
    """
    layout = Layout(paths)
    if _ask(layout, "wipe") is None:
        for folder in (layout.etcd_data, layout.paths.openstack):
            shutil.rmtree(folder, ignore_errors=True)
        return
    _wait_ready(layout, lambda line: None)


def status(paths: Paths) -> ClusterStatus:
    """Return the state that the running processes report. Files of earlier processes are ignored."""
    layout = Layout(paths)
    found = _ask(layout)
    if found is None:
        return ClusterStatus(None, (), False, None, processes.find(layout))
    node_ready = False
    with contextlib.suppress(OSError, ValueError):
        node_ready = node.node_ready(Api(read_kubeconfig(paths.kubeconfig.read_text()), timeout=2.0))
    return ClusterStatus(
        supervisor_pid=found["pid"],
        processes=tuple(ProcessStatus(**{**item, "log": Path(item["log"])}) for item in found["processes"]),
        node_ready=node_ready,
        server=found["server"],
        leftovers={},
        azure_port=found["azure_port"],
        openstack=found["openstack"],
    )


def _ask(layout: Layout, what: str = "status") -> dict[str, Any] | None:
    """Return the supervisor's response, or None without a supervisor."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_STOP_SECONDS)
        try:
            connection.connect(str(layout.socket("supervisor")))
            connection.sendall(what.encode())
            found: dict[str, Any] = json.loads(b"".join(iter(lambda: connection.recv(65536), b"")))
        except (OSError, ValueError):
            return None
    return found


def _launch(layout: Layout, parts: Parts, owner: int | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", controlplane.SUPERVISOR]
    command += ["--root", str(layout.paths.root), "--state", str(layout.paths.state)]
    command += ["--parts", json.dumps(asdict(parts))]
    if owner is not None:
        command += ["--owner", str(owner)]
    layout.log("supervisor").touch(mode=0o600)
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


def _wait_ready(layout: Layout, report: Callable[[str], None], daemon: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + _START_SECONDS
    told: set[str] = set()
    while True:
        now = status(layout.paths)
        for process in now.processes:
            if process.state == "failed":
                raise ClusterError(_failure(process.name, "ends before it is ready", process.log))
            if process.state == "running" and process.name not in told:
                told.add(process.name)
                report(f"{process.name} is ready")
        if now.ready:
            return
        if daemon is not None and daemon.poll() not in (None, 0, controlplane.LOCK_HELD):
            raise ClusterError(_failure("supervisor", "ended", layout.log("supervisor")))
        if time.monotonic() > deadline:
            late = next((item for item in now.processes if item.state != "running"), None)
            name, log = (late.name, late.log) if late else ("supervisor", layout.log("supervisor"))
            raise ClusterError(_failure(name, f"is not ready after {_START_SECONDS:.0f} s", log))
        time.sleep(_POLL_SECONDS)


def _failure(name: str, what: str, log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else []
    tail = "\n".join(f"    {line[:300]}" for line in lines) or "    (empty)"
    return f"{name} {what}. The end of its log, {log}:\n{tail}"
