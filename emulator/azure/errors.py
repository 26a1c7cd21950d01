"""What the emulated Azure answers when it refuses or fails."""

from __future__ import annotations

from emulator.plugin.errors import ProviderError


class ArmError(ProviderError):
    """An error of Azure Resource Manager: HTTP status, code and message, as its REST API gives them.

    hint: how to put it right, where the real service leaves that to its documentation.
    retry_after: seconds after which a caller tries again, None where that is of no use.
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
    """An asynchronous operation that was accepted and then failed: the resource exists, in state Failed."""


class NotEmulatedError(ProviderError):
    """The emulated Azure does not know a resource type or a function."""

    def __init__(self, token: str, known: str) -> None:
        super().__init__(f"the emulated Azure does not emulate {token}. It emulates {known}")


def invalid(message: str, hint: str = "") -> ArmError:
    """Return the error that AKS and Compute have for most bad requests."""
    return ArmError("InvalidParameter", message, hint=hint)


def not_found(resource_id: str) -> ArmError:
    """Return the error for a resource that is not there."""
    kind, _, name = resource_id.rpartition("/")
    return ArmError(
        "ResourceNotFound",
        f"The resource '{kind.rpartition('/providers/')[2]}/{name}' was not found: {resource_id}",
        status=404,
    )


def parent_not_found(parent_id: str) -> ArmError:
    """Return the error for a resource below one that is not there."""
    return ArmError("ParentResourceNotFound", f"The parent resource '{parent_id}' could not be found.", status=404)
