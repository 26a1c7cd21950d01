"""The provider packages azure-native and random, served by one process: every call names its type."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from emulator.azure import VERSIONS, functions, random_password, schema
from emulator.azure.errors import NotEmulatedError
from emulator.azure.lifecycle import Lifecycle
from emulator.azure.validation import problems
from emulator.plugin.diffing import Change, Difference, differences, not_ignored
from emulator.plugin.errors import ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Checked, Failure, Found, Naming, Plugin, Resources
from emulator.plugin.wire import UNKNOWN, Properties, Values


class Azure(Plugin):
    """The emulated Azure as a plugin. lifecycle: of the emulated subscription under its own id."""

    name = "azure-native"
    version = max(VERSIONS.values())

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    def check_config(self, inputs: dict[str, Any]) -> Sequence[Failure]:
        """Refuse what names another endpoint than that of the public cloud, which is the one that is emulated.

        The names of the inputs: schema of pulumi-azure-native, provider inputs `environment` and `metadataHost`.
        """
        found = []
        if inputs.get("environment") not in (None, "", "public", UNKNOWN):
            found.append(("environment", f"is {inputs['environment']!r}; the emulated Azure is the public cloud alone"))
        if inputs.get("metadataHost"):
            host = inputs["metadataHost"]
            found.append(("metadataHost", f"names {host}; the emulated Azure is reached at no other host"))
        return found

    def configure(self, inputs: dict[str, Any], operation: Operation) -> Subscription:
        """Serve the subscription that the provider resource names: every one is the emulated one."""
        for key, reason in self.check_config(inputs):
            raise ProviderError(f"provider input {key}: {reason}")
        given, found = inputs.get("subscriptionId"), self._lifecycle
        if given:
            try:
                found = Lifecycle(found.arm.of_subscription(str(uuid.UUID(str(given)))))
            except ValueError:
                raise ProviderError(
                    f"subscriptionId {given!r} is no id of a subscription: a GUID is expected"
                ) from None
        return Subscription(found, str(inputs.get("location") or ""))

    def refusal(self, what: str) -> ProviderError:
        """Return the error for something that is not emulated."""
        return ProviderError(f"the emulated Azure does not do {what}: it has resources and functions only")


class Subscription:
    """A configured provider resource of azure-native or random. location: the default for resources."""

    def __init__(self, lifecycle: Lifecycle, location: str) -> None:
        self._lifecycle = lifecycle
        self._location = location

    def resources(self, token: str) -> Resources:
        """Return the operations on a type. Raises ProviderError for a type of random that is not emulated."""
        if not token.startswith("random:"):
            return AzureResources(self._lifecycle, self._location)
        if token != random_password.TOKEN:
            raise NotEmulatedError(token, f"of random {random_password.TOKEN}")
        return Passwords()

    def invoke(self, token: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer a function."""
        given = {key: value for key, value in arguments.items() if value is not None}
        return functions.answer(self._lifecycle.arm, token, given)


class AzureResources:
    """The resources of azure-native."""

    def __init__(self, lifecycle: Lifecycle, location: str) -> None:
        self._lifecycle = lifecycle
        self._location = location

    def check(self, olds: Properties, news: Properties, naming: Naming, operation: Operation) -> Checked:
        """Complete and judge the inputs."""
        return Checked(*self._lifecycle.check(operation.token, news.plain, olds.plain, self._location))

    def diff(
        self, identifier: str, state: Properties, inputs: Properties, news: Properties, operation: Operation
    ) -> Difference:
        """Compare the recorded inputs with the new ones."""
        changes = self._lifecycle.diff(operation.token, inputs.plain, news.plain, list(operation.ignore), identifier)
        found = Difference(changes)
        # Names are never made up, and no two resources have one name.
        found.delete_before_replace = bool(found.replaces)
        return found

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Values]:
        """Create a resource and wait for it; at preview, return what can be foreseen."""
        if operation.preview:
            return "", self._lifecycle.preview(operation.token, inputs.plain, None)
        return self._lifecycle.create(operation.token, inputs.plain, operation)

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        """Return a resource as it is now."""
        found = self._lifecycle.read(operation.token, identifier, state.plain, inputs.plain)
        return Found(found.id, found.outputs, found.inputs) if found.id else None

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Values:
        """Update a resource and wait for it; at preview, return what can be foreseen."""
        if operation.preview:
            return self._lifecycle.preview(operation.token, news.plain, state.plain)
        return self._lifecycle.update(operation.token, identifier, news.plain, operation)

    def delete(self, identifier: str, state: Properties, operation: Operation) -> None:
        """Delete a resource and wait until it is gone."""
        self._lifecycle.delete(operation.token, identifier, operation)


class Passwords:
    """The one resource of random: made once, it lives in the state."""

    def check(self, olds: Properties, news: Properties, naming: Naming, operation: Operation) -> Checked:
        """Judge the inputs."""
        return Checked(news, problems(news.plain, schema.resource(random_password.TOKEN).inputs))

    def diff(
        self, identifier: str, state: Properties, inputs: Properties, news: Properties, operation: Operation
    ) -> Difference:
        """Replace the password with every change of an input."""
        changes = {path: Change(kind, replaces=True) for path, kind, _ in differences(inputs.plain, news.plain)}
        return Difference(not_ignored(changes, operation.ignore))

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Values]:
        """Make a password up; at preview it is not known."""
        if operation.preview:
            return "", {**inputs.plain, "result": UNKNOWN}
        return "none", random_password.create(inputs.plain)

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        """Return the password as it was recorded."""
        return Found(identifier, state, inputs)

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Values:
        """Keep the password: what would change it replaces it."""
        return {**state.plain, **news.plain}

    def delete(self, identifier: str, state: Properties, operation: Operation) -> None:
        """Forget the password: there is nothing to delete."""
