"""A small client of the Kubernetes REST API that takes and returns plain objects."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import urllib3

from emulator.cluster.credentials import Account

Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

WATCH_SECONDS = 300
"""Longest time of a watch; then it starts again."""


class ApiError(Exception):
    """The API server returned an error, or did not respond (status 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@contextlib.contextmanager
def unless_gone() -> Iterator[None]:
    """Ignore errors for an object that does not exist, exists already, or was replaced."""
    try:
        yield
    except ApiError as error:
        if error.status not in (404, 409):
            raise


def is_ready(found: Object) -> bool:
    """Tell whether an object has the condition Ready."""
    conditions = (found.get("status") or {}).get("conditions") or []
    return any((condition["type"], condition["status"]) == ("Ready", "True") for condition in conditions)


class Api:
    """Requests to one API server as one account, or as a user that the account impersonates. Thread-safe."""

    def __init__(self, account: Account, *, timeout: float = 10.0, user: str = "") -> None:
        self._server = account.server
        self._timeout = timeout
        self._pool = urllib3.PoolManager(
            num_pools=2,
            maxsize=16,
            ca_cert_data=account.authority,
            headers={"Authorization": f"Bearer {account.token}", **({"Impersonate-User": user} if user else {})},
        )

    def get(self, path: str) -> Object:
        """Return the object at an API path."""
        return self._json("GET", path)

    def create(self, path: str, body: Object) -> Object:
        """Create an object in the collection at an API path."""
        return self._json("POST", path, body)

    def apply(self, path: str, body: Object, manager: str) -> Object:
        """Make the object at an API path equal to `body`, and remove what the same manager applied before.

        Server-side apply: creates a missing object, and takes fields over from other managers.
        """
        query = urlencode({"fieldManager": manager, "force": "true"})
        return self._json("PATCH", f"{path}?{query}", body, "application/apply-patch+yaml")

    def patch(self, path: str, body: Object, kind: str = STRATEGIC_MERGE_PATCH) -> Object:
        """Patch the object at an API path."""
        return self._json("PATCH", path, body, kind)

    def delete(self, path: str, body: Object) -> Object:
        """Delete the object at an API path; `body` is its DeleteOptions."""
        return self._json("DELETE", path, body)

    def ready(self) -> bool:
        """Tell whether the API server reports that it is ready."""
        try:
            self._send("GET", "/readyz")
        except ApiError:
            return False
        return True

    def watch(self, path: str) -> Iterator[Object]:
        """Yield the events of a watch until it ends."""
        timeout = urllib3.Timeout(connect=self._timeout, read=WATCH_SECONDS + 30)
        response = self._send("GET", path, timeout=timeout, preload_content=False)
        try:
            for line in response:
                yield json.loads(line)
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(0, str(error)) from error
        finally:
            response.close()

    def _json(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object:
        data = None if body is None else json.dumps(body).encode()
        found: Object = self._send(method, path, body=data, headers={**self._pool.headers, "Content-Type": kind}).json()
        return found

    def _send(self, method: str, path: str, **options: Any) -> urllib3.BaseHTTPResponse:
        options = {"timeout": self._timeout, "retries": False, **options}
        try:
            response = self._pool.request(method, self._server + path, **options)
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(0, f"{method} {path}: {error}") from error
        if response.status >= 300:
            raise ApiError(response.status, f"{method} {path}: {response.status} {_message(response.data)}")
        return response


def path_of(api: Api, document: Object) -> str:
    """Return the API path of an object, after reading the names of its API's kinds.

    Raises ApiError if the cluster does not have the kind.
    """
    version, metadata = document["apiVersion"], document["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    kinds = {found["kind"]: found for found in api.get(root)["resources"] if "/" not in found["name"]}
    if document["kind"] not in kinds:
        raise ApiError(404, f"the cluster has no such kind in {version}")
    kind = kinds[document["kind"]]
    scope = f"/namespaces/{metadata.get('namespace', 'default')}" if kind["namespaced"] else ""
    return f"{root}{scope}/{kind['name']}/{metadata['name']}"


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body[:500].decode(errors="replace")
