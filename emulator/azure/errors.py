"""Errors of the emulated Azure."""

from __future__ import annotations

from emulator.plugin.errors import ProviderError


class ArmError(ProviderError):
    """An error of Azure Resource Manager, with the HTTP status, code and message of its REST API.

    hint: the fix, if the real service has it only in its documentation.
    retry_after: seconds until a caller repeats the call, None if that does not help.
    """

    def __init__(
        self, code: str, message: str, *, status: int = 400, hint: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(f'Status={status} Code="{code}" Message="{message}"{f" {hint}" if hint else ""}')
        self.code = code
        self.message = message
        self.status = status
        self.retry_after = retry_after


class OperationFailedError(ArmError):
    """An asynchronous operation was accepted and failed. The resource exists, in state Failed."""


class NotEmulatedError(ProviderError):
    """The emulated Azure does not support a resource type or a function."""

    def __init__(self, token: str, known: str) -> None:
        super().__init__(f"the emulated Azure does not emulate {token}. It emulates {known}")


def invalid(message: str, hint: str = "") -> ArmError:
    """Return the error of AKS and Compute for most invalid requests."""
    return ArmError("InvalidParameter", message, hint=hint)


def not_found(resource_id: str) -> ArmError:
    """Return the error for a resource that does not exist."""
    kind, _, name = resource_id.rpartition("/")
    return ArmError(
        "ResourceNotFound",
        f"The resource '{kind.rpartition('/providers/')[2]}/{name}' was not found: {resource_id}",
        status=404,
    )


def parent_not_found(parent_id: str) -> ArmError:
    """Return the error for a resource whose parent does not exist."""
    return ArmError("ParentResourceNotFound", f"The parent resource '{parent_id}' could not be found.", status=404)
