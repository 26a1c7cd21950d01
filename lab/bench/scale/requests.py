"""The API server's own count of its requests: the metric apiserver_request_total."""

import re
from collections import Counter
from typing import Final

from tests.local.environment import Cluster

METRIC: Final = "apiserver_request_total"
BACKGROUND: Final = frozenset({"leases", "nodes", ""})
"""Requests without any job: leader election, heartbeats of nodes, health and discovery."""
_LASTING: Final = frozenset({"WATCH", "CONNECT"})
_SAMPLE: Final = re.compile(METRIC + r"\{(?P<labels>.*)\} (?P<value>\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
"""Prometheus' text format, version 0.0.4."""

Asked = Counter[tuple[str, str]]
"""Number of requests, by verb and resource."""


def asked(cluster: Cluster) -> Asked:
    """Return the requests to the API server since its start."""
    return parse(cluster.client.request("get", "/metrics", serialize=False).data.decode())


def parse(text: str) -> Asked:
    """Return the requests in a text of metrics, without watches, which are long, and without BACKGROUND."""
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
