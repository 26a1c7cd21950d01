"""What the API server was asked, as it counts it itself: the metric apiserver_request_total."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from tests.local.environment import Cluster

METRIC: Final = "apiserver_request_total"
BACKGROUND: Final = frozenset({"leases", "nodes", ""})
"""What is asked about without any job: who leads, heartbeats of nodes, health and discovery."""
_LASTING: Final = frozenset({"WATCH", "CONNECT"})
_SAMPLE: Final = re.compile(METRIC + r"\{(?P<labels>.*)\} (?P<value>\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
"""Prometheus' text format, version 0.0.4."""

Asked = Counter[tuple[str, str]]
"""How often, by verb and resource."""


def asked(cluster: Cluster) -> Asked:
    """Return what the API server was asked since it started."""
    return parse(cluster.client.request("get", "/metrics", serialize=False).data.decode())


def parse(text: str) -> Asked:
    """Return what a text of metrics says of requests, without watches, which last, and without BACKGROUND."""
    found: Asked = Counter()
    for line in text.splitlines():
        sample = _SAMPLE.fullmatch(line)
        if sample is None:
            continue
        labels = dict(_LABEL.findall(sample["labels"]))
        verb, resource = labels.get("verb", ""), labels.get("resource", "")
        if verb not in _LASTING and resource not in BACKGROUND:
            found[verb, resource] += int(float(sample["value"]))
    return found
