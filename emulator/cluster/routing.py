"""Finds the pod behind a Service's address."""

from collections.abc import Iterable
from dataclasses import dataclass

from emulator.cluster.api import Object

_SERVICE_NAME = "kubernetes.io/service-name"  # label of an EndpointSlice, k8s.io/api/discovery/v1


class NoRouteError(Exception):
    """A target cannot be reached; the message gives the reason in one line."""


@dataclass(frozen=True)
class Route:
    """A ready endpoint: address of the pod, and port in the pod."""

    address: str
    port: int


def resolve(host: str, port: int, services: Iterable[Object], slices: Iterable[Object]) -> Route:
    """Return a ready endpoint for a port of a Service, given by cluster IP or name `name.namespace.svc`.

    Raises NoRouteError if the Service, the port or a ready endpoint is missing.
    """
    service = next((found for found in services if _is(found, host)), None)
    if service is None:
        raise NoRouteError(f"{host} is not the address of a Service")
    namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
    wanted = next((item for item in service["spec"].get("ports") or [] if item["port"] == port), None)
    if wanted is None:
        raise NoRouteError(f"Service {namespace}/{name} has no port {port}")
    for found in slices:
        metadata = found["metadata"]
        if metadata["namespace"] != namespace or (metadata.get("labels") or {}).get(_SERVICE_NAME) != name:
            continue
        target = next((item for item in found.get("ports") or [] if _same_port(item, wanted)), None)
        if target is None or not target.get("port"):
            continue
        for endpoint in found.get("endpoints") or []:
            # A missing condition counts as ready (EndpointConditions, k8s.io/api/discovery/v1).
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                return Route(endpoint["addresses"][0], target["port"])
    raise NoRouteError(f"Service {namespace}/{name} has no ready endpoint for port {port}")


def _is(service: Object, host: str) -> bool:
    spec, metadata = service["spec"], service["metadata"]
    names = (f"{metadata['name']}.{metadata['namespace']}.svc", f"{metadata['name']}.{metadata['namespace']}")
    return host == spec.get("clusterIP") or host.removesuffix(".cluster.local") in names


def _same_port(endpoint_port: Object, service_port: Object) -> bool:
    return (endpoint_port.get("name") or "") == (service_port.get("name") or "")
