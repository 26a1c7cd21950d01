"""The base class of the emulated resource types, and what they share."""

import functools
import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from emulator.azure.errors import refused
from emulator.azure.facts import AzureFacts
from emulator.azure.store import Operation, Properties, Record, State
from emulator.plugin.wire import UNKNOWN

GROUP = "Microsoft.Resources/resourceGroups"
CLUSTER = "Microsoft.ContainerService/managedClusters"
POOL = "Microsoft.ContainerService/managedClusters/agentPools"
DEPLOYMENT = "Microsoft.Resources/deployments"

_IN_GROUP = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers"
_PATHS = ("resourceUri", "scope")
"""Parts of a path that are ids."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class _Described(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NameRule(_Described):
    """Allowed names.

    pattern: of the whole name.
    allowed: the same rule in words.
    """

    pattern: str
    allowed: str


class Description(_Described):
    """The data of a resource type in `kinds.yaml`.

    type: Azure Resource Manager's type.
    path: the path of its id, with the SDK's input names in braces. Without a slash at the start, it is in a resource
      group.
    rule: the rule for its own name.
    replaces: inputs, other than the names of the path, whose change makes the provider replace the resource. `a.b` is a
      property inside an object, `a[].b` a property of items.
    duration: the key in the durations of the facts.
    no_location: the error for an invalid location.
    immutable: properties whose change the service rejects.
    defaults: values for properties that are not given.
    inputs: the emulated inputs, besides the names of the path.
    """

    type: str
    path: str
    rule: NameRule | None = None
    replaces: frozenset[str] = frozenset()
    duration: str = ""
    no_location: str = "LocationNotAvailableForResourceType"
    immutable: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = {}
    inputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """A PUT or DELETE that reaches a resource provider. names: the parts of the path. body: everything else."""

    facts: AzureFacts
    state: State
    id: str
    names: Mapping[str, str]
    body: Properties
    before: Record | None

    @property
    def creates(self) -> bool:
        """Whether the resource does not exist yet."""
        return self.before is None

    @property
    def location(self) -> str:
        """The region of the request."""
        given = self.body["location"]
        return str(self.facts.region(given) or given)

    def others(self, kind: str, under: str = "") -> list[Record]:
        """Return the other resources of a type, of all or only below an id."""
        return [each for each in self.state.of_type(kind, under) if each.id.lower() != self.id.lower()]


class Kind:
    """A resource type: its place in Azure, what it rejects, and what it reads back.

    token: the SDK's type. `kinds.yaml` has its other data, see `Description`.
    tracked: whether it has a location.
    """

    token: ClassVar[str]
    type: ClassVar[str]
    path: ClassVar[str]
    rule: ClassVar[NameRule | None]
    replaces: ClassVar[frozenset[str]]
    duration: ClassVar[str]
    tracked: ClassVar[bool]
    no_location: ClassVar[str]
    immutable: ClassVar[Sequence[str]]
    defaults: ClassVar[Mapping[str, Any]]
    emulated: ClassVar[Mapping[str, Any]]
    """The emulated inputs."""

    def __init_subclass__(cls) -> None:
        """Read the data of the type."""
        found = _descriptions()[cls.token]
        cls.type, cls.rule, cls.duration, cls.no_location = found.type, found.rule, found.duration, found.no_location
        cls.path = found.path if found.path.startswith("/") else f"{_IN_GROUP}/{found.path}"
        cls.tracked = "location" in found.inputs
        cls.replaces, cls.immutable, cls.defaults = found.replaces, found.immutable, found.defaults
        cls.emulated = {**dict.fromkeys(_parameters(cls.path)), **found.inputs}

    @property
    def parameters(self) -> Sequence[str]:
        """The input names in the path, the resource's own name last."""
        return _parameters(self.path)

    @property
    def own_name(self) -> str:
        """The input with the resource's own name."""
        return self.parameters[-1]

    def id(self, facts: AzureFacts, names: Mapping[str, str]) -> str:
        """Return the id that these names give."""
        parts = {key: str(value).strip("/") for key, value in names.items()}
        return self.path.format_map({"subscriptionId": facts.subscription_id, **parts})

    def parse(self, resource_id: str) -> dict[str, str] | None:
        """Return the names in an id, None if it is not of this type."""
        pattern = _PLACEHOLDER.sub(
            lambda match: f"(?P<{match[1]}>{'.+' if match[1] in _PATHS else '[^/]+'})",
            self.path,
        )
        found = re.fullmatch(pattern, resource_id, re.IGNORECASE)
        return {key: value for key, value in found.groupdict().items() if key != "subscriptionId"} if found else None

    def not_emulated(self, inputs: Properties) -> list[tuple[str, str]]:
        """Return the paths of inputs that are not emulated, with the problem of each."""
        found = list(_not_emulated(inputs, self.emulated))
        if inputs.get(self.own_name) is None:
            found.append((self.own_name, f"'{self.own_name}' is missing; generated names are not emulated"))
        return found

    def bad_name(self, inputs: Properties) -> list[tuple[str, str]]:
        """Return the problem with the resource's own name, if any."""
        name = inputs.get(self.own_name)
        if self.rule is None or not isinstance(name, str) or re.fullmatch(self.rule.pattern, name):
            return []
        return [
            (self.own_name, f"'{self.own_name}' is '{name}'; the name of a {self.type} must be {self.rule.allowed}")
        ]

    def check(self, request: Request) -> None:
        """Raise ArmError if Azure would reject the request."""

    def complete(self, request: Request) -> Properties:
        """Return the properties that read back after the operation."""
        own: Properties = {"name": request.names[self.own_name], "type": self.type}
        if self.tracked:
            own["location"] = request.location
        return merged(self.defaults, {**request.body, **own, **self.computed(request)})

    def computed(self, request: Request) -> Properties:
        """Return the properties that the service computes."""
        return {}

    def on_started(self, request: Request, record: Record) -> None:
        """Change other resources together with this one, which is already stored."""

    def on_finished(self, state: State, record: Record) -> None:
        """Change other resources after a successful operation."""

    def on_failed(self, state: State, record: Record) -> None:
        """Change other resources after a failed operation."""

    def to_response(self, state: State, record: Record) -> Properties:
        """Return the response to a GET."""
        return record.properties

    def operation(self, state: State, record: Record) -> Operation | None:
        """Return the running operation that blocks changes of this resource, or None."""
        return record.operation

    def check_delete(self, request: Request) -> None:
        """Raise ArmError if Azure would reject the deletion."""

    def absent(self, facts: AzureFacts, names: Mapping[str, str]) -> Properties | None:
        """Return the response to a GET if the resource does not exist."""
        return None

    def on_deleted(self, facts: AzureFacts, state: State, record: Record) -> None:
        """Remove the resources that are deleted with this one."""


