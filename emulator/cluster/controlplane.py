"""The processes of the local cluster: command lines, order, and readiness checks.

etcd listens on Unix sockets in a private folder, because its API has no users. All others listen on 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from emulator.cluster import certificates, content, credentials, images, relay
from emulator.cluster.api import Api
from emulator.cluster.layout import MARKER, NODE_NAME, SERVICE_RANGE, SIMULATED_POD_RANGE, Layout
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
_SCHEDULER_API = "kubescheduler.config.k8s.io/v1"
_POLICY_KINDS = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
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
    # The kubelet's proxy serves connections to the cluster's network (EgressSelectorConfiguration,
    # apiserver.k8s.io/v1beta1).
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(layout.socket("egress"))}}}
    egress = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
    write_private(layout.secret("egress.json"), json.dumps(egress))
    write_private(layout.secret("scheduler.json"), json.dumps(_preferring_the_local_node(layout)))


def _preferring_the_local_node(layout: Layout) -> dict[str, object]:
    """Return a scheduler's configuration that prefers the local node, where pods really run.

    The workers of an OpenShift have no taint. A controller on a simulated worker would never respond.
    KubeSchedulerConfiguration, kubescheduler.config.k8s.io/v1: `addedAffinity` of NodeAffinity.
    """
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME]}
    preference = {"weight": 100, "preference": {"matchExpressions": [here]}}
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}
    arguments = {"apiVersion": _SCHEDULER_API, "kind": "NodeAffinityArgs", "addedAffinity": affinity}
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "NodeAffinity", "weight": 100}]}},
        "pluginConfig": [{"name": "NodeAffinity", "args": arguments}],
    }
    return {
        "apiVersion": _SCHEDULER_API,
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(layout.secret("scheduler.kubeconfig"))},
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }


def processes(layout: Layout, ports: Ports, parts: Parts) -> tuple[ProcessSpec, ...]:
    """Return the processes in start order. They stop in reverse order."""
    account = credentials.read_kubeconfig(layout.paths.kubeconfig.read_text())
    api = Api(account, timeout=_TIMEOUT)
    folders = ("--root", str(layout.paths.root), "--state", str(layout.paths.state))
    filled = ("content",) if parts.content else ("kube-apiserver",)
    found = [
        ProcessSpec("etcd", _etcd(layout), lambda: accepts(layout.socket("etcd"))),
        ProcessSpec("kube-apiserver", _api_server(layout, ports, parts), api.ready, after=("etcd",), stop_seconds=8.0),
        ProcessSpec(
            "kube-controller-manager",
            _controller_manager(layout, ports),
            lambda: accepts(ports.controller_manager),
            after=filled,
        ),
        ProcessSpec(
            "kube-scheduler",
            _scheduler(layout, ports, parts),
            lambda: accepts(ports.scheduler),
            after=filled,
        ),
        ProcessSpec(
            "kwok",
            _kwok(layout, ports),
            lambda: accepts(ports.kwok),
            after=filled,
            prepare=lambda: _release_leases(Api(account)),
        ),
        ProcessSpec(
            "kubelet",
            (sys.executable, "-m", "emulator.cluster.kubelet", *folders, *(["--content"] if parts.content else [])),
            lambda: accepts(layout.socket("kubelet")) and node_ready(api),
            after=filled,
            stop_seconds=8.0,
        ),
    ]
    if parts.content:
        fill = (sys.executable, "-m", "emulator.cluster.filler", *folders)
        found.append(ProcessSpec("content", fill, lambda: content.is_complete(api), after=("kube-apiserver",)))
    if parts.openshift:
        found.append(
            ProcessSpec(
                "openshift",
                (
                    sys.executable,
                    "-m",
                    "emulator.openshift",
                    *folders,
                    *(["--operator-hub"] if parts.operator_hub else []),
                ),
                lambda: accepts(layout.socket("openshift")),
                after=("kube-apiserver",),
            )
        )
    if parts.azure:
        serve = ("serve", "--port", str(ports.azure), "--state", str(layout.paths.state))
        found.append(ProcessSpec(AZURE, (sys.executable, "-m", "emulator.azure", *serve), lambda: accepts(ports.azure)))
    if parts.openstack:
        found += _openstack(layout, ports)
    return tuple(found)


def _openstack(layout: Layout, ports: Ports) -> Iterator[ProcessSpec]:
    deployment = Deployment(layout.paths)
    for service, port in ports.openstack.items():
        yield ProcessSpec(
            service,
            deployment.command(service, port),
            partial(accepts, port),
            prepare=partial(deployment.ensure, ports.openstack),
        )
    folders = ("--root", str(layout.paths.root), "--state", str(layout.paths.state))
    yield ProcessSpec(
        programs.SOCKET,
        (sys.executable, "-m", "emulator.openstack_guest.gateway", *folders),
        lambda: accepts(layout.socket(programs.SOCKET)),
        after=("neutron", "nova"),
    )


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


def _etcd(layout: Layout) -> tuple[str, ...]:
    # The advertised addresses must be host:port, but no process connects to them, because there is only one member.
    return (
        str(layout.paths.bin / "etcd"),
        "--name=local",
        f"--data-dir={layout.etcd_data}",
        f"--listen-client-urls=unix://{layout.socket('etcd')}",
        "--advertise-client-urls=http://localhost:2379",
        f"--listen-peer-urls=unix://{layout.socket('peer')}",
        "--initial-advertise-peer-urls=http://localhost:2380",
        "--initial-cluster=local=http://localhost:2380",
        "--unsafe-no-fsync",
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=10m",
        "--log-level=warn",
    )


def _api_server(layout: Layout, ports: Ports, parts: Parts) -> tuple[str, ...]:
    secret = layout.secret
    off = ",".join(f"admissionregistration.k8s.io/v1/{kind}=false" for kind in _POLICY_KINDS)
    without_policies = (f"--runtime-config={off}", "--disable-admission-plugins=ValidatingAdmissionPolicy")
    return (
        str(layout.paths.bin / (_OPENSHIFT_API_SERVER if parts.openshift else "kube-apiserver")),
        f"--etcd-servers=unix://{layout.socket('etcd')}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.api}",
        "--advertise-address=127.0.0.1",
        # The Service `kubernetes` cannot have a loopback address as endpoint, so its endpoints are not maintained.
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={secret('apiserver.crt')}",
        f"--tls-private-key-file={secret('apiserver.key')}",
        f"--token-auth-file={secret(credentials.TOKENS)}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={secret('service-accounts.key')}",
        f"--service-account-key-file={secret('service-accounts.key')}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--egress-selector-config-file={secret('egress.json')}",
        f"--requestheader-client-ca-file={secret('ca.crt')}",
        f"--requestheader-allowed-names={certificates.NAME}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={secret('apiserver.crt')}",
        f"--proxy-client-key-file={secret('apiserver.key')}",
        "--allow-privileged=true",
        "--profiling=false",
        *(() if parts.admission_policies else without_policies),
    )


def _controller_manager(layout: Layout, ports: Ports) -> tuple[str, ...]:
    return (
        str(layout.paths.bin / "kube-controller-manager"),
        f"--kubeconfig={layout.secret('controller-manager.kubeconfig')}",
        *_secure_serving(layout, ports.controller_manager),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={layout.secret('service-accounts.key')}",
        f"--root-ca-file={layout.secret('ca.crt')}",
        # With the defaults (20, 30), requests of a new cluster's controllers wait for seconds.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        # By default a quota of a new kind counts only after 5 minutes.
        "--resource-quota-sync-period=5s",
        # Serves claims of Kubernetes' own class for tests, with a folder below /tmp for each.
        "--enable-hostpath-provisioner=true",
    )


def _scheduler(layout: Layout, ports: Ports, parts: Parts) -> tuple[str, ...]:
    plain = f"--kubeconfig={layout.secret('scheduler.kubeconfig')}"
    how = f"--config={layout.secret('scheduler.json')}" if parts.openshift else plain
    return (str(layout.paths.bin / "kube-scheduler"), how, *_secure_serving(layout, ports.scheduler))


def _secure_serving(layout: Layout, port: int) -> tuple[str, ...]:
    return (
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={layout.secret('apiserver.crt')}",
        f"--tls-private-key-file={layout.secret('apiserver.key')}",
        "--authentication-skip-lookup=true",
        "--profiling=false",
    )


def _kwok(layout: Layout, ports: Ports) -> tuple[str, ...]:
    return (
        str(layout.paths.bin / "kwok"),
        f"--kubeconfig={layout.secret('kwok.kubeconfig')}",
        f"--config={STAGES}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
        f"--cidr={SIMULATED_POD_RANGE}",
        f"--server-address=127.0.0.1:{ports.kwok}",
    )


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
