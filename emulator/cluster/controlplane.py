"""The processes of the local cluster: their command lines, their order and how to tell that each is ready.

etcd listens on Unix sockets in a private folder, since its API knows no user; everything else listens on 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import socket
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emulator.cluster import certificates, images
from emulator.cluster.api import Api, ApiError, is_ready
from emulator.cluster.credentials import Account, read_kubeconfig, write_kubeconfigs
from emulator.cluster.layout import MARKER, NODE_NAME, SERVICE_RANGE, SIMULATED_POD_RANGE, Layout, write_private
from emulator.cluster.ports import Ports

SUPERVISOR = "emulator.cluster.supervisor"
LOCK_HELD = 3
"""Exit status of a supervisor when another one runs."""

PROVIDER, AZURE = "provider", "azure"
OUTLIVING = (PROVIDER, AZURE)
"""What serves the engine, and goes on when the cluster's content is thrown away."""

STAGES = Path(__file__).with_name("stages.yaml")
_PACKAGE_ROOT = Path(__file__).resolve().parent.parent.parent
_BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
_TIMEOUT = 1.0


@dataclass(frozen=True)
class ProcessSpec:
    """One process to supervise.

    after: processes that must have been ready before this one starts.
    ready: asked again and again from the supervisor's only thread, so it must answer within about a second.
    stop_seconds: how long it may take to end after SIGTERM before it is killed.
    prepare: done before each start; raises ApiError when that has to be tried again.
    """

    name: str
    command: tuple[str, ...]
    ready: Callable[[], bool]
    after: tuple[str, ...] = ()
    stop_seconds: float = 5.0
    prepare: Callable[[], object] = lambda: None


def environment(layout: Layout) -> dict[str, str]:
    """Return the environment of every supervised process.

    A short list of inherited variables and no proxy settings: nothing here may leave the machine.
    """
    inherited = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "XDG_RUNTIME_DIR", "TMPDIR")
    kept = {name: os.environ[name] for name in inherited if name in os.environ}
    kept["PATH"] = os.pathsep.join([str(layout.azure_bin), kept.get("PATH", os.defpath)])
    return {**kept, MARKER: str(layout.paths.state), "PYTHONPATH": str(_PACKAGE_ROOT), "PYTHONUNBUFFERED": "1"}


def prepare(layout: Layout, ports: Ports) -> None:
    """Write certificates, tokens, kubeconfigs and the API server's egress configuration."""
    certificates.ensure(layout.secrets)
    write_kubeconfigs(layout, ports.api)
    write_private(layout.secret("egress.json"), json.dumps(_egress_configuration(layout), indent=2) + "\n")


def _egress_configuration(layout: Layout) -> dict[str, object]:
    """EgressSelectorConfiguration (apiserver.k8s.io/v1beta1): calls to the cluster's network go to the proxy."""
    connection = {
        "proxyProtocol": "HTTPConnect",
        "transport": {"uds": {"udsName": str(layout.egress_socket)}},
    }
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }


def processes(layout: Layout, ports: Ports, *, provider: bool) -> tuple[ProcessSpec, ...]:
    """Return the processes in the order in which they start; they stop in the reverse order."""
    account = read_kubeconfig(layout.paths.kubeconfig.read_text())
    api = Api(account, timeout=_TIMEOUT)
    state = str(layout.paths.state)
    found = [
        ProcessSpec("etcd", _etcd(layout), lambda: _etcd_healthy(layout.etcd_socket)),
        ProcessSpec(
            "kube-apiserver",
            _api_server(layout, ports),
            lambda: api.ready(timeout=_TIMEOUT),
            after=("etcd",),
            stop_seconds=8.0,
        ),
        ProcessSpec(
            "kube-controller-manager",
            _controller_manager(layout, ports),
            lambda: _healthy(ports.controller_manager),
            after=("kube-apiserver",),
        ),
        ProcessSpec(
            "kube-scheduler", _scheduler(layout, ports), lambda: _healthy(ports.scheduler), after=("kube-apiserver",)
        ),
        ProcessSpec(
            "kwok",
            _kwok(layout, ports),
            lambda: _healthy(ports.kwok, tls=False),
            after=("kube-apiserver",),
            prepare=lambda: _release_leases(account),
        ),
        ProcessSpec(
            "kubelet",
            (sys.executable, "-m", "emulator.cluster.kubelet", "--root", str(layout.paths.root), "--state", state),
            lambda: accepts(layout.kubelet_socket) and node_ready(api),
            after=("kube-apiserver",),
            stop_seconds=8.0,
        ),
    ]
    if provider:
        command = (sys.executable, "-m", "emulator.provider", "--port", str(ports.provider))
        reaching = ("--api-server", account.server)
        found.append(ProcessSpec(PROVIDER, (*command, *reaching), lambda: accepts(ports.provider)))
        serve = ("serve", "--port", str(ports.azure), "--state", state)
        found.append(ProcessSpec(AZURE, (sys.executable, "-m", "emulator.azure", *serve), lambda: accepts(ports.azure)))
    return tuple(found)


