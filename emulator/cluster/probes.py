"""Readiness, liveness and startup probes of a container: schedule, requests and results."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from emulator.cluster.api import Object
from emulator.cluster.errors import UnsupportedError

Connect = Callable[[int], socket.socket]
"""Port -> a socket connected to it in the pod's network; raises an Exception if refused."""


@dataclass
class Probe:
    """One probe of a running container (k8s.io/api/core/v1, Probe), with its results.

    The state changes after `failureThreshold` failures or `successThreshold` successes in a row. Times are seconds of
    time.monotonic().

    passed: the current state.
    eager: run every half second until the first success, ignoring delay and period. The state can only improve
           earlier, and a local start takes seconds.
    """

    spec: Object
    ports: dict[str, int]
    passed: bool
    eager: bool
    started: float
    due: float = 0.0
    _streak: int = 0
    _succeeded: bool = False

    @classmethod
    def of(cls, container: Object, kind: str, now: float) -> Probe | None:
        """Return the container's probe of a kind (`readinessProbe`, ...), or None.

        Raises UnsupportedError for exec and gRPC probes.
        """
        spec = container.get(kind)
        if not spec:
            return None
        if "httpGet" not in spec and "tcpSocket" not in spec:
            name = container["name"]
            raise UnsupportedError(f"container {name}: the local kubelet supports only httpGet and tcpSocket probes")
        ports = {port["name"]: port["containerPort"] for port in container.get("ports") or [] if "name" in port}
        probe = cls(spec, ports, passed=kind == "livenessProbe", eager=kind != "livenessProbe", started=now)
        probe.due = now if probe.eager else now + spec.get("initialDelaySeconds", 0)
        return probe

    def run(self, connect: Connect, now: float) -> bool:
        """Run the probe if it is due; return whether its state is passed."""
        if now < self.due:
            return self.passed
        self._conclude(self._ask(connect))
        waiting = self.eager and not self._succeeded
        self.due = now + (0.5 if waiting else self.spec.get("periodSeconds") or 10)
        return self.passed

    def is_hopeless(self, now: float) -> bool:
        """Tell whether a startup probe has failed until its time limit."""
        patience: float = (self.spec.get("failureThreshold") or 3) * (self.spec.get("periodSeconds") or 10)
        return now > self.started + float(self.spec.get("initialDelaySeconds") or 0) + patience

    def _conclude(self, success: bool) -> None:
        if success:
            self._succeeded = True
        if success == self.passed:
            self._streak = 0
            return
        self._streak += 1
        threshold = self.spec.get("successThreshold") or 1 if success else self.spec.get("failureThreshold") or 3
        if self._streak >= threshold:
            self.passed, self._streak = success, 0

    def _ask(self, connect: Connect) -> bool:
        action = self.spec.get("httpGet") or self.spec["tcpSocket"]
        port = action["port"] if isinstance(action["port"], int) else self.ports.get(action["port"])
        if port is None:
            return False
        try:
            with connect(port) as connection:
                connection.settimeout(self.spec.get("timeoutSeconds") or 1)
                return True if "tcpSocket" in self.spec else _get(connection, action)
        except Exception:
            return False


def _get(connection: socket.socket, action: Object) -> bool:
    if action.get("scheme") == "HTTPS":
        # A kubelet does not verify the certificate either.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = context.wrap_socket(connection)
    client = http.client.HTTPConnection("localhost")
    client.sock = connection
    headers = {header["name"]: header["value"] for header in action.get("httpHeaders") or []}
    try:
        client.request("GET", action.get("path") or "/", headers={"User-Agent": "kube-probe/local", **headers})
        return 200 <= client.getresponse().status < 400
    finally:
        client.close()
