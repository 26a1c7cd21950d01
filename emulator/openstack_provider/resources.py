"""Check, diff, create, read, update and delete of any resource, by its facts and its kind."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from emulator.openstack_provider import inputs, planning
from emulator.openstack_provider.call import Call
from emulator.openstack_provider.cloud import Cloud
from emulator.openstack_provider.errors import ApiError
from emulator.openstack_provider.journal import Entry, Journal
from emulator.openstack_provider.kinds.base import Kind
from emulator.openstack_provider.schema import DEFAULTS, Property, Resource, is_empty
from emulator.plugin.diffing import Difference, not_ignored
from emulator.plugin.errors import PartialError, ProviderError
from emulator.plugin.host import Host
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Checked, Found, Naming
from emulator.plugin.wire import UNKNOWN, Properties, Secret, Values

_NOBODY_KNOWS: Final = 500
"""From here on an answer does not say whether the service has done what it was asked."""


class OpenStackResources:
    """The resources of one type. journal: of what is created."""

    def __init__(self, cloud: Cloud, resource: Resource, kind: Kind, journal: Journal) -> None:
        self._cloud = cloud
        self._journal = journal
        self._resource = resource
        self._kind = kind

    def check(self, olds: Properties, news: Properties, naming: Naming, operation: Operation) -> Checked:
        """Complete and judge the inputs."""
        found = inputs.completed(news.plain, olds.plain, self._resource.properties, naming)
        failures = inputs.problems(found, self._resource.properties)
        return Checked({**_marked(found, news.marked)}, failures)

    def diff(
        self, identifier: str, state: Properties, inputs: Properties, news: Properties, operation: Operation
    ) -> Difference:
        """Compare the recorded state with the new inputs."""
        self._journal.known(operation.urn, identifier)
        changes = planning.changes(state.plain, news.plain, self._resource.properties)
        found = Difference(not_ignored(self._kind.judged(changes, state.plain, news.plain), operation.ignore))
        named = "name" in news.plain and "name" not in news.plain.get(DEFAULTS, ())
        # Two resources of one name cannot stand side by side; a made-up name is another one each time.
        found.delete_before_replace = bool(found.replaces) and named
        return found

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Values]:
        """Create a resource and wait for it; at preview, return what can be foreseen."""
        if operation.preview:
            return "", planning.planned(None, inputs.plain, self._resource.properties)
        planned = self.recorded(inputs.plain)
        call = self._call(inputs.plain, operation, "create")
        earlier = self._journal.kept(operation.urn)
        begun = Entry(operation.urn, self._resource.token, "", inputs.plain, self._cloud.given, time.time())
        self._journal.keep(begun)
        call.made = lambda made: self._journal.keep(replace(begun, identifier=made))
        try:
            self._kind.create(call, inputs.plain)
            return call.identifier, self._state(call, planned)
        except ProviderError as error:
            if isinstance(error, ApiError) and error.status < _NOBODY_KNOWS:
                self._refused(operation.urn, earlier)
            if not call.identifier:
                raise
            # Upstream records what was planned, and reads nothing.
            state = {**planned, **call.kept, "id": call.identifier}
            raise PartialError(str(error), call.identifier, self._hidden(state), inputs, [str(error)]) from error

    def _refused(self, urn: str, earlier: Entry | None) -> None:
        """Forget a creation, unless it has made something: what an earlier one has made may be why it was refused."""
        self._journal.known(urn, "")
        if earlier is not None and self._journal.kept(urn) is None:
            self._journal.keep(earlier)

    def find(self, inputs: Mapping[str, Any], begun: float) -> str | None:
        """Return the ID of what a creation has made whose answer got lost; None where it has made nothing.

        begun: when it was, in seconds since 1970.
        """
        call = self._call(inputs, Operation("", Host("")), "read")
        return self._kind.find(call, inputs, datetime.fromtimestamp(int(begun), UTC))

    def recorded(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state that is known of a resource right after its creation."""
        return _known(planning.planned(None, inputs, self._resource.properties))

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        """Return a resource as it is now."""
        self._journal.known(operation.urn, identifier)
        before = {name: value for name, value in state.plain.items() if name != "id"}
        call = self._call(before, operation, "read", identifier)
        read = self._kind.read(call, identifier, before)
        if read is None:
            return None
        after = self._with_region(call, {**before, **read})
        return Found(identifier, {**self._hidden(after), "id": identifier}, self._inputs(after, inputs))

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Values:
        """Update a resource and wait for it; at preview, return what can be foreseen."""
        properties, before = self._resource.properties, state.plain
        planned = planning.planned(before, news.plain, properties)
        if operation.preview:
            return {**planned, "id": identifier}
        call = self._call(news.plain, operation, "update", identifier)
        changes = self._kind.judged(planning.changes(before, news.plain, properties), before, news.plain)
        self._kind.update(call, before, news.plain, frozenset(str(path[0]) for path in changes))
        return self._state(call, planned)

    def delete(self, identifier: str, state: Properties, operation: Operation) -> None:
        """Delete a resource and wait until it is gone."""
        self._journal.known(operation.urn, identifier)
        call = self._call(state.plain, operation, "delete", identifier)
        self._kind.delete(call, identifier, state.plain)

    def _call(self, values: Mapping[str, Any], operation: Operation, what: str, identifier: str = "") -> Call:
        region = str(values.get("region") or "")
        return Call(self._cloud, region, operation, self._resource.seconds(what), identifier)

    def _state(self, call: Call, planned: Mapping[str, Any]) -> dict[str, Any]:
        known = {**planned, **call.kept}
        read = self._kind.read(call, call.identifier, known)
        if read is None:
            raise ProviderError(f"{call.identifier} was gone as soon as it was there")
        return {**self._hidden(self._with_region(call, {**known, **read})), "id": call.identifier}

    def _with_region(self, call: Call, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "region": call.region}

    def _hidden(self, state: Mapping[str, Any]) -> dict[str, Any]:
        properties = self._resource.properties
        return {
            name: Secret(value) if name in properties and properties[name].secret and value else value
            for name, value in state.items()
        }

    def _inputs(self, state: Mapping[str, Any], before: Properties) -> dict[str, Any]:
        """Return the inputs that would make the resource as it is.

        Where there were some, these, with what is different now; an import has all that say something.
        """
        properties = self._resource.inputs
        if not before:
            found = {name: state[name] for name, each in properties.items() if _says(state.get(name), each)}
            return {**found, DEFAULTS: []}
        drifted = planning.changed(state, before.plain, self._resource.properties)
        return {name: state.get(name) if name in drifted else value for name, value in before.marked.items()}


def _says(value: Any, of: Property) -> bool:
    return not is_empty(value) and value != of.default


def _known(planned: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is not known without the rest, at any depth."""

    def known(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: known(each) for name, each in value.items() if each is not UNKNOWN}
        return [known(each) for each in value] if isinstance(value, list) else value

    return {name: known(value) for name, value in planned.items() if value is not UNKNOWN}


def _marked(values: Mapping[str, Any], marked: Mapping[str, Any]) -> dict[str, Any]:
    """Return completed inputs with the secrets that the given ones have."""
    return {name: Secret(value) if isinstance(marked.get(name), Secret) else value for name, value in values.items()}
