"""What can go wrong in a call of the engine; a plugin's own errors are kinds of these."""

from __future__ import annotations

from typing import Any


class ProviderError(Exception):
    """An operation that failed and changed nothing; the message is for the user and says what to do next."""


class CancelledError(ProviderError):
    """The engine cancelled the operation or went away."""


class PartialError(ProviderError):
    """A resource that exists and has to be recorded in the state although the operation failed.

    The engine keeps `properties` and `inputs`, and shows the message as the initialization error.
    """

    def __init__(self, message: str, resource_id: str, properties: dict[str, Any], inputs: dict[str, Any]) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.properties = properties
        self.inputs = inputs
