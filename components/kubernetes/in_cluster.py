"""The API server as a program in a pod asks it, with the pod's own service account.

Standard library only: this file is shipped beside each program that needs it.
"""

from __future__ import annotations

import json
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

T = TypeVar("T")
Json = dict[str, Any]

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_SECONDS = 10
WATCH_SECONDS = 240
"""The server ends a watch after this long; the client waits for a little longer before it takes the line for dead."""
WATCH_LIMIT = 300.0
"""Seconds within which a watch that works has an event, or has ended."""
PAGE = 50
"""Objects in one answer to a list: a node with its images takes kilobytes, and only what counts of it is kept."""


class Api:
    """One API server.

    account: folder with the account's `token`, and `ca.crt` of a server with https. seconds: bound of each answer.
    """

    def __init__(self, base: str, account: Path = ACCOUNT, seconds: float = REQUEST_SECONDS) -> None:
        self._base, self._account, self._seconds = base, account, seconds
        authority = account / "ca.crt"
        self._tls = ssl.create_default_context(cafile=str(authority)) if base.startswith("https") else None

    @classmethod
    def in_cluster(cls, account: Path = ACCOUNT, seconds: float = REQUEST_SECONDS) -> Api:
        """Return the API server of the cluster that this process runs in; raises KeyError outside of one."""
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        return cls(f"https://{f'[{host}]' if ':' in host else host}:{port}", account, seconds)

    def get(self, path: str, **query: str) -> Json:
        """Return what a path holds."""
        return self._content("GET", path, query)

    def patch(self, path: str, body: Json, **query: str) -> Json:
        """Merge a body into what a path holds; raises HTTPError with code 409 when it has changed since it was read."""
        return self._content("PATCH", path, query, body)

    def create(self, path: str, body: Json) -> Json:
        """Add an object to the collection at a path."""
        return self._content("POST", path, {}, body)

    def watch(self, path: str, version: str, **query: str) -> Iterator[tuple[str, Json]]:
        """Yield type and object of each event after a version, until the server ends the watch."""
        query = {**query, "watch": "true", "resourceVersion": version, "timeoutSeconds": str(WATCH_SECONDS)}
        with self._open("GET", path, query, None, WATCH_SECONDS + self._seconds) as answer:
            for line in answer:
                event = json.loads(line)
                yield event["type"], event["object"]

    def _content(self, method: str, path: str, query: Mapping[str, str], body: Json | None = None) -> Json:
        with self._open(method, path, query, body, self._seconds) as answer:
            content: Json = json.load(answer)
            return content

    def _open(
        self, method: str, path: str, query: Mapping[str, str], body: Json | None, seconds: float
    ) -> HTTPResponse:
        address = f"{self._base}{path}?{urlencode(query)}"  # the API server's, which starts with its scheme
        request = Request(address, method=method)  # noqa: S310
        request.add_header("Authorization", f"Bearer {(self._account / 'token').read_text().strip()}")
        if body is not None:
            request.data = json.dumps(body).encode()
            media = "application/merge-patch+json" if method == "PATCH" else "application/json"
            request.add_header("Content-Type", media)
        answer: HTTPResponse = urlopen(request, timeout=seconds, context=self._tls)  # noqa: S310
        return answer


class Followed(Generic[T]):
    """What counts of all objects at a path of the API server, by name, kept up to date.

    read: makes what counts of an object, given what counted of it before; None where nothing does.
    alive: told for how many seconds nothing may be heard. changed: set with every change.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        read: Callable[[Json, T | None], T | None],
        alive: Callable[[float], None],
        changed: threading.Event,
    ) -> None:
        self._api, self._path, self._read, self._alive, self._changed = api, path, read, alive, changed
        self._version = ""
        self.lock = threading.Lock()
        """Holds `objects` still."""
        self.objects: dict[str, T] = {}
        self.is_complete = False

    def follow(self) -> None:
        """Follow what changes until the server ends the watch; read all objects first where it is not known since when.

        Raises what the API server's client raises; all objects are read anew then, as where the server has forgotten
        the version that the watch is to start from.
        """
        version, self._version = self._version or self._list(), ""
        self._alive(WATCH_LIMIT)
        try:
            for event, item in self._api.watch(self._path, version, allowWatchBookmarks="true"):
                if event == "ERROR":
                    return
                version = item["metadata"]["resourceVersion"]
                self._alive(WATCH_LIMIT)
                if event != "BOOKMARK":
                    self._take(item, is_gone=event == "DELETED")
                    self._changed.set()
        except HTTPError as error:
            if error.code != HTTPStatus.GONE:
                raise
        else:
            self._version = version

    def _list(self) -> str:
        """Read all objects page by page; return the version to watch from."""
        query, found = {"limit": str(PAGE)}, set()
        while True:
            page = self._api.get(self._path, **query)
            for item in page["items"]:
                found.add(item["metadata"]["name"])
                self._take(item)
            if not (rest := page["metadata"].get("continue")):
                break
            query["continue"] = rest
        with self.lock:
            for name in self.objects.keys() - found:
                del self.objects[name]
        self.is_complete = True
        self._changed.set()
        return str(page["metadata"]["resourceVersion"])

    def _take(self, item: Json, *, is_gone: bool = False) -> None:
        name = item["metadata"]["name"]
        with self.lock:
            before = self.objects.pop(name, None)
            if not is_gone and (now := self._read(item, before)) is not None:
                self.objects[name] = now
