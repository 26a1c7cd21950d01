"""Errors of a call from the engine. A plugin's own errors are subclasses."""

from typing import Any


class ProviderError(Exception):
    """An operation failed before it changed a resource. The message is for the user and contains the fix."""


class CancelledError(ProviderError):
    """The engine cancelled the operation or disconnected."""


class PartialError(ProviderError):
    """The operation failed, but the resource exists and must be recorded in the state.

    The engine stores `properties` and `inputs`, and shows the message as the initialization error.
    """

    def __init__(self, message: str, resource_id: str, properties: dict[str, Any], inputs: dict[str, Any]) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.properties = properties
        self.inputs = inputs
