"""Objects of the API server that a program in a pod follows: it lists them once, then watches them.

Standard library only: this file is shipped with each program that needs it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Generic, TypeVar
from urllib.error import HTTPError

from components.kubernetes.in_cluster import Api, Json

T = TypeVar("T")

PAGE = 50
"""Objects in one answer to a list: a node with its images takes kilobytes, and only what counts of it is kept."""
WATCH_LIMIT = 300.0
"""Seconds without an answer after which a watch is taken for lost; the server ends each before (in_cluster.py)."""


class Followed(Generic[T]):
    """What counts of all objects at a path of the API server, by namespace and name, kept up to date.

    read: returns what counts of an object, from the object and what counted of it before. None drops the object.
    alive: called with the seconds until the next call. changed: set with every change. page: objects in one answer.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        read: Callable[[Json, T | None], T | None],
        alive: Callable[[float], None],
        changed: threading.Event,
        page: int = PAGE,
    ) -> None:
        self._api, self._path, self._read, self._alive, self._changed = api, path, read, alive, changed
        self._page = page
        self._version = ""
        self.lock = threading.Lock()
        """Holds `objects` still."""
        self.objects: dict[str, T] = {}
        self.is_complete = False

    def follow(self) -> None:
        """Read all objects where that is due, then follow what changes until the server ends the watch.

        It is due at first, when the server has forgotten the version to go on from, and after an error.
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
        query, found = {"limit": str(self._page)}, set()
        while True:
            page = self._api.get(self._path, **query)
            self._alive(WATCH_LIMIT)
            for item in page["items"]:
                found.add(_key(item))
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
        name = _key(item)
        with self.lock:
            before = self.objects.pop(name, None)
            if not is_gone and (now := self._read(item, before)) is not None:
                self.objects[name] = now


def _key(item: Json) -> str:
    """Return namespace and name, or the name of an object without a namespace."""
    metadata = item["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])
