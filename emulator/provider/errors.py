"""What can go wrong between the engine and an API server."""

from __future__ import annotations

from typing import Any

from emulator.plugin.errors import OutcomeUnknownError, ProviderError


class UnreachableError(OutcomeUnknownError):
    """The API server did not answer at all."""


class NoMatchError(ProviderError):
    """The API server does not serve the kind: usually its CustomResourceDefinition is missing."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')


class NotReadyError(ProviderError):
    """The object exists but did not become ready, or did not go away, in time.

    live: the object as last seen.
    reasons: what is missing, one sentence each.
    """

    def __init__(self, message: str, live: dict[str, Any], reasons: list[str]) -> None:
        super().__init__(message)
        self.live = live
        self.reasons = reasons


class ApiError(ProviderError):
    """A failure that the API server reported: a `Status` object of kind meta/v1."""

    def __init__(self, code: int, status: dict[str, Any]) -> None:
        super().__init__(status.get("message") or f"the API server answered with HTTP status {code}")
        self.code = code
        self.reason: str = status.get("reason") or ""
        self.details: dict[str, Any] = status.get("details") or {}

    @property
    def not_found(self) -> bool:
        """The object, or the resource type in the path, does not exist."""
        return self.code == 404

    @property
    def already_exists(self) -> bool:
        """Another object has the name."""
        return self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """Other field managers own fields of the request, or the resource version is out of date."""
        return self.reason == "Conflict"

    @property
    def forbidden(self) -> bool:
        """The user may not do this."""
        return self.code == 403

    @property
    def namespace_missing(self) -> bool:
        """The namespace of a namespaced object does not exist."""
        return self.not_found and self.details.get("kind") == "namespaces"
