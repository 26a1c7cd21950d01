"""Queries to Prometheus: the platform's, through a forwarded port, or any at a URL.

The API server's proxy for Services would be simpler. NetworkPolicies around the monitoring namespace can block it. They
do not apply to forwarded ports, which the kubelet opens.
"""

import json
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from kubernetes.client import CoreV1Api
from kubernetes.stream import portforward

from runner.report import Client, objects

RULES: Final = "mlbatch-usage"
"""The PrometheusRule with the records. Its namespace is that of the platform's Prometheus."""
POD: Final = "operator.prometheus.io/name=kube-prometheus-stack-prometheus"
"""Label of its pods (prometheus-operator/prometheus-operator, pkg/prometheus/server/statefulset.go)."""
PORT: Final = 9090
SECONDS: Final = 130
"""Longest wait for an answer. Prometheus itself ends a query after two minutes (`query.timeout`)."""

Fetch = Callable[[str], bytes]
"""Returns the body for a path. Raises OSError or HTTPException."""


class UsageError(Exception):
    """GPU hours cannot be reported."""


class Prometheus:
    """A Prometheus by its API (prometheus/prometheus, docs/querying/api.md)."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def query(self, query: str, at: float) -> list[tuple[Mapping[str, str], float]]:
        """Return labels and value of each series at a Unix time. Raises UsageError if Prometheus does not answer."""
        found = self._get("query", {"query": query, "time": f"{at:.3f}"})["result"]
        return [(item["metric"], float(item["value"][1])) for item in found]

    def retention(self) -> str:
        """Return how long Prometheus keeps records, such as `40d or 90GiB`. Empty if it does not say."""
        return str(self._get("status/runtimeinfo", {}).get("storageRetention", ""))

    def _get(self, path: str, query: Mapping[str, str]) -> Any:
        try:
            answer = json.loads(self._fetch(f"/api/v1/{path}?{urlencode(query)}"))
            if answer["status"] != "success":
                raise UsageError(f"Prometheus rejected the query: {answer.get('error')}")
            return answer["data"]
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"Prometheus does not answer as expected: {error or type(error).__name__}") from error


def at_url(url: str) -> Prometheus:
    """Return the Prometheus with this address, such as http://localhost:9090. Raises UsageError for another scheme."""
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{url} is not the URL of a Prometheus. Write one such as http://localhost:9090.")

    def fetch(path: str) -> bytes:
        try:
            with urlopen(url.rstrip("/") + path, timeout=SECONDS) as answer:  # noqa: S310, the scheme is checked
                return bytes(answer.read())
        except HTTPError as error:
            return error.read()

    return Prometheus(fetch)


def of_cluster(client: Client) -> Prometheus:
    """Return the platform's Prometheus. Raises UsageError if the cluster has no records or no running Prometheus."""
    rules = objects(client, "monitoring.coreos.com/v1", "PrometheusRule", field_selector=f"metadata.name={RULES}")
    if not rules:
        raise UsageError(
            f"the cluster has no PrometheusRule {RULES}, so it has no records. Set monitoring.enabled and run "
            "`pulumi up`, or add --prometheus URL."
        )
    namespace = rules[0]["metadata"]["namespace"]
    pods = objects(client, "v1", "Pod", namespace=namespace, label_selector=POD)
    names = [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]
    if not names:
        raise UsageError(f"Prometheus does not run: see `kubectl get pods --namespace {namespace}`.")

    def fetch(path: str) -> bytes:
        connect = CoreV1Api(client.client).connect_get_namespaced_pod_portforward
        forwarded = portforward(connect, names[0], namespace, ports=str(PORT))
        try:
            connection = HTTPConnection("localhost")
            connection.sock = forwarded.socket(PORT)
            connection.sock.settimeout(SECONDS)
            connection.request("GET", path, headers={"Connection": "close"})
            return connection.getresponse().read()
        except (OSError, HTTPException) as error:
            raise OSError(forwarded.error(PORT) or error) from error
        finally:
            forwarded.close()

    return Prometheus(fetch)
