"""What can go wrong in a call of the engine; a plugin's own errors are kinds of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.plugin.wire import Values


class ProviderError(Exception):
    """An operation that failed and changed nothing; the message is for the user and says what to do next."""


class OutcomeUnknownError(ProviderError):
    """An operation of which nobody knows whether it has changed anything: what it spoke to went away."""


class CancelledError(ProviderError):
    """The engine cancelled the operation or went away."""


class PartialError(ProviderError):
    """A resource that exists and has to be recorded in the state although the operation failed.

    The engine keeps `properties`, and `inputs` unless they are None, and shows `reasons` as initialization errors.
    """

    def __init__(
        self, message: str, resource_id: str, properties: Values, inputs: Values | None, reasons: Sequence[str]
    ) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.properties = properties
        self.inputs = inputs
        self.reasons = reasons
