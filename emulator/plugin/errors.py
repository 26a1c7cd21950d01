"""What can go wrong in a call of the engine; a plugin's own errors are kinds of these."""

from __future__ import annotations

from typing import Any


class ProviderError(Exception):
    """An operation that failed; the message is for the user and says what to do next."""


class CancelledError(ProviderError):
    """The engine cancelled the operation or went away."""


class PartialError(ProviderError):
    """A resource that exists and has to be recorded in the state although the operation failed.

    The engine keeps `properties` and shows `reasons` as initialization errors.
    """

    def __init__(self, message: str, resource_id: str, properties: Any, inputs: Any, reasons: list[str]) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.properties = properties
        self.inputs = inputs
        self.reasons = reasons
