"""The declared objects of a stack, from `pulumi stack export`. Secrets stay encrypted."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from runner import properties  # noqa: TID251 - a notation
from runner.properties import parse  # noqa: TID251 - a notation

Manifest = dict[str, Any]

RELEASE: Final = "kubernetes:helm.sh/v3:Release"

_OBJECT: Final = "kubernetes:"
_DASHED: Final = "x_kubernetes_"
"""Prefix of the provider's names for the `x-kubernetes-*` fields in the schemas of definitions."""


class StateError(Exception):
    """The stack's state cannot be read. The message says why."""


class Secret:
    """Marks a value that the state keeps encrypted."""


SECRET: Final = Secret()


@dataclass(frozen=True, kw_only=True)
class Declared:
    """One object of a cluster, as the stack's state declares it.

    urn: the resource. manifest: the declared object, with SECRET for an encrypted value. uid: of the object that the
    engine last created or read, None if the state does not have it. partial: the stack declares only some fields of an
    object that another writer created (the provider's Patch resources). ignored: paths that the program sets at
    creation and then ignores (option `ignore_changes`).
    """

    urn: str
    manifest: Manifest
    uid: str | None
    partial: bool = False
    ignored: tuple[properties.Path, ...] = ()

    @property
    def api_version(self) -> str:
        """The API version as objects write it: `v1`, `apps/v1`."""
        return str(self.manifest["apiVersion"])

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        """The object's namespace, None if it has none."""
        namespace: str | None = self.manifest["metadata"].get("namespace")
        return namespace

    @property
    def title(self) -> str:
        """The name for people: kind, namespace and name."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True)
class State:
    """A stack's objects in the order of creation, and the names of its Helm releases."""

    objects: tuple[Declared, ...]
    releases: tuple[str, ...]


def export(stack: str, root: Path) -> State:
    """Return what a stack declares.

    root: the program's folder. Raises StateError where the Pulumi command is absent or refuses.
    """
    command = ["pulumi", "stack", "export", "--stack", stack]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise StateError("the `pulumi` command is not on the PATH. Install it: it reads the stack's state") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise StateError(f"`pulumi stack export --stack {stack}` failed, so no object was compared:\n{said}")
    return read(json.loads(done.stdout).get("deployment") or {})


def read(deployment: Mapping[str, Any]) -> State:
    """Return the objects of a deployment, without those that the engine is about to delete."""
    resources = [
        resource
        for resource in deployment.get("resources") or ()
        if resource["type"].startswith(_OBJECT)
        and resource.get("custom")
        and not resource.get("delete")
        and not resource.get("external")
    ]
    return State(
        objects=tuple(_objects(resources)),
        releases=tuple(str(resource["id"]) for resource in resources if resource["type"] == RELEASE),
    )


def _objects(resources: list[Mapping[str, Any]]) -> Iterator[Declared]:
    for resource in resources:
        inputs = resource.get("inputs") or {}
        if resource["type"] == RELEASE or not (inputs.get("kind") and inputs.get("apiVersion")):
            continue
        manifest = _plain(inputs)
        namespace, _, name = str(resource["id"]).rpartition("/")
        manifest["metadata"] = {**(manifest.get("metadata") or {}), "name": name}
        if namespace:
            manifest["metadata"]["namespace"] = namespace
        manifest.pop("status", None)  # not declared: its own subresource writes it
        if manifest["kind"] == "Secret":
            strings, data = manifest.pop("stringData", None), manifest.pop("data", None)
            if strings or data:
                manifest["data"] = SECRET  # the place of both; encrypted as a whole, or value by value
        metadata = (resource.get("outputs") or {}).get("metadata")
        yield Declared(
            urn=str(resource["urn"]),
            manifest=manifest,
            uid=metadata.get("uid") if isinstance(metadata, dict) else None,
            partial=resource["type"].endswith("Patch") and not manifest["kind"].endswith("Patch"),
            ignored=tuple(parse(path) for path in resource.get("ignoreChanges") or ()),
        )


def _spelled(key: str) -> str:
    return key.replace("_", "-") if key.startswith(_DASHED) else key


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(properties.SIGNATURE) == properties.SECRET:
            return SECRET
        return {_spelled(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
