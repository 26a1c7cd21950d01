"""Applies planned faults to a service's calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from emulator.openstack.faults import FAIL, HANG, TIMEOUT, Faults

_HANG_SECONDS = 60.0
_HTML = [("Content-Type", "text/html"), ("Cache-Control", "no-cache")]


class Failing:
    """A WSGI application (PEP 3333) in front of a service, in place of a load balancer."""

    def __init__(self, application: Callable[..., Iterable[bytes]], service: str, faults: Faults) -> None:
        self._application = application
        self._service = service
        self._faults = faults

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve one call."""
        call = f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '')}"
        kind = self._faults.take(self._service, call)
        if kind == FAIL:
            return _answer(start_response, "503 Service Unavailable")
        if kind == TIMEOUT:
            self._finish(environ)
            return _answer(start_response, "504 Gateway Timeout")
        if kind == HANG:
            time.sleep(_HANG_SECONDS)
        return self._application(environ, start_response)

    def _finish(self, environ: dict[str, Any]) -> None:
        """Run the call without returning its response."""
        answer = self._application(environ, lambda status, headers, exc_info=None: lambda data: None)
        for _ in answer:
            pass
        close = getattr(answer, "close", None)
        if close is not None:
            close()


def _answer(start_response: Callable[..., Any], status: str) -> list[bytes]:
    start_response(status, _HTML)
    return [f"<html><body><h1>{status}</h1></body></html>\n".encode()]