@functools.cache
def _descriptions() -> Mapping[str, Description]:
    text = Path(__file__).parents[1].joinpath("kinds.yaml").read_text()
    return TypeAdapter(dict[str, Description]).validate_python(yaml.safe_load(text))


def _parameters(path: str) -> Sequence[str]:
    return [name for name in _PLACEHOLDER.findall(path) if name != "subscriptionId"]


def _not_emulated(values: Properties, emulated: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        path, only = f"{above}{key}", emulated.get(key)
        if key not in emulated:
            yield path, f"'{path}' is not emulated"
        elif isinstance(only, Mapping):
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, dict):
                    yield from _not_emulated(item, only, f"{path}.")
        elif only is not None and value is not UNKNOWN and not same(value, only):
            yield path, f"'{path}' is '{value}'; only {only} is emulated"


def check_common(kind: Kind, request: Request) -> None:
    """Raise ArmError for what all resource types reject: unknown group or location, changed immutable property."""
    group = request.names.get("resourceGroupName")
    if group is not None and kind.type != GROUP and request.state.get(group_id(request.facts, group)) is None:
        raise refused("ResourceGroupNotFound", group=group)
    if kind.tracked:
        _check_location(kind, request)
    if request.before is not None:
        check_immutable(kind, request, request.before)


def _check_location(kind: Kind, request: Request) -> None:
    location = request.body.get("location")
    if location is None:
        raise refused("LocationRequired")
    if request.facts.region(location) is None:
        raise refused(kind.no_location, location=location, type=kind.type, regions=",".join(request.facts.regions))
    before = request.before.properties["location"] if request.before else location
    if request.facts.region(before) != request.facts.region(location):
        raise refused("InvalidResourceLocation", id=request.id, before=before, location=location)


def check_immutable(kind: Kind, request: Request, before: Record) -> None:
    """Raise ArmError if the request changes an immutable property."""
    for path in kind.immutable:
        had, wanted = at(before.properties, path), at(request.body, path)
        if wanted is not None and had is not None and not same(had, wanted):
            raise refused("PropertyChangeNotAllowed", path=path)


def at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path, or None."""
    for part in path.split("."):
        if not isinstance(values, Mapping) or part not in values:
            return None
        values = values[part]
    return values


def same(one: Any, other: Any) -> bool:
    """Compare like Azure: ignore case, and the order of a list of strings."""
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    if isinstance(one, list) and isinstance(other, list) and all(isinstance(each, str) for each in [*one, *other]):
        return sorted(map(str.lower, one)) == sorted(map(str.lower, other))
    return bool(one == other)


def merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> Properties:
    """Return the defaults merged with the given values, object by object."""
    result = dict(defaults)
    for key, value in given.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        elif value is not None:
            result[key] = value
    return result


def group_id(facts: AzureFacts, name: str) -> str:
    """Return the id of a resource group."""
    return f"/subscriptions/{facts.subscription_id}/resourceGroups/{name}"


def stable_uuid(*parts: str) -> str:
    """Return a UUID that depends only on the parts."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts).lower()))


def node_suffix(cluster_id: str) -> str:
    """Return the eight digits that AKS uses in the names of a cluster's scale sets."""
    number = int.from_bytes(hashlib.sha256(cluster_id.lower().encode()).digest()[:8], "big")
    return str(number % 10**8).zfill(8)


def require(state: State, resource_id: str, what: str) -> Record:
    """Return a resource that another one refers to. Raises ArmError if it does not exist."""
    found = state.get(resource_id)
    if found is None:
        name = "InvalidResourceReference" if "/subnets/" in resource_id else "ReferenceNotFound"
        raise refused(name, id=resource_id, what=what)
    return found


def parent_of(request: Request, part: str) -> Record:
    """Return the resource whose id ends before a part of the request's id. Raises ArmError if it does not exist."""
    parent_id = request.id.rpartition(f"/{part}/")[0]
    found = request.state.get(parent_id)
    if found is None:
        raise refused("ParentResourceNotFound", id=parent_id)
    return found
