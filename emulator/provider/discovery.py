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
        """Return the URL path of the collection, or of one object."""
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
        self._served: dict[tuple[str, str], Resource] = {}
        self._planned: dict[tuple[str, str], Resource] = {}

    def find(self, api_version: str, kind: str, operation: Operation) -> Resource:
        """Return the resource of a kind; asks again when it was not there the last time. Raises NoMatchError."""
        api_version = api_version.removeprefix("core/")
        if (api_version, kind) not in self._served:
            with self._lock:
                if (api_version, kind) not in self._served:
                    self._ask(api_version, operation)
        found = self._served.get((api_version, kind))
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

    def plan(self, crd: Manifest) -> None:
        """Note the kinds of a CustomResourceDefinition that may be about to be created."""
        self._planned.update(_resources_of(crd))

    def planned(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a kind of a planned definition, None when no such kind is planned."""
        return self._planned.get((api_version, kind))

    def declare(self, crd: Manifest) -> None:
        """Take the kinds of an established CustomResourceDefinition in."""
        self._served.update(_resources_of(crd))

    def forget(self, crd: Manifest) -> None:
        """Drop the kinds of a CustomResourceDefinition that was deleted."""
        for key in _resources_of(crd):
            self._served.pop(key, None)

    def _ask(self, api_version: str, operation: Operation) -> None:
        prefix = "/apis" if "/" in api_version else "/api"
        try:
            answer = self._client.request("GET", f"{prefix}/{api_version}", operation)
        except ApiError as error:
            if error.not_found:
                return
            raise
        for entry in answer.get("resources") or []:
            if "/" not in entry["name"]:
                resource = Resource(api_version, entry["name"], bool(entry.get("namespaced")))
                self._served[api_version, entry["kind"]] = resource


def _resources_of(crd: Manifest) -> dict[tuple[str, str], Resource]:
    """Return the resources of a definition by apiVersion and kind; none of one that is malformed."""
    spec: Any = crd.get("spec")
    try:
        kind, plural, namespaced = spec["names"]["kind"], spec["names"]["plural"], spec["scope"] == "Namespaced"
        versions = [f"{spec['group']}/{version['name']}" for version in spec["versions"] if version["served"]]
    except (KeyError, TypeError):
        return {}
    return {(version, kind): Resource(version, plural, namespaced) for version in versions}
