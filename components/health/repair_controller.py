"""Take nodes with broken GPUs out of service, and return those that passed the health gate.

Runs in the cluster; standard library only. `repair_state` has the decisions. Each round reads the nodes and, if there
is a Prometheus, its firing alerts, and patches the taint and the annotation of nodes that change. The patch of a node
that changed in the meantime fails, and the next round reads the node again.

Usage: python -m components.health.repair_controller SETTINGS. SETTINGS is a JSON file with these keys:

    signals      the rows of signals.yaml (`repair_state.Signal`)
    gpu          the resource that GPU nodes offer
    gate         the annotation of the health gate's report
    mostPercent  percent of the GPU nodes that may be out of service
    seconds      between rounds
    prometheus   its address, or null
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from components.health.repair_state import Json, Signal, decide, is_out, repair_of
from components.kubernetes.in_cluster import Api

NODES = "/api/v1/nodes"
PAGE = "50"
"""Nodes in one answer."""
SECONDS = 10
"""Bound of Prometheus's answer."""
log = logging.getLogger("repair-controller")


def work(api: Api, settings: Json, alerts: Sequence[Json]) -> None:
    """Look at all GPU nodes once. Raises OSError if the API server does not answer."""
    signals = [Signal(**each) for each in settings["signals"]]
    nodes = [node for node in listed(api) if _has_gpus(node, settings["gpu"]) or repair_of(node) is not None]
    most = max(1, len(nodes) * settings["mostPercent"] // 100)
    out = sum(map(is_out, nodes))
    for node in nodes:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        patch = decide(node, signals, alerts, now, has_room=out < most, gate=settings["gate"])
        if patch is not None and _write(api, node, patch):
            after = patch["metadata"]["annotations"]
            out += is_out({"metadata": {"annotations": after}}) - is_out(node)
            log.info("%s: %s", node["metadata"]["name"], *after.values())


def listed(api: Api) -> Iterator[Json]:
    """Yield all nodes, page by page."""
    query = {"limit": PAGE}
    while True:
        page = api.get(NODES, **query)
        yield from page["items"]
        if not (rest := page["metadata"].get("continue")):
            return
        query["continue"] = rest


def firing(prometheus: str | None) -> list[Json]:
    """Return the firing alerts, none without a Prometheus. Raises OSError if it does not answer.

    The API is that of prometheus/prometheus, docs/querying/api.md.
    """
    if prometheus is None:
        return []
    with urlopen(f"{prometheus}/api/v1/alerts", timeout=SECONDS) as answer:  # noqa: S310, from the settings
        try:
            found: list[Json] = json.load(answer)["data"]["alerts"]
            return [alert for alert in found if alert["state"] == "firing"]
        except (HTTPException, KeyError, TypeError, ValueError) as error:
            raise OSError(f"Prometheus's answer has no alerts: {error!r}") from error


def _has_gpus(node: Json, gpu: str) -> bool:
    return str((node.get("status", {}).get("capacity") or {}).get(gpu, "0")) != "0"


def _write(api: Api, node: Json, patch: Json) -> bool:
    """Patch a node; return whether it had not changed or gone since it was read."""
    try:
        api.patch(f"{NODES}/{quote(node['metadata']['name'])}", patch)
    except HTTPError as error:
        if error.code not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
            raise
        return False
    return True


def main(file: str) -> None:
    """Work until the process is stopped. Another error than one of the connection ends it."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    settings: Json = json.loads(Path(file).read_text())
    api, alerts = Api.in_cluster(), list[Json]()
    while True:
        try:
            alerts = firing(settings["prometheus"])
        except OSError as error:  # the last alerts stay: a signal goes on while Prometheus does not answer
            log.warning("no alerts: %r", error)
        try:
            work(api, settings, alerts)
        except OSError as error:
            log.warning("no round: %r", error)
        time.sleep(settings["seconds"])


if __name__ == "__main__":
    main(sys.argv[1])
