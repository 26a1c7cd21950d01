"""The provider packages azure-native and random, served by one process, because each call names its type."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from emulator.azure import VERSIONS, functions, random_password, schema
from emulator.azure.errors import NotEmulatedError
from emulator.azure.lifecycle import Lifecycle
from emulator.azure.validation import problems
from emulator.plugin.diffing import Change, Difference, differences, not_ignored
from emulator.plugin.errors import ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Failure, Found, Properties, Resources
from emulator.plugin.wire import UNKNOWN


class Azure:
    """The emulated Azure as a plugin. lifecycle: of the emulated subscription under its own id."""

    name = "azure-native"
    version = max(VERSIONS.values())

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    def check_config(self, inputs: Properties) -> Sequence[Failure]:
        """Return a failure for an endpoint other than the emulated public cloud.

        Source of the input names: schema of pulumi-azure-native, provider inputs `environment` and `metadataHost`.
        """
        found = []
        if inputs.get("environment") not in (None, "", "public", UNKNOWN):
            found.append(("environment", f"is {inputs['environment']!r}; only the public cloud is emulated"))
        if inputs.get("metadataHost"):
            host = inputs["metadataHost"]
            found.append(("metadataHost", f"names {host}; the emulated Azure has no other host"))
        return found

    def configure(self, inputs: Properties) -> Subscription:
        """Return the subscription that the provider resource names. Every id is the emulated subscription.

        Raises ProviderError for another endpoint and for an invalid id.
        """
        for key, reason in self.check_config(inputs):
            raise ProviderError(f"provider input {key}: {reason}")
        given, found = inputs.get("subscriptionId"), self._lifecycle
        if given:
            try:
                found = Lifecycle(found.arm.of_subscription(str(uuid.UUID(str(given)))))
            except ValueError:
                raise ProviderError(
                    f"subscriptionId {given!r} is not the id of a subscription: a GUID is expected"
                ) from None
        return Subscription(found, str(inputs.get("location") or ""))


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

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """Return a function's result. Raises ProviderError if it is not emulated or Azure would reject the call."""
        given = {key: value for key, value in arguments.items() if value is not None}
        return functions.answer(self._lifecycle.arm, token, given)


class AzureResources:
    """The resources of azure-native. A change waits for its operation; a preview returns the outputs known before."""

    def __init__(self, lifecycle: Lifecycle, location: str) -> None:
        self._lifecycle = lifecycle
        self._location = location

    def check(self, olds: Properties, news: Properties, operation: Operation) -> tuple[Properties, Sequence[Failure]]:
        return self._lifecycle.check(operation.token, news, olds, self._location)

    def diff(self, identifier: str, inputs: Properties, news: Properties, operation: Operation) -> Difference:
        changes = self._lifecycle.diff(operation.token, inputs, news, list(operation.ignore), identifier)
        # Names are not generated, and are unique, so the old resource goes first.
        return Difference(changes, delete_before_replace=any(each.replaces for each in changes.values()))

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        if operation.preview:
            return "", self._lifecycle.preview(operation.token, inputs, None)
        return self._lifecycle.create(operation.token, inputs, operation)

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        return self._lifecycle.read(operation.token, identifier, state, inputs)

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Properties:
        if operation.preview:
            return self._lifecycle.preview(operation.token, news, state)
        return self._lifecycle.update(operation.token, identifier, news, operation)

    def delete(self, identifier: str, operation: Operation) -> None:
        self._lifecycle.delete(operation.token, identifier, operation)


class Passwords:
    """The only resource of random. It is generated once and stored in the state."""

    def check(self, olds: Properties, news: Properties, operation: Operation) -> tuple[Properties, Sequence[Failure]]:
        return news, problems(news, schema.resource(random_password.TOKEN).inputs)

    def diff(self, identifier: str, inputs: Properties, news: Properties, operation: Operation) -> Difference:
        """Return the differences; each of them replaces the password."""
        changes = {path: Change(kind, replaces=True) for path, kind in differences(inputs, news)}
        return Difference(not_ignored(changes, operation.ignore))

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        """Generate a password; at preview it is unknown."""
        if operation.preview:
            return "", {**inputs, "result": UNKNOWN}
        return "none", random_password.create(inputs)

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        return Found(identifier, state, inputs)

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Properties:
        """Return the state unchanged: a change of the password replaces it."""
        return {**state, **news}

    def delete(self, identifier: str, operation: Operation) -> None:
        """Accept the call: the password exists only in the state."""
