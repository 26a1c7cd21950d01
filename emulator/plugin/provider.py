"""The interfaces of an emulated provider, with plain values: a plugin, its configured providers, their resources.

The server (`emulator.plugin.server`) calls them from many threads at once. They raise ProviderError
(`emulator.plugin.errors`) with a message for the user.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from emulator.plugin.diffing import Difference
from emulator.plugin.operation import Operation

Properties = dict[str, Any]
"""A property map. Values that are unknown before an update has run are `wire.UNKNOWN`."""

Failure = tuple[str, str]
"""A property and its problem."""


@dataclass(frozen=True, slots=True)
class Found:
    """A resource that was read: its ID, its state, and the inputs that would create it."""

    id: str
    outputs: Properties
    inputs: Properties


class Resources(Protocol):
    """The operations on resources of one or several types; `operation.token` is the type."""

    def check(self, olds: Properties, news: Properties, operation: Operation) -> tuple[Properties, Sequence[Failure]]:
        """Return the completed inputs and their problems. olds: inputs of an existing resource, or empty."""

    def diff(self, identifier: str, inputs: Properties, news: Properties, operation: Operation) -> Difference:
        """Return the differences between a resource's recorded inputs and the new ones."""

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        """Create a resource and return its ID and state. At preview, an ID is not needed."""

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        """Return the current resource, None if it does not exist. Without inputs, import it."""

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Properties:
        """Update a resource to its new inputs and return its state."""

    def delete(self, identifier: str, operation: Operation) -> None:
        """Delete a resource. Succeeds if it does not exist."""


class Provider(Protocol):
    """One configured provider resource."""

    def resources(self, token: str) -> Resources:
        """Return the operations on a type, `package:module:Name`. Raises ProviderError for unknown ones."""

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """Return the result of a function. Raises ProviderError for unknown ones."""


class Plugin(Protocol):
    """The packages that one process emulates.

    name, version: of the package. With several packages, the newest version: the engine requires at least the SDK's,
        and does not name the requested package.
    """

    name: str
    version: str

    def check_config(self, inputs: Properties) -> Sequence[Failure]:
        """Return the problems of the inputs of a provider resource."""

    def configure(self, inputs: Properties) -> Provider:
        """Return the provider for a provider resource with these inputs. Raises ProviderError for invalid ones."""
