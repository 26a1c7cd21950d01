"""What the resource types of the emulated Azure have in common."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from emulator.azure.errors import ArmError, not_found
from emulator.azure.facts import AzureFacts
from emulator.azure.store import Operation, Properties, Record, State

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
GROUP = "Microsoft.Resources/resourceGroups"


@dataclass(frozen=True, slots=True)
class NameRule:
    """What a name may look like (https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules).

    pattern: of the whole name; allowed: the same in words.
    """

    pattern: str
    allowed: str


@dataclass(frozen=True, slots=True)
class Request:
    """A PUT or DELETE as it reaches a resource provider. names: the parts of the path; body: without them."""

    facts: AzureFacts
    state: State
    id: str
    names: Mapping[str, str]
    body: Properties
    before: Record | None

    @property
    def creates(self) -> bool:
        """Whether there is no such resource yet."""
        return self.before is None

    @property
    def location(self) -> str:
        """The region of the request, else of the resource group."""
        given = self.body.get("location") or (self.before.properties.get("location") if self.before else None)
        if given is None:
            group = self.group
            given = group.properties["location"] if group else self.facts.regions[0]
        return str(self.facts.region(given) or given)

    @property
    def group(self) -> Record | None:
        """The resource group of the path."""
        name = self.names.get("resourceGroupName")
        return self.state.get(group_id(self.facts, name)) if name else None

    def kept(self, key: str, default: Any = None) -> Any:
        """What the body says, else what the resource had before, else the default."""
        if self.body.get(key) is not None:
            return self.body[key]
        if self.before is not None and self.before.properties.get(key) is not None:
            return self.before.properties[key]
        return default


class Kind:
    """A resource type: its place in Azure, what it refuses, and what it reads back.

    token: the SDK's type. type: Azure Resource Manager's. path: of its id, with the SDK's input names in braces.
    rule: of its own name. replaces: the inputs, beside the names of the path, whose change the provider answers with a
    replacement; `a.b` is a property inside, `a[].b` one of the items. duration: the key of the facts' durations.
    autoname: how the provider makes up a name that is not given: random, copy or uuid. tracked: it has a location.
    immutable: properties whose change the service refuses.
    """

    token: ClassVar[str]
    type: ClassVar[str]
    path: ClassVar[str]
    rule: ClassVar[NameRule | None] = None
    replaces: ClassVar[frozenset[str]] = frozenset()
    duration: ClassVar[str] = "other"
    autoname: ClassVar[str] = "random"
    tracked: ClassVar[bool] = False
    immutable: ClassVar[Sequence[str]] = ()

    @property
    def parameters(self) -> Sequence[str]:
        """The input names that make the path, the resource's own name last."""
        return [name for name in _PLACEHOLDER.findall(self.path) if name != "subscriptionId"]

    @property
    def own_name(self) -> str:
        """The input that names the resource itself."""
        return self.parameters[-1]

    def id(self, facts: AzureFacts, names: Mapping[str, str]) -> str:
        """Return the id that the names make."""
        values = {"subscriptionId": facts.subscription, **{key: str(value).strip("/") for key, value in names.items()}}
        return self.path.format_map(values)

    def parse(self, resource_id: str) -> dict[str, str] | None:
        """Return the names in an id, None when it is not of this type."""
        pattern = _PLACEHOLDER.sub(
            lambda match: f"(?P<{match[1]}>.+)" if match[1] == "scope" else f"(?P<{match[1]}>[^/]+)",
            self.path,
        )
        found = re.fullmatch(pattern, resource_id, re.IGNORECASE)
        return {key: value for key, value in found.groupdict().items() if key != "subscriptionId"} if found else None

    def check(self, request: Request) -> None:
        """Raise ArmError when Azure would refuse the request."""

    def complete(self, request: Request) -> Properties:
        """Return the properties as they read back once the operation has ended."""
        raise NotImplementedError

    def on_started(self, request: Request, record: Record) -> None:
        """Change other resources along with this one; `record` is stored already."""

    def on_finished(self, facts: AzureFacts, state: State, record: Record) -> None:
        """Carry on when the operation has ended well."""

    def on_failed(self, state: State, record: Record) -> None:
        """Carry on when the operation has failed."""

    def to_response(self, facts: AzureFacts, state: State, record: Record) -> Properties:
        """Return what a GET answers."""
        return record.properties

    def operation(self, state: State, record: Record) -> Operation | None:
        """Return the operation that keeps others away from the resource."""
        return record.operation

    def check_delete(self, request: Request) -> None:
        """Raise ArmError when Azure would refuse the deletion."""

    def absent(self, facts: AzureFacts, names: Mapping[str, str]) -> Properties | None:
        """Return what a GET answers where there is no such resource, None for 404."""
        return None

    def on_deleted(self, facts: AzureFacts, state: State, record: Record) -> None:
        """Remove what goes with the resource, which is removed already."""


