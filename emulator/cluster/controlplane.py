"""The processes of the local cluster: command lines (`controlplane.yaml`), order, and readiness checks.

etcd listens on Unix sockets in a private folder, because its API has no users. All others listen on 127.0.0.1.
"""

import contextlib
import hashlib
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from emulator.cluster import certificates, content, credentials, images, relay
from emulator.cluster.api import Api
from emulator.cluster.layout import MARKER, NODE_NAME, Layout
from emulator.cluster.node import node_ready
from emulator.cluster.ports import Ports
from emulator.openstack.deployment import Deployment
from emulator.openstack_guest import programs
from runner.files import write_private

SUPERVISOR = "emulator.cluster.supervisor"
LOCK_HELD = 3
"""Exit status of a supervisor if another one runs."""

AZURE = "azure"
"""Serves the engine. It keeps running when the cluster's content is deleted."""

STAGES = Path(__file__).with_name("stages.yaml")
_PACKAGE_ROOT = Path(__file__).resolve().parent.parent.parent
_BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", relay.PROGRAM)
_OPENSHIFT_API_SERVER = "openshift-kube-apiserver"
_COMMANDS = Path(__file__).with_suffix(".yaml")
_TEMPLATES = Path(__file__).with_name("templates")
_TIMEOUT = 1.0


