"""The status that OpenShift's router gives to a Route: its host, and whether it is admitted. No router runs here.

Sources: openshift/library-go, pkg/route/hostassignment; openshift/router, pkg/router/controller: `status.go`,
`unique_host.go`. A host belongs to the first namespace that uses it, and a path of the host to its first Route.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from emulator.cluster.api import Object
from emulator.cluster.pod_status import timestamp

GENERATED: Final = "openshift.io/host.generated"
_ROUTER: Final = "default"


def with_host(route: Object, domain: str) -> Object | None:
    """Return the merge patch that gives a Route a host below the cluster's domain, None if it has a host."""
    metadata, spec = route["metadata"], route["spec"]
    if spec.get("host"):
        return None
    name = spec.get("subdomain") or f"{metadata['name']}-{metadata['namespace']}"
    return {"metadata": {"annotations": {GENERATED: "true"}}, "spec": {"host": f"{name}.{domain}"}}


def verdicts(routes: Iterable[Object], domain: str) -> Iterator[tuple[Object, Object]]:
    """Yield each Route whose status differs from the router's decision, with the right status."""
    owners: dict[str, str] = {}
    taken: dict[tuple[str, str], str] = {}
    for route in sorted(routes, key=_age):
        metadata, spec = route["metadata"], route["spec"]
        host, path = spec.get("host") or "", spec.get("path") or ""
        if not host:
            continue
        namespace = metadata["namespace"]
        owner = owners.setdefault(host, namespace)
        holder = taken.setdefault((host, path), metadata["uid"])
        admitted = owner == namespace and holder == metadata["uid"]
        if _said(route) != (host, admitted):
            yield route, _status(spec, domain, admitted)


def _age(route: Object) -> tuple[str, str]:
    return route["metadata"]["creationTimestamp"], route["metadata"]["uid"]


def _said(route: Object) -> tuple[str, bool] | None:
    for ingress in (route.get("status") or {}).get("ingress") or ():
        for condition in ingress.get("conditions") or ():
            if ingress.get("routerName") == _ROUTER and condition["type"] == "Admitted":
                return ingress["host"], condition["status"] == "True"
    return None


def _status(spec: Object, domain: str, admitted: bool) -> Object:
    condition: dict[str, Any] = {
        "type": "Admitted",
        "status": "True" if admitted else "False",
        "lastTransitionTime": timestamp(datetime.now(UTC)),
    }
    if not admitted:
        condition |= {"reason": "HostAlreadyClaimed", "message": "another route holds this host and path, and is older"}
    ingress = {
        "conditions": [condition],
        "host": spec["host"],
        "routerCanonicalHostname": f"router-default.{domain}",
        "routerName": _ROUTER,
        "wildcardPolicy": spec.get("wildcardPolicy") or "None",
    }
    return {"status": {"ingress": [ingress]}}
