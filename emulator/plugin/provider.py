"""What an emulated provider consists of, in plain values: a plugin, its configured providers, their resources.

The server (`emulator.plugin.server`) turns the engine's calls into these. All of it is called from many threads at
once. What is raised is a ProviderError (`emulator.plugin.errors`) with a message for the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from emulator.plugin.diffing import Difference
from emulator.plugin.operation import Operation

Properties = dict[str, Any]
"""A property map; values that are not known before an update has run are `wire.UNKNOWN`."""

Failure = tuple[str, str]
"""A property and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A resource that was read: its ID, its state and the inputs that would make it."""

    id: str
    outputs: Properties
    inputs: Properties


class Resources(Protocol):
    """The operations on resources of one type, or of several; `operation.token` says of which."""

    def check(self, olds: Properties, news: Properties, operation: Operation) -> tuple[Properties, Sequence[Failure]]:
        """Return the completed inputs and what is wrong with them. olds: those of an existing resource, or empty."""

    def diff(self, identifier: str, inputs: Properties, news: Properties, operation: Operation) -> Difference:
        """Compare the recorded inputs of a resource with its new ones."""

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        """Create a resource and return its ID and state; at preview, an ID is not needed."""

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        """Return a resource as it is now, None when it is gone; without inputs, import it."""

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Properties:
        """Bring a resource to its new inputs and return its state."""

    def delete(self, identifier: str, operation: Operation) -> None:
        """Delete a resource; one that is gone is a success."""


class Provider(Protocol):
    """One configured provider resource."""

    def resources(self, token: str) -> Resources:
        """Return the operations on a type, `package:module:Name`. Raises ProviderError for unknown ones."""

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """Return the answer of a function. Raises ProviderError for unknown ones."""


class Plugin(Protocol):
    """The packages that one process emulates.

    name, version: of the package; of several, that of the newest version, as the engine wants at least the SDK's and
    does not say which it asks for.
    """

    name: str
    version: str

    def check_config(self, inputs: Properties) -> Sequence[Failure]:
        """Return what is wrong with the inputs of a provider resource."""

    def configure(self, inputs: Properties) -> Provider:
        """Return what serves a provider resource with these inputs. Raises ProviderError for bad ones."""
