"""What an emulated provider consists of, in plain values: a plugin, its configured providers, their resources.

The server (`emulator.plugin.server`) turns the engine's calls into these. All of it is called from many threads at
once. What is raised is a ProviderError (`emulator.plugin.errors`) with a message for the user.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from emulator.plugin.diffing import Difference
from emulator.plugin.errors import ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.wire import Properties, Values

PROPOSE, ENFORCE, DISABLE = 0, 1, 2

Failure = tuple[str, str]
"""A property and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How to make up a name.

    resource_name: of the resource in the program. seed: makes the made-up name repeatable. proposed, mode: what the
    project's autonaming configuration says (PROPOSE, ENFORCE, DISABLE), empty and None without one.
    """

    resource_name: str
    seed: bytes = b""
    proposed: str = ""
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """Inputs as the other calls expect them, and what is wrong with them."""

    inputs: Values
    failures: Sequence[Failure] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A resource that was read: its ID, its state and the inputs that would make it."""

    identifier: str
    state: Values
    inputs: Values


class Resources(Protocol):
    """The operations on resources of one type, or of several; `operation.token` says of which."""

    def check(self, olds: Properties, news: Properties, naming: Naming, operation: Operation) -> Checked:
        """Complete and judge the inputs. olds: those of an existing resource, empty for a new one."""

    def diff(
        self, identifier: str, state: Properties, inputs: Properties, news: Properties, operation: Operation
    ) -> Difference:
        """Compare a resource with its new inputs. state, inputs: as they were recorded."""

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Values]:
        """Create a resource and return its ID and state; at preview, an ID is not needed."""

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        """Return a resource as it is now, None when it is gone; without inputs, import it."""

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Values:
        """Bring a resource to its new inputs and return its state."""

    def delete(self, identifier: str, state: Properties, operation: Operation) -> None:
        """Delete a resource; one that is gone is a success."""


class Provider(Protocol):
    """One configured provider resource."""

    def resources(self, token: str) -> Resources:
        """Return the operations on a type, `package:module:Name`. Raises ProviderError for unknown ones."""

    def invoke(self, token: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer a function. Raises ProviderError for unknown ones."""


class Plugin(ABC):
    """The packages that one process emulates.

    name, version: of the package; of several, that of the newest version, as the engine wants at least the SDK's and
    does not say which it asks for.
    keeps_secrets: whether states say themselves what is secret in them. Otherwise the engine is told nothing of
    secrets, and carries over which inputs are.
    """

    name: str
    version: str
    keeps_secrets = False

    @abstractmethod
    def configure(self, inputs: dict[str, Any], operation: Operation) -> Provider:
        """Return what serves a provider resource with these inputs."""

    @abstractmethod
    def refusal(self, what: str) -> ProviderError:
        """Return the error for something that the emulation does not do: a component, a method, a list."""

    def check_config(self, inputs: dict[str, Any]) -> Sequence[Failure]:
        """Return what is wrong with the inputs of a provider resource."""
        return ()

    def diff_config(self, before: dict[str, Any], after: dict[str, Any]) -> Difference | None:
        """Compare the inputs of a provider resource, whose replacement replaces all that it serves.

        None leaves the comparison to the engine, which then replaces nothing.
        """
        return None
