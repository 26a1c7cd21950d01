"""What the programs on the nodes share: the node's labels, a loop that goes on after failures, and the health endpoint.

Standard library only. A pod's own service account is used; which labels it may write is up to the cluster.
"""

from __future__ import annotations

import json
import logging
import os
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

log = logging.getLogger("node-agent")

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_SECONDS = 10
LONGEST_PAUSE = 60.0
LATE = 4
"""After how many periods without a success the program counts as stuck."""


class Node:
    """The node that this program runs on, as the API server has it."""

    def __init__(self, base: str, name: str, account: Path = ACCOUNT) -> None:
        self._url = f"{base}/api/v1/nodes/{quote(name)}"
        self._account = account
        authority = account / "ca.crt"
        self._tls = ssl.create_default_context(cafile=str(authority)) if base.startswith("https") else None

    @classmethod
    def own(cls) -> Node:
        """Return the node that $NODE_NAME names; raises KeyError outside of a cluster."""
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        return cls(f"https://{f'[{host}]' if ':' in host else host}:{port}", os.environ["NODE_NAME"])

    def labels(self) -> dict[str, str]:
        """Return the node's labels."""
        labels: dict[str, str] = self._ask("GET")["metadata"].get("labels", {})
        return labels

    def label(self, changes: Mapping[str, str | None]) -> None:
        """Set labels; None takes one away. Nothing is sent for no changes."""
        if changes:
            self._ask("PATCH", {"metadata": {"labels": dict(changes)}})
            log.info("labels changed: %s", dict(changes))

    def _ask(self, method: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        request = Request(self._url, method=method)
        request.add_header("Authorization", f"Bearer {(self._account / 'token').read_text().strip()}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/merge-patch+json")
        with urlopen(request, timeout=REQUEST_SECONDS, context=self._tls) as answer:
            content: dict[str, Any] = json.load(answer)
            return content


class Health:
    """When the program's work last went well, as the kubelet asks for it."""

    def __init__(self, period: float, now: Callable[[], float] = time.monotonic) -> None:
        self._period, self._now = period, now
        self._started = self._alive = now()
        self._good = False

    def passed(self, good: bool) -> None:
        """Note that a round has ended, and whether all is as it should be."""
        self._alive, self._good = self._now(), good

    @property
    def is_alive(self) -> bool:
        """Whether rounds still end."""
        return self._now() - self._alive < LATE * max(self._period, LONGEST_PAUSE)

    @property
    def is_ready(self) -> bool:
        """Whether the last round left all as it should be."""
        return self._good


def run(work: Callable[[], bool], period: float, port: int) -> None:
    """Repeat some work until the process ends, every `period` seconds, sooner after a failure.

    The work returns whether all is as it should be. What it raises of network, server or file is logged and counts as a
    failed round.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    health = Health(period)
    _serve(health, port)
    pause = 1.0
    while True:
        good = False
        try:
            good = work()
        except (OSError, HTTPException, ValueError, KeyError) as error:
            log.warning("this round failed: %s", error)
        health.passed(good)
        pause = period if good else min(2 * pause, LONGEST_PAUSE, period)
        time.sleep(pause)


def _serve(health: Health, port: int) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_well = health.is_ready if self.path == "/readyz" else health.is_alive
            self.send_response(200 if is_well else 503)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server uses
            """Keep probes out of the log."""

    threading.Thread(target=ThreadingHTTPServer(("", port), Handler).serve_forever, daemon=True).start()
