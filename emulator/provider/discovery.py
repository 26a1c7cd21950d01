"""Which resource of the API server stands for a kind, and whether it lives in namespaces."""

from __future__ import annotations

import threading
import urllib.parse
from dataclasses import dataclass
from typing import Any

from emulator.plugin.operation import Operation
from emulator.provider.client import Client
from emulator.provider.errors import ApiError, NoMatchError
from emulator.provider.objects import Manifest


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource type of the API server, such as `configmaps` of `v1`."""

    api_version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """The URL path of the collection, or of one object."""
        path = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        if self.namespaced and namespace:
            path += f"/namespaces/{urllib.parse.quote(namespace)}"
        path += f"/{self.plural}"
        return f"{path}/{urllib.parse.quote(name, safe='')}" if name else path


class Discovery:
    """The resource types of one API server, asked for by group and version when first needed.

    A CustomResourceDefinition that this provider applies is known from its own object, before the API server lists it.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._kinds: dict[str, dict[str, Resource]] = {}
        self._declared: dict[tuple[str, str], Resource] = {}

    def find(self, api_version: str, kind: str, operation: Operation) -> Resource:
        """Return the resource of a kind; asks again when it was not there the last time. Raises NoMatchError."""
        api_version = api_version.removeprefix("core/")
        known = self._kinds.get(api_version, {}).get(kind) or self._declared.get((api_version, kind))
        if known is not None:
            return known
        with self._lock:
            found = self._kinds.get(api_version, {}).get(kind)
            if found is None:
                self._kinds[api_version] = self._ask(api_version, operation)
                found = self._kinds[api_version].get(kind)
        if found is None:
            raise NoMatchError(api_version, kind)
        return found

    def exists(self, api_version: str, kind: str, operation: Operation) -> bool:
        """Tell whether the API server serves the kind."""
        try:
            self.find(api_version, kind, operation)
        except NoMatchError:
            return False
        return True

    def declare(self, crd: Manifest) -> None:
        """Take the kinds of an established CustomResourceDefinition in."""
        for api_version, kind, resource in _resources_of(crd):
            self._declared[api_version, kind] = resource

    def forget(self, crd: Manifest) -> None:
        """Ask the API server anew for the kinds of a CustomResourceDefinition that was changed or deleted."""
        with self._lock:
            for api_version, kind, _ in _resources_of(crd):
                self._declared.pop((api_version, kind), None)
                self._kinds.pop(api_version, None)

    def _ask(self, api_version: str, operation: Operation) -> dict[str, Resource]:
        prefix = "/apis" if "/" in api_version else "/api"
        try:
            answer = self._client.request("GET", f"{prefix}/{api_version}", operation)
        except ApiError as error:
            if error.not_found:
                return {}
            raise
        return {
            entry["kind"]: Resource(api_version, entry["name"], bool(entry.get("namespaced")))
            for entry in answer.get("resources") or []
            if "/" not in entry["name"]
        }


def scopes(crd: Manifest) -> dict[tuple[str, str], bool]:
    """Return for each apiVersion and kind of a CustomResourceDefinition whether it is namespaced."""
    return {(api_version, kind): resource.namespaced for api_version, kind, resource in _resources_of(crd)}


def _resources_of(crd: Manifest) -> list[tuple[str, str, Resource]]:
    spec: Any = crd.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    versions = spec.get("versions") if isinstance(spec, dict) else None
    if not isinstance(names, dict) or not isinstance(versions, list):
        return []
    found = []
    for version in versions:
        if isinstance(version, dict) and version.get("served"):
            api_version = f"{spec.get('group')}/{version.get('name')}"
            resource = Resource(api_version, str(names.get("plural")), spec.get("scope") == "Namespaced")
            found.append((api_version, str(names.get("kind")), resource))
    return found
