"""Requests to one API server: authentication, connection pool, errors, watches."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from typing import Any

import urllib3
from kubernetes import config as kubernetes_config
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import ConfigNode
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ProtocolError, ReadTimeoutError

from emulator.plugin.errors import ProviderError
from emulator.plugin.operation import Operation
from emulator.provider.config import Settings
from emulator.provider.errors import ApiError, UnreachableError
from emulator.provider.kubeconfig import Kubeconfig, context_of, with_overrides

APPLY = "application/apply-patch+yaml"  # JSON is YAML
JSON_PATCH = "application/json-patch+json"
_CONNECT_SECONDS = 5.0
# The API server itself answers any request within 60 s (kube-apiserver --request-timeout).
_READ_SECONDS = 70.0
_CONNECTIONS = 64
_RETRIES_WHEN_ASKED = 10

Query = dict[str, str]


class Client:
    """Requests under the credentials of one provider resource. Safe for any number of threads."""

    def __init__(self, settings: Settings) -> None:
        """Load credentials; runs no command and opens no connection yet, except for an exec plugin's command.

        Where that command fails, each request raises UnreachableError with what it said.
        """
        self._kubeconfig = with_overrides(settings.kubeconfig, settings.context, settings.cluster)
        self._configuration = Configuration()
        self._failed = _plugin_failure(self._kubeconfig)
        loaded = self._kubeconfig if self._failed is None else {**self._kubeconfig, "users": []}
        try:
            kubernetes_config.load_kube_config_from_dict(
                loaded, client_configuration=self._configuration, persist_config=False
            )
        except Exception as error:  # the loader raises whatever its helpers raise
            raise ProviderError(f"the credentials of the kubeconfig cannot be loaded: {error}") from None
        self._configuration.proxy = None  # as Go's HTTP client does for loopback
        self._configuration.connection_pool_maxsize = _CONNECTIONS
        self.server: str = self._configuration.host.rstrip("/")
        self._pool = RESTClientObject(self._configuration).pool_manager
        self._timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=settings.timeout or _READ_SECONDS)

    def kubeconfig(self) -> Kubeconfig:
        """Return a kubeconfig for a program that makes requests of its own; it needs no command for its token."""
        bearer = self._headers("").get("Authorization")
        if not bearer:
            return self._kubeconfig
        users = [{**user, "user": {"token": bearer.removeprefix("Bearer ")}} for user in self._kubeconfig["users"]]
        return {**self._kubeconfig, "users": users}

    def request(
        self,
        method: str,
        path: str,
        operation: Operation,
        query: Query | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        """Send a request, its body as JSON, and return the decoded answer.

        Waits and tries again when the server says when (Retry-After). Raises ApiError for a failure that the server
        reports, UnreachableError when there is no answer, CancelledError.
        """
        if self._failed is not None:
            raise UnreachableError(f"the API server {self.server} cannot be reached: {self._failed}")
        url = self._url(path, query)
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        for attempt in range(_RETRIES_WHEN_ASKED + 1):
            operation.check()
            answer = self._send(method, url, data, content_type)
            pause = answer.headers.get("Retry-After")
            if pause and pause.isdigit() and answer.status in (429, 503, 504) and attempt < _RETRIES_WHEN_ASKED:
                operation.sleep(int(pause))
                continue
            break
        if answer.status >= 400:
            raise ApiError(answer.status, _status(answer.data))
        result: dict[str, Any] = json.loads(answer.data)
        return result

    def _send(self, method: str, url: str, body: bytes | None, content_type: str) -> urllib3.BaseHTTPResponse:
        headers = self._headers(content_type if body is not None else "")
        for last in (method != "GET", True):
            try:
                return self._pool.request(
                    method, url, body=body, headers=headers, timeout=self._timeout, retries=False, redirect=False
                )
            except ProtocolError as error:
                # A pooled connection may have been closed at the other end; reading once more is harmless.
                if last:
                    raise self._unreachable(error) from None
            except HTTPError as error:
                raise self._unreachable(error) from None
        raise AssertionError("unreachable code")

    def watch(self, path: str, operation: Operation, query: Query, seconds: float) -> Iterator[dict[str, Any]]:
        """Yield the events of a watch until the server ends it, at the latest after `seconds`.

        Raises ApiError when the server refuses or breaks it off with an error, CancelledError.
        """
        limit = max(1, int(seconds))
        url = self._url(path, {**query, "watch": "true", "timeoutSeconds": str(limit)})
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=limit + 5.0)
        try:
            answer = self._pool.request(
                "GET", url, headers=self._headers(""), timeout=timeout, retries=False, preload_content=False
            )
        except HTTPError as error:
            raise self._unreachable(error) from None
        try:
            if answer.status >= 400:
                raise ApiError(answer.status, _status(answer.data))
            with operation.closing(answer.shutdown):
                yield from _events(answer)
        except (HTTPError, OSError, ValueError):
            # The connection broke, or the operation was cancelled and shut it down: the caller looks again.
            operation.check()
        finally:
            answer.close()

    def _url(self, path: str, query: Query | None) -> str:
        return f"{self.server}{path}?{urllib.parse.urlencode(query)}" if query else f"{self.server}{path}"

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "emulated-pulumi-kubernetes"}
        if content_type:
            headers["Content-Type"] = content_type
        # Asking anew each time lets the configuration refresh a token that ran out.
        bearer = self._configuration.auth_settings().get("BearerToken")
        if bearer and bearer["value"]:
            headers["Authorization"] = bearer["value"]
        return headers

    def _unreachable(self, error: Exception) -> UnreachableError:
        return UnreachableError(
            f"the API server {self.server} does not answer ({_reason(error)}): check that the cluster is "
            "running and that "
            "the provider's kubeconfig names it, then run the command again"
        )


def _plugin_failure(kubeconfig: Kubeconfig) -> str | None:
    """Return why the credential plugin of the context's user fails, which the library only logs, and is nobody then."""
    name, context = context_of(kubeconfig, "")
    users = {each.get("name"): each.get("user") or {} for each in kubeconfig.get("users") or ()}
    plugin = users.get(context.get("user"), {}).get("exec")
    if not plugin:
        return None
    try:
        ExecProvider(ConfigNode(f"users/{name}/exec", plugin), cwd=None).run()
    except (ConfigException, OSError) as error:
        return f"its kubeconfig's credential plugin failed ({str(error).strip()})"
    return None


def _reason(error: Exception) -> str:
    if isinstance(error, NewConnectionError):
        return str(error).rpartition(": ")[2]
    if isinstance(error, ConnectTimeoutError):
        return f"no connection within {_CONNECT_SECONDS:.0f} s"
    if isinstance(error, ReadTimeoutError):
        return "the answer took too long"
    return str(error)


def _status(data: bytes) -> dict[str, Any]:
    try:
        status = json.loads(data)
    except ValueError:
        return {"message": data[:500].decode(errors="replace").strip()}
    return status if isinstance(status, dict) else {"message": str(status)}


def _events(answer: urllib3.BaseHTTPResponse) -> Iterator[dict[str, Any]]:
    rest_of_line = b""
    for chunk in answer.stream(65536):
        *lines, rest_of_line = (rest_of_line + chunk).split(b"\n")
        for line in lines:
            if not line.strip():
                continue
            event: dict[str, Any] = json.loads(line)
            if event.get("type") == "ERROR":
                status = event.get("object") or {}
                raise ApiError(int(status.get("code") or 500), status)
            yield event
