"""A real Prometheus and its targets: controllers and objects of the cluster, and simulated metrics."""

import contextlib
import http.client
import json
import math
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from components.names import SYSTEM_NAMESPACE
from components.observability import alerts, usage
from components.tenancy import slack
from emulator.paths import Paths
from emulator.toolchain import PROMETHEUS, Toolchain
from lab.dashboards import simulated
from lab.dashboards.ports import free_port
from lab.dashboards.state_metrics import state_metrics
from runner.report import connect

Series = list[tuple[Mapping[str, str], list[tuple[float, float]]]]
"""Labels, and values by time, without values that are not numbers."""
_SCRAPED = "1s"
_CONTROLLERS = ("kueue", "appwrapper", "slack-controller")
"""Their monitors overwrite the label `namespace`; the original becomes `exported_namespace`."""


class Prometheus:
    """A running Prometheus, by its API (prometheus/prometheus, docs/querying/api.md)."""

    def __init__(self, address: str) -> None:
        self.address = address

    def range(self, query: str, seconds: float) -> Series:
        """Return the result of a query for the last seconds. Raises OSError if Prometheus rejects it."""
        end = time.time()
        asked = {"query": query, "start": f"{end - seconds:.3f}", "end": f"{end:.3f}", "step": "1"}
        answer = self._get("query_range", asked)
        found: Series = []
        for item in answer["result"]:
            values = [(float(when), float(value)) for when, value in item["values"]]
            if numbers := [(when, value) for when, value in values if math.isfinite(value)]:
                found.append((item["metric"], numbers))
        return found

    def is_ready(self) -> bool:
        try:
            targets = self._get("targets", {})["activeTargets"]
        except OSError:
            return False
        return bool(targets) and all(target["health"] == "up" for target in targets)

    def _get(self, path: str, query: Mapping[str, str]) -> Any:
        with urlopen(f"{self.address}/api/v1/{path}?{urlencode(query)}", timeout=30) as answer:
            read = json.load(answer)
        return read["data"]


@contextlib.contextmanager
def prometheus(paths: Paths, folder: Path) -> Iterator[Prometheus]:
    """Run Prometheus for the local cluster of these paths, with the platform's rules. folder: for its files."""
    controllers = {
        "simulated": simulated.exposition,
        "kueue": _operator(paths, "kueue"),
        "appwrapper": _operator(paths, "appwrapper"),
        "slack-controller": _slack_controller(paths),
    }
    with contextlib.ExitStack() as stack:
        sources = {**controllers, "kube-state-metrics": stack.enter_context(state_metrics(paths, folder))}
        gateway = stack.enter_context(_gateway(sources))
        (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [*alerts.groups(), usage.group(interval=1)]}))
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(_configuration(gateway, list(sources))))
        address = f"127.0.0.1:{free_port()}"
        command = [
            str(Toolchain(paths).folder(PROMETHEUS) / "prometheus"),
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
        ]
        with (
            (folder / "prometheus.log").open("wb") as log,
            subprocess.Popen(command, stdout=log, stderr=log) as process,
        ):
            try:
                yield Prometheus(f"http://{address}")
            finally:
                process.terminate()


def _configuration(gateway: str, jobs: list[str]) -> Mapping[str, Any]:
    return {
        "global": {"scrape_interval": _SCRAPED, "scrape_timeout": _SCRAPED, "evaluation_interval": _SCRAPED},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {
                "job_name": job,
                "metrics_path": f"/{job}",
                "honor_labels": job not in _CONTROLLERS,
                "static_configs": [{"targets": [gateway], "labels": {"namespace": SYSTEM_NAMESPACE}}],
            }
            for job in jobs
        ],
    }


@contextlib.contextmanager
def _gateway(sources: Mapping[str, Callable[[float], str]]) -> Iterator[str]:
    """Serve the text of each source under its name; yield host and port. A source gets the seconds since the start."""
    begun = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = sources[self.path.strip("/")](time.monotonic() - begun).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # Prometheus waits only a second
                self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server uses
            """Keep scrapes out of the output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _operator(paths: Paths, name: str) -> Callable[[float], str]:
    """Return a reader of an operator's metrics, as an administrator with a token."""
    token = yaml.safe_load(paths.kubeconfig.read_text())["users"][0]["user"]["token"]
    address = _service(paths, f"{name}-controller-manager-metrics-service")
    return lambda _: _fetched(paths, address, 8443, {"Authorization": f"Bearer {token}"})


def _slack_controller(paths: Paths) -> Callable[[float], str]:
    """Return a reader of the slack controller's metrics, through a new Service. A real cluster scrapes its pod."""
    client = connect(paths.kubeconfig)
    services = client.resources.get(api_version="v1", kind="Service")
    ports = [{"name": slack.PORT_NAME, "port": 8080, "targetPort": slack.PORT_NAME}]
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": slack.CONTROLLER, "namespace": SYSTEM_NAMESPACE},
        "spec": {"selector": dict(slack.LABELS), "ports": ports},
    }
    services.server_side_apply(body=body, field_manager="dashboards")
    address = _service(paths, slack.CONTROLLER)
    return lambda _: _fetched(paths, address, 8080)


def _service(paths: Paths, name: str) -> str:
    client = connect(paths.kubeconfig)
    services = client.resources.get(api_version="v1", kind="Service")
    return str(services.get(name=name, namespace=SYSTEM_NAMESPACE).spec.clusterIP)


def _fetched(paths: Paths, address: str, port: int, headers: Mapping[str, str] | None = None) -> str:
    """Return `/metrics` of a Service, through the proxy that the API server uses for webhooks."""
    with socket.socket(socket.AF_UNIX) as way:
        way.connect(str(paths.run / "egress.sock"))
        way.sendall(f"CONNECT {address}:{port} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        said = b""
        while not said.endswith(b"\r\n\r\n"):
            said += way.recv(1)
        if b" 200" not in said.splitlines()[0]:
            raise OSError(f"no way to {address}: {said.decode()}")
        connection = http.client.HTTPConnection(address)
        connection.sock = _encrypted(way) if headers else way
        connection.request("GET", "/metrics", headers=dict(headers or {}))
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            raise OSError(f"{address} answers {answer.status}: {text[:200]}")
        return text


def _encrypted(way: socket.socket) -> ssl.SSLSocket:
    """Return the socket with TLS. The operators' certificates for this port are self-signed and cannot be verified."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(way)
