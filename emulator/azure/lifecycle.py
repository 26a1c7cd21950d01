"""Check, diff, create, read, update and delete of resources, as in the provider plugin azure-native."""

import contextlib
from collections.abc import Callable
from typing import Any

from emulator.azure import projection, schema
from emulator.azure.arm import Arm
from emulator.azure.errors import ArmError, OperationFailedError
from emulator.azure.services import KINDS, kind_of
from emulator.azure.services.base import Kind
from emulator.azure.services.resources import REGISTRATION
from emulator.azure.store import Properties
from emulator.azure.validation import Problem, problems
from emulator.plugin.diffing import Change
from emulator.plugin.errors import CancelledError, PartialError, ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Found
from emulator.plugin.wire import UNKNOWN

VERSION_KEY = "azureApiVersion"
_THROTTLED = 429
_TRIES = 4
"""Largest number of attempts for a call that is throttled or fails in the service (azcore, RetryOptions,
StatusCodes).
"""


class Lifecycle:
    """The operations of the provider on one subscription. Safe for any number of threads."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm

    def check(
        self, token: str, given: Properties, before: Properties, location: str
    ) -> tuple[Properties, list[Problem]]:
        """Return the inputs with the provider's defaults, and the problems found.

        location: of the provider's configuration, empty without one.
        """
        kind, known = kind_of(token), schema.resource(token)
        inputs = _without_nulls(given)
        version = inputs.pop(VERSION_KEY, known.api_version)
        found = problems(inputs, known.inputs) or kind.not_emulated(inputs)
        found += kind.bad_name(inputs)
        if inputs.get("location") is None and "location" in known.inputs:
            default = before.get("location") or location or self._location_of_group(inputs)
            if default is not None:
                inputs["location"] = default
        return {**inputs, VERSION_KEY: version}, found

    def diff(
        self, token: str, before: Properties, after: Properties, ignored: list[str], resource_id: str = ""
    ) -> dict[str, Change]:
        """Return the differences between recorded and new inputs. resource_id: the recorded resource."""
        self.arm.acknowledge(resource_id)
        return projection.difference(kind_of(token), _without_nulls(before), _without_nulls(after), ignored)

    def preview(self, token: str, inputs: Properties, before: Properties | None) -> Properties:
        """Return the outputs known before the call: the inputs, and name and location of an existing resource."""
        outputs = projection.previewed(_without_nulls(inputs), schema.resource(token).outputs)
        for key in ("name", "location"):
            if before is not None and key in before and key in outputs:
                outputs[key] = before[key]
        return outputs

    def create(self, token: str, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        """Create a resource and wait for it. Raises PartialError if it exists but its operation failed."""
        kind = kind_of(token)
        names, body = _split(kind, inputs)
        resource_id = kind.id(self.arm.facts, names)
        if self.arm.look(kind, names) is not None:
            raise ProviderError(
                f"cannot create already existing resource '{resource_id}'. {_way_out(kind, resource_id)}"
            )
        return resource_id, self._send(kind, names, body, inputs, operation)

    def update(self, token: str, resource_id: str, inputs: Properties, operation: Operation) -> Properties:
        """Update a resource and wait for it. Raises PartialError if its operation failed."""
        kind = kind_of(token)
        self.arm.acknowledge(resource_id)
        return self._send(kind, *_split(kind, inputs), inputs, operation)

    def read(self, token: str, resource_id: str, before: Properties, inputs: Properties) -> Found | None:
        """Return the current resource, and the inputs with the changes made in Azure. None if it does not exist.

        Without inputs, import it. Raises PartialError for a resource in state Failed, so that the next update sends it
        again even after a refresh.
        """
        kind, known = kind_of(token), schema.resource(token)
        self.arm.acknowledge(resource_id)
        found = self.arm.get(resource_id)
        if found is None:
            return None
        outputs = {**found, VERSION_KEY: known.api_version}
        if inputs:
            current = projection.refreshed(inputs, before, found, known.inputs)
            if found.get("provisioningState") == "Failed":
                message = f"{resource_id} is in provisioningState Failed: the next update sends it again"
                raise PartialError(message, resource_id, outputs, current)
            return Found(resource_id, outputs, current)
        names = kind.parse(resource_id)
        if names is None:
            raise ProviderError(f"{resource_id} is not an id of {token}: {kind.path} is expected")
        imported = projection.projected(found, known.inputs)
        imported = {key: value for key, value in imported.items() if not known.inputs[key].standalone}
        return Found(resource_id, outputs, {**imported, **names, VERSION_KEY: known.api_version})

    def orphans(self) -> dict[str, Found]:
        """Return the resources that no engine has recorded, by URN, after their operations end."""
        found = {}
        for record in [each for each in self.arm.state().resources.values() if each.creator]:
            with contextlib.suppress(OperationFailedError):
                self.arm.wait(record.id)
            kind = kind_of(record.token)
            found[record.creator] = Found(record.id, self._outputs(kind, record.id), record.inputs)
        return found

    def delete(self, token: str, resource_id: str, operation: Operation) -> None:
        """Delete a resource and wait until it is gone."""
        kind = kind_of(token)
        self._patiently(lambda: self.arm.delete(kind, resource_id), operation)
        self.arm.wait(resource_id, operation.status, operation.sleep)
        operation.clear_status()

    def _send(
        self, kind: Kind, names: dict[str, str], body: Properties, inputs: Properties, operation: Operation
    ) -> Properties:
        """Create or update a resource, wait for the operation and return the outputs."""
        resource_id = kind.id(self.arm.facts, names)
        self._patiently(lambda: self.arm.put(kind, names, body, operation.urn, inputs), operation)
        try:
            self.arm.wait(resource_id, operation.status, operation.sleep)
        except (OperationFailedError, CancelledError) as error:
            state = self._outputs(kind, resource_id)
            raise PartialError(f"{resource_id}: {error}", resource_id, state, inputs) from None
        operation.clear_status()
        return self._outputs(kind, resource_id)

    def _outputs(self, kind: Kind, resource_id: str) -> Properties:
        return {**(self.arm.get(resource_id) or {}), VERSION_KEY: schema.resource(kind.token).api_version}

    def _patiently(self, call: Callable[[], object], operation: Operation) -> None:
        """Make a call. Repeat it after a pause if it is throttled or the service fails, up to `_TRIES` times."""
        for attempt in range(1, _TRIES + 1):
            try:
                call()
                return
            except ArmError as error:
                if error.retry_after is None or attempt == _TRIES:
                    raise
                how = "throttled" if error.status == _THROTTLED else f"answered {error.status}"
                operation.status(f"{how}; attempt {attempt + 1} of {_TRIES} follows in {error.retry_after:.1f} s")
                operation.sleep(error.retry_after)

    def _location_of_group(self, inputs: Properties) -> Any:
        name = inputs.get("resourceGroupName")
        if name is UNKNOWN:
            return UNKNOWN
        group = KINDS["azure-native:resources:ResourceGroup"]
        found = self.arm.get(group.id(self.arm.facts, {"resourceGroupName": name})) if name else None
        return found["location"] if found else None


def _way_out(kind: Kind, resource_id: str) -> str:
    if kind.type == REGISTRATION:
        return (
            "The official provider finds every feature, registered or not, so it cannot create a registration "
            "(https://github.com/pulumi/pulumi-azure-native/issues/1722). Register it by a template "
            "(resources.DeploymentAtSubscriptionScope) instead"
        )
    return f"Import it with `pulumi import {kind.token} <name> {resource_id}`, delete it, or choose another name"


def _split(kind: Kind, inputs: Properties) -> tuple[dict[str, str], Properties]:
    """Return the names in the id, and the body."""
    names = {name: str(inputs[name]) for name in kind.parameters}
    # The scope of a role assignment is part of both.
    path_only = {name for name in names if name != "scope"} | {VERSION_KEY}
    return names, {key: value for key, value in _without_nulls(inputs).items() if key not in path_only}


def _without_nulls(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _without_nulls(value) for key, value in values.items() if value is not None}
    if isinstance(values, list):
        return [_without_nulls(value) for value in values]
    return values
