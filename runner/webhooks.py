"""Find webhooks without a server. The API server rejects requests that need them, including deletions.

The Kubernetes provider deletes an object in the foreground. The deletion ends with an update that removes the object's
last finalizer. A webhook that checks updates, or that converts the object, blocks the deletion.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from kubernetes.dynamic.exceptions import ResourceNotFoundError

from runner.report import Client, Section, objects

_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_CONFIGURATIONS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_ASKED: Final = frozenset({"*", "DELETE", "UPDATE"})

Object = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Absent:
    """A Service of webhooks that has no ready pod.

    namespace, service: its name. resources: patterns of `<plural>.<group>` whose deletion it blocks.
    """

    namespace: str
    service: str
    resources: Sequence[str]

    def holds(self, resource: str) -> bool:
        """Return whether the API server calls the webhook to delete an object of a resource, `<plural>.<group>`."""
        return any(fnmatchcase(resource, pattern) for pattern in self.resources)


def report(client: Client) -> list[Section]:
    """Return a table of the webhooks that do not answer, none if all answer."""
    rows = [(each.namespace, each.service, ", ".join(each.resources)) for each in absent(client)]
    return [Section("Webhooks that do not answer", ["NAMESPACE", "SERVICE", "HOLDS UP"], rows)] if rows else []


def holding(client: Client, kinds: Iterable[tuple[str, str]]) -> dict[Absent, list[str]]:
    """Return absent webhooks that block the deletion of some of these kinds (apiVersion, kind), with those kinds."""
    resources = {(kind, _resource(client, version, kind)) for version, kind in kinds}
    found = {each: sorted({kind for kind, name in resources if each.holds(name)}) for each in absent(client)}
    return {each: held for each, held in found.items() if held}


def absent(client: Client) -> list[Absent]:
    """Return absent webhooks whose failure blocks deletions, sorted by name.

    Raises the Kubernetes client's exceptions if the cluster does not answer.
    """
    asked: dict[tuple[str, str], set[str]] = {}
    for service, resources in (*_converting(client), *_admitting(client)):
        asked.setdefault((service["namespace"], service["name"]), set()).update(resources)
    return [
        Absent(namespace=namespace, service=name, resources=tuple(sorted(resources)))
        for (namespace, name), resources in sorted(asked.items())
        if resources and not _answers(client, namespace, name)
    ]


def _converting(client: Client) -> Iterable[tuple[Object, list[str]]]:
    for definition in objects(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition"):
        webhook = (definition["spec"].get("conversion") or {}).get("webhook") or {}
        service = (webhook.get("clientConfig") or {}).get("service")
        if service:
            yield service, [definition["metadata"]["name"]]


def _admitting(client: Client) -> Iterable[tuple[Object, list[str]]]:
    for kind in _CONFIGURATIONS:
        for configuration in objects(client, _ADMISSION, kind):
            for webhook in configuration.get("webhooks") or ():
                service = webhook["clientConfig"].get("service")
                if service and webhook.get("failurePolicy") != "Ignore":
                    yield service, [each for rule in webhook.get("rules") or () for each in _resources(rule)]


def _resources(rule: Object) -> list[str]:
    if _ASKED.isdisjoint(rule["operations"]):
        return []
    plurals = [each for each in rule["resources"] if "/" not in each]
    return [
        "*" if group == plural == "*" else _name(plural, group) for group in rule["apiGroups"] for plural in plurals
    ]


def _resource(client: Client, version: str, kind: str) -> str:
    """Return `<plural>.<group>` of a kind, empty if the cluster does not serve it."""
    try:
        return _name(client.resources.get(api_version=version, kind=kind).name, version.rpartition("/")[0])
    except ResourceNotFoundError:
        return ""


def _name(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def _answers(client: Client, namespace: str, service: str) -> bool:
    selector = f"kubernetes.io/service-name={service}"
    slices = objects(client, "discovery.k8s.io/v1", "EndpointSlice", namespace=namespace, label_selector=selector)
    endpoints = [endpoint for each in slices for endpoint in each.get("endpoints") or ()]
    return any((endpoint.get("conditions") or {}).get("ready") is not False for endpoint in endpoints)
