"""Errors of the emulated Azure."""

import functools
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

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
    return refused("ResourceNotFound", type=kind.rpartition("/providers/")[2], name=name, id=resource_id)


class _Refusal(BaseModel):
    """An error of `refusals.yaml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str = ""
    message: str
    status: int = 400
    hint: str = ""


def refused(name: str, /, *, retry_after: float | None = None, **values: object) -> ArmError:
    """Return an error of `refusals.yaml`. values: of the names in braces in its texts."""
    refusal = _refusals()[name]
    return ArmError(
        refusal.code or name,
        refusal.message.format(**values),
        status=refusal.status,
        hint=refusal.hint.format(**values),
        retry_after=retry_after,
    )


@functools.cache
def _refusals() -> Mapping[str, _Refusal]:
    text = Path(__file__).with_name("refusals.yaml").read_text()
    return TypeAdapter(dict[str, _Refusal]).validate_python(yaml.safe_load(text))
