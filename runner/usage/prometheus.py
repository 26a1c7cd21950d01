"""Queries to Prometheus: the platform's, through a forwarded port, or any at a URL.

The API server's proxy for Services would be simpler. NetworkPolicies around the monitoring namespace can block it. They
do not apply to forwarded ports, which the kubelet opens.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from math import isfinite
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import unquote, urlencode, urlsplit
from urllib.request import Request, urlopen

from kubernetes.client import CoreV1Api
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import portforward

from runner.report import Client, message, objects

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
        return list(self._get("query", {"query": query, "time": f"{at:.3f}"}, _series))

    def retention(self) -> str:
        """Return how long Prometheus keeps records, such as `40d or 90GiB`. Empty if it does not say, as Thanos."""
        try:
            return str(self._get("status/runtimeinfo", {}, lambda data: data["storageRetention"]))
        except UsageError:
            return ""

    def _get(self, path: str, query: Mapping[str, str], value: Callable[[Any], Any]) -> Any:
        try:
            body = self._fetch(f"/api/v1/{path}?{urlencode(query)}")
        except (OSError, HTTPException, ValueError) as error:
            raise UsageError(f"Prometheus does not answer: {error or type(error).__name__}") from error
        try:
            answer = json.loads(body)
            if answer["status"] == "success":
                return value(answer["data"])
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            begin = body[:200].decode(errors="replace")
            raise UsageError(f"Prometheus does not answer as expected, but with: {begin}") from error
        raise UsageError(f"Prometheus rejected the query: {answer.get('error') or answer.get('message')}")


def _series(data: Any) -> list[tuple[Mapping[str, str], float]]:
    """Return labels and value of each series of a result. Raises ValueError for a value that is not a number."""
    found: list[tuple[Mapping[str, str], float]] = []
    for item in data["result"]:
        found.append((dict(item["metric"]), float(item["value"][1])))
        if not isfinite(found[-1][1]):
            raise ValueError
    return found


def at_url(url: str) -> Prometheus:
    """Return the Prometheus with this address, such as http://localhost:9090. Raises UsageError for another scheme.

    A user and password in the URL are sent with each request. No error shows them.
    """
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise UsageError("--prometheus is not the URL of a Prometheus. Write one such as http://localhost:9090.")
    account, _, host = parts.netloc.rpartition("@")
    base = parts._replace(netloc=host).geturl().rstrip("/")

    def fetch(path: str) -> bytes:
        request = Request(base + path)  # noqa: S310, the scheme is checked
        if account:
            # Redirects do not get it.
            request.add_unredirected_header("Authorization", f"Basic {b64encode(unquote(account).encode()).decode()}")
        try:
            with urlopen(request, timeout=SECONDS) as answer:  # noqa: S310, the scheme is checked
                return bytes(answer.read())
        except HTTPError as error:
            if error.headers.get_content_type() != "application/json":
                raise OSError(f"HTTP {error.code} {error.reason}") from error
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
        try:
            forwarded = portforward(connect, names[0], namespace, ports=str(PORT))
        except ApiException as error:
            raise OSError(f"port of pod {namespace}/{names[0]} cannot be forwarded: {message(error)}") from error
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