def fingerprint(layout: Layout, *, provider: bool) -> str:
    """Return a digest that changes when the code of the daemon's processes or one of their binaries does.

    A running cluster whose fingerprint differs was started by other code and has to be started again.
    """
    package = _PACKAGE_ROOT / "emulator"
    files = sorted(file for file in package.rglob("*") if file.suffix in (".py", ".yaml"))
    files.append(layout.simulations)
    files += [(layout.paths.bin / name).resolve() for name in sorted({*_BINARIES, *images.binaries()})]
    digest = hashlib.sha256(repr((sys.executable, provider)).encode())
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            found = file.stat()
            digest.update(repr((str(file), found.st_mtime_ns, found.st_size)).encode())
    return digest.hexdigest()


def missing_binaries(layout: Layout) -> list[str]:
    """Return the names of the binaries that the cluster needs and the bin folder lacks."""
    return [name for name in _BINARIES if not os.access(layout.paths.bin / name, os.X_OK)]


def _etcd(layout: Layout) -> tuple[str, ...]:
    # The advertised addresses must be host:port; with one member and an explicit endpoint nobody dials them.
    return (
        str(layout.paths.bin / "etcd"),
        "--name=local",
        f"--data-dir={layout.etcd_data}",
        f"--listen-client-urls=unix://{layout.etcd_socket}",
        "--advertise-client-urls=http://localhost:2379",
        f"--listen-peer-urls=unix://{layout.sockets / 'peer.sock'}",
        "--initial-advertise-peer-urls=http://localhost:2380",
        "--initial-cluster=local=http://localhost:2380",
        "--unsafe-no-fsync",
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=10m",
        "--log-level=warn",
    )


def _api_server(layout: Layout, ports: Ports) -> tuple[str, ...]:
    secret = layout.secret
    return (
        str(layout.paths.bin / "kube-apiserver"),
        f"--etcd-servers=unix://{layout.etcd_socket}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.api}",
        "--advertise-address=127.0.0.1",
        # A loopback address is not a valid endpoint of the Service `kubernetes`, so nobody maintains its endpoints.
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={secret('serving.crt')}",
        f"--tls-private-key-file={secret('serving.key')}",
        f"--client-ca-file={secret('ca.crt')}",
        f"--token-auth-file={layout.token_file}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={secret('service-account.key')}",
        f"--service-account-key-file={secret('service-account.pub')}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--egress-selector-config-file={secret('egress.json')}",
        f"--requestheader-client-ca-file={secret('front-proxy-ca.crt')}",
        f"--requestheader-allowed-names={certificates.FRONT_PROXY_USER}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={secret('front-proxy-client.crt')}",
        f"--proxy-client-key-file={secret('front-proxy-client.key')}",
        "--allow-privileged=true",
        "--profiling=false",
    )


def _controller_manager(layout: Layout, ports: Ports) -> tuple[str, ...]:
    return (
        str(layout.paths.bin / "kube-controller-manager"),
        f"--kubeconfig={layout.secret('controller-manager.kubeconfig')}",
        *_secure_serving(layout, ports.controller_manager),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={layout.secret('service-account.key')}",
        f"--root-ca-file={layout.secret('ca.crt')}",
        # The defaults (20, 30) make the controllers of a fresh cluster queue for seconds.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--profiling=false",
    )


def _scheduler(layout: Layout, ports: Ports) -> tuple[str, ...]:
    return (
        str(layout.paths.bin / "kube-scheduler"),
        f"--kubeconfig={layout.secret('scheduler.kubeconfig')}",
        *_secure_serving(layout, ports.scheduler),
        "--profiling=false",
    )


def _secure_serving(layout: Layout, port: int) -> tuple[str, ...]:
    return (
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={layout.secret('serving.crt')}",
        f"--tls-private-key-file={layout.secret('serving.key')}",
        "--authentication-skip-lookup=true",
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


def _release_leases(account: Account) -> None:
    """Delete the leases of the simulated nodes.

    A new KWOK has a new identity and would leave its nodes alone until the leases of the one before have run out.
    """
    others = f"?fieldSelector=metadata.name!={NODE_NAME}"
    Api(account).delete(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases{others}", {})


def node_ready(api: Api) -> bool:
    """Tell whether the node of the local kubelet exists and is Ready."""
    try:
        return is_ready(api.get(f"/api/v1/nodes/{NODE_NAME}"))
    except ApiError:
        return False


def accepts(address: int | Path) -> bool:
    """Tell whether something accepts connections on a port of 127.0.0.1 or on a Unix socket."""
    family = socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT)
        target = str(address) if isinstance(address, Path) else ("127.0.0.1", address)
        return connection.connect_ex(target) == 0


def _healthy(port: int, *, tls: bool = True) -> bool:
    """Ask /healthz on loopback. The server's certificate is not checked: nothing is sent that could be stolen."""
    connection: http.client.HTTPConnection
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_TIMEOUT, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT)
    return _asks_200(connection, "/healthz")


def _etcd_healthy(path: Path) -> bool:
    connection = http.client.HTTPConnection("localhost", timeout=_TIMEOUT)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.settimeout(_TIMEOUT)
    try:
        connection.sock.connect(str(path))
    except OSError:
        connection.sock.close()
        return False
    return _asks_200(connection, "/health")


def _asks_200(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