@dataclass(frozen=True)
class ProcessSpec:
    """One process to supervise.

    after: processes that must have been ready before this one starts.
    ready: called repeatedly from the supervisor's only thread, so it must return within about a second.
    stop_seconds: time between SIGTERM and SIGKILL.
    prepare: called before each start; raises ApiError to be called again.
    """

    name: str
    command: tuple[str, ...]
    ready: Callable[[], bool]
    after: tuple[str, ...] = ()
    stop_seconds: float = 5.0
    prepare: Callable[[], object] = lambda: None


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of the cluster that run.

    azure: the emulated Azure.
    admission_policies: the API of ValidatingAdmissionPolicies, which clusters before Kubernetes 1.30 do not have.
    openshift: the cluster is an OpenShift.
    operator_hub: the OpenShift installs operators from a catalog.
    openstack: an OpenStack runs with the cluster.
    content: the cluster is a replica, filled with another cluster's content before controllers start.
    """

    azure: bool = True
    admission_policies: bool = True
    openshift: bool = False
    operator_hub: bool = False
    openstack: bool = False
    content: bool = False


def environment(layout: Layout) -> dict[str, str]:
    """Return the environment of every supervised process.

    It has a few inherited variables and no proxy settings, because no connection may leave the machine.
    """
    inherited = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "XDG_RUNTIME_DIR", "TMPDIR", "GOGC")
    kept = {name: os.environ[name] for name in inherited if name in os.environ}
    kept["PATH"] = os.pathsep.join([str(layout.azure_bin), str(layout.guests_bin), kept.get("PATH", os.defpath)])
    return {**kept, MARKER: str(layout.paths.state), "PYTHONPATH": str(_PACKAGE_ROOT), "PYTHONUNBUFFERED": "1"}


def prepare(layout: Layout, ports: Ports, parts: Parts) -> None:
    """Write certificates, tokens, kubeconfigs, the API server's egress configuration, and OpenStack's files."""
    if parts.openstack:
        deployment = Deployment(layout.paths)
        deployment.ensure(ports.openstack)
        deployment.fit(ports.openstack)
        programs.install(layout)
    certificates.ensure(layout.secrets)
    credentials.write(layout, ports.api)
    for name in ("egress.yaml", "scheduler.yaml"):
        text = (_TEMPLATES / name).read_text()
        write_private(layout.secret(name), text.format(layout=layout, node=NODE_NAME))


def processes(layout: Layout, ports: Ports, parts: Parts) -> tuple[ProcessSpec, ...]:
    """Return the processes in start order. They stop in reverse order."""
    account = credentials.read_kubeconfig(layout.paths.kubeconfig.read_text())
    api = Api(account, timeout=_TIMEOUT)
    commands = _commands(layout, ports, parts)
    api_server = (*commands["kube-apiserver"], *(() if parts.admission_policies else commands["without-policies"]))
    kubelet = (*commands["kubelet"], *(("--content",) if parts.content else ()))
    filled = ("content",) if parts.content else ("kube-apiserver",)

    def plain(name: str, address: int | Path, after: tuple[str, ...] = filled, **options: Any) -> ProcessSpec:
        return ProcessSpec(name, commands[name], partial(accepts, address), after, **options)

    found = [
        plain("etcd", layout.socket("etcd"), after=()),
        ProcessSpec("kube-apiserver", api_server, api.ready, after=("etcd",), stop_seconds=8.0),
        plain("kube-controller-manager", ports.controller_manager),
        plain("kube-scheduler", ports.scheduler),
        plain("kwok", ports.kwok, prepare=lambda: _release_leases(Api(account))),
        ProcessSpec(
            "kubelet",
            kubelet,
            lambda: accepts(layout.socket("kubelet")) and node_ready(api),
            after=filled,
            stop_seconds=8.0,
        ),
    ]
    if parts.content:
        is_filled = partial(content.is_complete, api)
        found.append(ProcessSpec("content", commands["content"], is_filled, after=("kube-apiserver",)))
    if parts.openshift:
        command = (*commands["openshift"], *(("--operator-hub",) if parts.operator_hub else ()))
        ready = partial(accepts, layout.socket("openshift"))
        found.append(ProcessSpec("openshift", command, ready, after=("kube-apiserver",)))
    if parts.azure:
        found.append(plain(AZURE, ports.azure, after=()))
    if parts.openstack:
        deployment = Deployment(layout.paths)
        ensure = partial(deployment.ensure, ports.openstack)
        for service, port in ports.openstack.items():
            command = deployment.command(service, port)
            found.append(ProcessSpec(service, command, partial(accepts, port), prepare=ensure))
        found.append(plain(programs.SOCKET, layout.socket(programs.SOCKET), after=("neutron", "nova")))
    return tuple(found)


def _commands(layout: Layout, ports: Ports, parts: Parts) -> dict[str, tuple[str, ...]]:
    """Return the command lines in `controlplane.yaml`, by process."""
    plain = f"--kubeconfig={layout.secret('scheduler.kubeconfig')}"
    values = {
        "bin": layout.paths.bin,
        "layout": layout,
        "ports": ports,
        "python": sys.executable,
        "stages": STAGES,
        "api_server": _OPENSHIFT_API_SERVER if parts.openshift else "kube-apiserver",
        "scheduler_option": f"--config={layout.secret('scheduler.yaml')}" if parts.openshift else plain,
    }
    found = yaml.safe_load(_COMMANDS.read_text())
    return {name: tuple(each.format(**values) for each in command) for name, command in found.items()}


def fingerprint(layout: Layout, parts: Parts) -> str:
    """Return a digest of the emulator's code, the project's simulations and the binaries.

    A running cluster with another digest was started by other code and must be restarted.
    """
    package = _PACKAGE_ROOT / "emulator"
    files = sorted(file for file in package.rglob("*") if file.suffix in (".py", ".yaml", ".conf"))
    files.append(layout.simulations)
    files += [
        (layout.paths.bin / name).resolve() for name in sorted({*_BINARIES, _OPENSHIFT_API_SERVER, *images.binaries()})
    ]
    digest = hashlib.sha256(repr((sys.executable, parts)).encode())
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            found = file.stat()
            digest.update(repr((str(file), found.st_mtime_ns, found.st_size)).encode())
    return digest.hexdigest()


def missing_binaries(layout: Layout, parts: Parts) -> list[str]:
    """Return the names of required binaries that are not in the bin folder."""
    wanted = (*_BINARIES, *((_OPENSHIFT_API_SERVER,) if parts.openshift else ()))
    missing = [name for name in wanted if not os.access(layout.paths.bin / name, os.X_OK)]
    return [*missing, *(["OpenStack"] if parts.openstack and not Deployment(layout.paths).installed else [])]


def _release_leases(api: Api) -> None:
    """Delete the leases of the nodes.

    A new KWOK has a new identity, and would not manage its nodes until the old leases expire.
    """
    api.delete("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", {})


def accepts(address: int | Path) -> bool:
    """Tell whether a port of 127.0.0.1 or a Unix socket accepts connections."""
    family = socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT)
        target = str(address) if isinstance(address, Path) else ("127.0.0.1", address)
        return connection.connect_ex(target) == 0
