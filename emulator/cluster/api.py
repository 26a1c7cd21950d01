"""A small client of the Kubernetes REST API: requests, and stores that follow a collection by list and watch.

The `kubernetes` package takes over a second to import, too long for processes that should be up in a few.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import urllib3

from emulator.cluster.credentials import Account

Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

_log = logging.getLogger(__name__)
_WATCH_SECONDS = 300
_RETRY_SECONDS = 0.5


class ApiError(Exception):
    """The API server answered with an error, or did not answer (status 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def is_ready(found: Object) -> bool:
    """Tell whether an object has the condition Ready."""
    conditions = (found.get("status") or {}).get("conditions") or []
    return any((condition["type"], condition["status"]) == ("Ready", "True") for condition in conditions)


class Api:
    """Requests to one API server as one account; safe to use from several threads."""

    def __init__(self, account: Account, *, timeout: float = 10.0) -> None:
        self._server = account.server
        self._timeout = timeout
        self._pool = urllib3.PoolManager(
            num_pools=2,
            maxsize=16,
            ca_cert_data=account.authority,
            headers={"Authorization": f"Bearer {account.token}"},
        )

    def get(self, path: str) -> Object:
        """Return the object at an API path."""
        return self._json("GET", path)

    def create(self, path: str, body: Object) -> Object:
        """Create an object in the collection at an API path."""
        return self._json("POST", path, body)

    def apply(self, path: str, body: Object, manager: str) -> Object:
        """Make the object at an API path what `body` says, and take back what the same manager applied before.

        Server-side apply: creates the object where there is none, and takes fields over from other managers.
        """
        query = urlencode({"fieldManager": manager, "force": "true"})
        return self._json("PATCH", f"{path}?{query}", body, "application/apply-patch+yaml")

    def patch(self, path: str, body: Object, kind: str = STRATEGIC_MERGE_PATCH) -> Object:
        """Patch the object at an API path."""
        return self._json("PATCH", path, body, kind)

    def delete(self, path: str, body: Object) -> Object:
        """Delete the object at an API path; `body` is its DeleteOptions."""
        return self._json("DELETE", path, body)

    def ready(self, path: str = "/readyz", timeout: float = 2.0) -> bool:
        """Tell whether a health endpoint answers 200."""
        try:
            response = self._pool.request("GET", self._server + path, timeout=timeout, retries=False)
        except urllib3.exceptions.HTTPError:
            return False
        return response.status == 200

    @contextmanager
    def stream(self, path: str) -> Iterator[Iterator[Object]]:
        """Yield the events of a watch as they come; the connection ends with the block."""
        timeout = urllib3.Timeout(connect=self._timeout, read=_WATCH_SECONDS + 30)
        try:
            response = self._pool.request(
                "GET", self._server + path, timeout=timeout, retries=False, preload_content=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(0, str(error)) from error
        try:
            if response.status != 200:
                raise ApiError(response.status, response.read(2000, decode_content=True).decode(errors="replace"))
            yield _lines(response)
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(0, str(error)) from error
        finally:
            response.close()

    def _json(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object:
        try:
            response = self._pool.request(
                method,
                self._server + path,
                body=None if body is None else json.dumps(body).encode(),
                headers={**self._pool.headers, "Content-Type": kind},
                timeout=self._timeout,
                retries=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(0, f"{method} {path}: {error}") from error
        if response.status >= 300:
            raise ApiError(response.status, f"{method} {path}: {response.status} {_message(response.data)}")
        found: Object = json.loads(response.data)
        return found


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[Object]:
    rest = b""
    for chunk in response.stream(1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield json.loads(line)


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body[:500].decode(errors="replace")


class Store:
    """A live copy of one collection, kept by list and watch in a thread of its own.

    Objects are keyed by (namespace, name) and must not be changed by readers. `changed` is called, from the thread of
    the store, with the key of each object that was added, changed or deleted.
    """

    def __init__(
        self,
        api: Api,
        collection: str,
        *,
        selector: Mapping[str, str] | None = None,
        changed: Callable[[tuple[str, str]], None] = lambda key: None,
    ) -> None:
        self._api = api
        self._collection = collection
        self._selector = dict(selector or {})
        self._changed = changed
        self._objects: dict[tuple[str, str], Object] = {}
        self._lock = threading.Lock()
        self._synced = threading.Event()

    def start(self) -> None:
        """Start to follow the collection."""
        threading.Thread(target=self._run, name=f"watch {self._collection}", daemon=True).start()

    def wait(self, timeout: float) -> bool:
        """Wait until the collection has been listed once; tell whether it has."""
        return self._synced.wait(timeout)

    def get(self, namespace: str, name: str) -> Object | None:
        """Return one object of the copy."""
        with self._lock:
            return self._objects.get((namespace, name))

    def all(self) -> list[Object]:
        """Return every object of the copy."""
        with self._lock:
            return list(self._objects.values())

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            try:
                self._follow()
            except ApiError as error:
                _log.info("watch of %s interrupted: %s", self._collection, error)
            except Exception:
                _log.exception("watch of %s failed", self._collection)
            pause.wait(_RETRY_SECONDS)

    def _follow(self) -> None:
        listed = self._api.get(self._path({}))
        self._replace({_key(item): item for item in listed.get("items") or []})
        self._synced.set()
        version = listed["metadata"]["resourceVersion"]
        while True:
            query = {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": version,
                "timeoutSeconds": str(_WATCH_SECONDS),
            }
            with self._api.stream(self._path(query)) as events:
                for event in events:
                    item = event["object"]
                    if event["type"] == "ERROR":
                        raise ApiError(int(item.get("code", 0)), str(item.get("message")))
                    version = item["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._apply(event["type"], item)

    def _path(self, query: Mapping[str, str]) -> str:
        both = {**self._selector, **query}
        return f"{self._collection}?{urlencode(both)}" if both else self._collection

    def _replace(self, found: dict[tuple[str, str], Object]) -> None:
        with self._lock:
            old, self._objects = self._objects, found
        for key in old.keys() | found.keys():
            if _version(old.get(key)) != _version(found.get(key)):
                self._changed(key)

    def _apply(self, kind: str, item: Object) -> None:
        key = _key(item)
        with self._lock:
            if kind == "DELETED":
                self._objects.pop(key, None)
            else:
                self._objects[key] = item
        self._changed(key)


def _key(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _version(item: Object | None) -> str | None:
    return None if item is None else item["metadata"]["resourceVersion"]