def check_common(kind: Kind, request: Request) -> None:
    """Raise ArmError for what every resource type refuses: names, group, location, changed fixed properties."""
    name = request.names[kind.own_name]
    if kind.rule is not None and not re.fullmatch(kind.rule.pattern, name):
        raise ArmError(
            "InvalidResourceName",
            f"Resource name '{name}' is invalid for a {kind.type}: it may have {kind.rule.allowed}.",
            hint=f"Change {kind.own_name}.",
        )
    group = request.names.get("resourceGroupName")
    if group is not None and kind.type != GROUP and request.group is None:
        raise ArmError("ResourceGroupNotFound", f"Resource group '{group}' could not be found.", status=404)
    if kind.tracked:
        _check_location(kind, request)
    if request.before is not None:
        _check_immutable(kind, request, request.before)


def _check_location(kind: Kind, request: Request) -> None:
    location = request.body.get("location")
    if location is None:
        if request.creates:
            raise ArmError("LocationRequired", "The location property is required for this definition.")
        return
    if request.facts.region(location) is None:
        raise ArmError(
            "LocationNotAvailableForResourceType",
            f"The provided location '{location}' is not available for resource type '{kind.type}'. "
            f"List of available regions for the resource type is '{','.join(request.facts.regions)}'.",
        )
    before = request.before.properties.get("location") if request.before else None
    if before is not None and request.facts.region(before) != request.facts.region(location):
        raise ArmError(
            "InvalidResourceLocation",
            f"The resource '{request.id.rpartition('/')[2]}' already exists in location '{before}'. A resource with "
            f"the same name cannot be created in location '{location}'. Please select a new resource name.",
            status=409,
        )


def _check_immutable(kind: Kind, request: Request, before: Record) -> None:
    for path in kind.immutable:
        had, wanted = at(before.properties, path), at(request.body, path)
        if wanted is not None and had is not None and not same(had, wanted):
            raise changed(path)


def changed(path: str) -> ArmError:
    """Return the error for a property that cannot be changed."""
    return ArmError(
        "PropertyChangeNotAllowed",
        f"Changing property 'properties.{path}' is not allowed.",
        hint=f"Have the resource replaced instead (the resource option replace_on_changes names '{path}').",
    )


def at(values: Mapping[str, Any], path: str) -> Any:
    """Return what stands at a dotted path, None where nothing does."""
    for part in path.split("."):
        if not isinstance(values, Mapping) or part not in values:
            return None
        values = values[part]
    return values


def same(one: Any, other: Any) -> bool:
    """Compare as Azure does: the case of letters does not count, nor the order of a list of plain values."""
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    if isinstance(one, list) and isinstance(other, list) and all(isinstance(each, str) for each in [*one, *other]):
        return sorted(map(str.lower, one)) == sorted(map(str.lower, other))
    return bool(one == other)


def merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> Properties:
    """Return the defaults with what is given in their place, object by object."""
    result = dict(defaults)
    for key, value in given.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        elif value is not None:
            result[key] = value
    return result


def group_id(facts: AzureFacts, name: str) -> str:
    """Return the id of a resource group."""
    return f"/subscriptions/{facts.subscription}/resourceGroups/{name}"


def stable_uuid(*parts: str) -> str:
    """Return an id that the same parts always make."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts).lower()))


def stable_digits(text: str, length: int) -> str:
    """Return digits that the same text always makes."""
    number = int.from_bytes(hashlib.sha256(text.lower().encode()).digest()[:8], "big")
    return str(number % 10**length).zfill(length)


def etag() -> str:
    """Return a fresh version mark."""
    return str(uuid.uuid4())


def now() -> str:
    """Return the time as Azure writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def require(state: State, resource_id: str, what: str) -> Record:
    """Return a resource that another one refers to. Raises ArmError when it is not there."""
    found = state.get(resource_id)
    if found is None:
        error = not_found(resource_id)
        raise ArmError(
            "InvalidResourceReference" if "/subnets/" in resource_id else error.code,
            f"Resource {resource_id} referenced by {what} was not found. Please make sure that the referenced "
            "resource exists, and that both resources are in the same region.",
            status=404,
        )
    return found


def user_identities(request: Request) -> Properties | None:
    """Return the `identity` as it reads back: principals of what is assigned. Raises ArmError for unknown ones."""
    given = request.kept("identity")
    if not given:
        return None
    kind = str(given.get("type", "None"))
    result: Properties = {"type": kind}
    if "SystemAssigned" in kind:
        result["principalId"] = stable_uuid(request.id, "principal")
        result["tenantId"] = request.facts.tenant
    assigned = list(given.get("userAssignedIdentities") or [])
    if "UserAssigned" in kind:
        if not assigned:
            raise ArmError(
                "InvalidIdentityValues",
                "Invalid value for the identities. The 'UserAssigned' identity type requires at least one identity id.",
            )
        found = {each: require(request.state, each, f"the identity of {request.id}").properties for each in assigned}
        result["userAssignedIdentities"] = {
            key: {"clientId": each["clientId"], "principalId": each["principalId"]} for key, each in found.items()
        }
    elif assigned:
        raise ArmError(
            "InvalidIdentityValues",
            f"The identity type is '{kind}', but user assigned identities are given.",
            hint="Set identity.type to UserAssigned.",
        )
    return result
