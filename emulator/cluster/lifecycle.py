"""Starting, stopping and asking after the local cluster."""

from __future__ import annotations

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
from pathlib import Path
from typing import Any

from emulator.cluster import controlplane, node, processes, seeds
from emulator.cluster.api import Api, ApiError
from emulator.cluster.cluster_status import ClusterStatus, ProcessStatus
from emulator.cluster.controlplane import Parts
from emulator.cluster.credentials import read_kubeconfig
from emulator.cluster.layout import Layout
from emulator.cluster.seeds import SeedError
from emulator.openstack.deployment import Deployment
from emulator.paths import Paths

_START_SECONDS = 480.0
_STOP_SECONDS = 45.0
_POLL_SECONDS = 0.1
_LOG_LINES = 15


class ClusterError(Exception):
    """The local cluster could not be started or stopped; the message says what to look at."""


def start(
    paths: Paths,
    report: Callable[[str], None],
    *,
    stack: str = "",
    azure: bool = True,
    admission_policies: bool = True,
    openshift: bool = False,
    operator_hub: bool = False,
    openstack: bool = False,
    content: bool = False,
    owner: int | None = None,
) -> None:
    """Start the cluster, or wait until the running one is ready; a few seconds at most when it already is.

    A cluster that was started by other code or with other binaries is started again, its data kept. `report` is given
    one line for each step. With `stack`, a new cluster gets what the project seeds that stack's cluster with.
    `azure=False` leaves the emulated Azure out, `admission_policies=False` the API of those. With `openshift`
    the cluster is an OpenShift, with `operator_hub` one that installs operators from a catalog; with `openstack` an
    OpenStack runs beside it. With `content` it is filled first with what `Layout.content` holds. It is stopped
    when the process `owner` has ended, by whatever.

    Raises ClusterError when a binary is missing, a process fails, the cluster is not ready within eight minutes, a seed
    cannot be applied, or other releases of OpenStack made what this environment holds.
    """
    layout = Layout(paths)
    parts = Parts(
        azure=azure,
        admission_policies=admission_policies,
        openshift=openshift,
        operator_hub=operator_hub,
        openstack=openstack,
        content=content,
    )
    missing = controlplane.missing_binaries(layout, parts)
    if missing:
        raise ClusterError(f"{paths.bin} lacks {', '.join(missing)}: build the tools first")
    if openstack and Deployment(paths).foreign:
        raise ClusterError(
            "other releases of OpenStack made what the local one holds, and these cannot read it: `make clean` forgets "
            "it, and the local clusters' data with it"
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
            planted = seeds.plant(Api(read_kubeconfig(paths.kubeconfig.read_text())), layout.seed(stack))
        except (ApiError, SeedError) as error:
            raise ClusterError(str(error)) from error
        if planted:
            report(f"{planted} objects of {layout.seed(stack).name} are there")


def stop(paths: Paths) -> None:
    """Stop every process of the cluster and remove its sockets; the data stays.

    Works whatever is left of the cluster, and does nothing when nothing is.
    Raises ClusterError when a process cannot be ended.
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
    """End every process of the cluster at once and remove its sockets, for who throws its data away.

    Raises ClusterError when a process cannot be ended.
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
    """End the cluster and remove its data.

    That is everything in etcd, in the emulated Azure and in OpenStack, certificates, tokens and the kubeconfig.
    """
    kill(paths)
    layout = Layout(paths)
    for folder in (layout.etcd_data, layout.secrets, layout.paths.openstack):
        shutil.rmtree(folder, ignore_errors=True)
    paths.kubeconfig.unlink(missing_ok=True)
    layout.content.unlink(missing_ok=True)
    (layout.azure / "subscription.json").unlink(missing_ok=True)


def wipe(paths: Paths) -> None:
    """Throw away everything in etcd and in OpenStack; a running cluster starts anew.

    Addresses and credentials stay the same, and what serves the engine goes on running. Raises ClusterError when the
    cluster is not ready again in time.
    """
    layout = Layout(paths)
    if _ask(layout, "wipe") is None:
        for folder in (layout.etcd_data, layout.paths.openstack):
            shutil.rmtree(folder, ignore_errors=True)
        return
    _wait_ready(layout, lambda line: None)


def status(paths: Paths) -> ClusterStatus:
    """Ask the living processes how they are; files of an earlier life are not believed."""
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
    """Return what the supervisor answers, or None when none does."""
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
    if not parts.azure:
        command.append("--without-azure")
    if not parts.admission_policies:
        command.append("--without-admission-policies")
    if parts.openshift:
        command.append("--openshift")
    if parts.operator_hub:
        command.append("--operator-hub")
    if parts.openstack:
        command.append("--openstack")
    if parts.content:
        command.append("--content")
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
