"""What the programs on the nodes share: the node's labels, a loop that goes on after failures, and the health endpoint.

Standard library only. Which labels the pod's account may write is up to the cluster.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

from components.kubernetes.in_cluster import Api

log = logging.getLogger("node-agent")

LONGEST_PAUSE = 60.0
LATE = 4
"""After how many periods without a success the program counts as stuck."""


class Node:
    """The node that this program runs on, as the API server has it."""

    def __init__(self, api: Api, name: str) -> None:
        self._api, self._path = api, f"/api/v1/nodes/{quote(name)}"

    @classmethod
    def own(cls) -> Node:
        """Return the node that $NODE_NAME names; raises KeyError outside of a cluster."""
        return cls(Api.in_cluster(), os.environ["NODE_NAME"])

    def labels(self) -> dict[str, str]:
        """Return the node's labels."""
        labels: dict[str, str] = self._api.get(self._path)["metadata"].get("labels", {})
        return labels

    def label(self, changes: Mapping[str, str | None]) -> None:
        """Set labels; None takes one away. Nothing is sent for no changes."""
        if changes:
            self._api.patch(self._path, {"metadata": {"labels": dict(changes)}})
            log.info("labels changed: %s", dict(changes))


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
