"""Answers to the engine that both stand-in providers give."""

from __future__ import annotations

from typing import NoReturn

import grpc
from pulumi.runtime.proto import provider_pb2, status_pb2

from emulator.plugin.errors import PartialError


def abort_partially(context: grpc.ServicerContext, error: PartialError) -> NoReturn:
    """End a call with the detail that makes the engine keep a resource that did not become ready."""
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    detail = provider_pb2.ErrorResourceInitFailed(
        id=error.resource_id, properties=error.properties, inputs=error.inputs, reasons=error.reasons
    )
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(error))
    raise AssertionError("abort returned")
