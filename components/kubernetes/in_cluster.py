"""The API server as a program in a pod asks it, with the pod's own service account.

Standard library only: this file is shipped beside each program that needs it.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator, Mapping
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

Json = dict[str, Any]

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_SECONDS = 10
WATCH_SECONDS = 240
"""The server ends a watch after this long; the client waits for a little longer before it takes the line for dead."""

_JSON = "application/json"
_METADATA = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""What a list with the objects' metadata only is asked for by (kubernetes.io, reference/using-api/api-concepts)."""


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

    def metadata(self, path: str, **query: str) -> Json:
        """Return a page of the collection at a path, with the metadata of each object only."""
        return self._content("GET", path, query, accept=_METADATA)

    def patch(self, path: str, body: Json, **query: str) -> Json:
        """Merge a body into what a path holds; raises HTTPError with code 409 when it has changed since it was read."""
        return self._content("PATCH", path, query, body)

    def create(self, path: str, body: Json) -> Json:
        """Add an object to the collection at a path."""
        return self._content("POST", path, {}, body)

    def delete(self, path: str) -> Json:
        """Have an object deleted; raises HTTPError with code 404 where there is none."""
        return self._content("DELETE", path, {})

    def watch(self, path: str, version: str, **query: str) -> Iterator[tuple[str, Json]]:
        """Yield type and object of each event after a version, until the server ends the watch."""
        query = {**query, "watch": "true", "resourceVersion": version, "timeoutSeconds": str(WATCH_SECONDS)}
        with self._open("GET", path, query, None, WATCH_SECONDS + self._seconds) as answer:
            for line in answer:
                event = json.loads(line)
                yield event["type"], event["object"]

    def _content(
        self, method: str, path: str, query: Mapping[str, str], body: Json | None = None, accept: str = _JSON
    ) -> Json:
        with self._open(method, path, query, body, self._seconds, accept) as answer:
            content: Json = json.load(answer)
            return content

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Json | None,
        seconds: float,
        accept: str = _JSON,
    ) -> HTTPResponse:
        address = f"{self._base}{path}?{urlencode(query)}"  # the API server's, which starts with its scheme
        request = Request(address, method=method)  # noqa: S310
        request.add_header("Authorization", f"Bearer {(self._account / 'token').read_text().strip()}")
        request.add_header("Accept", accept)
        if body is not None:
            request.data = json.dumps(body).encode()
            media = "application/merge-patch+json" if method == "PATCH" else "application/json"
            request.add_header("Content-Type", media)
        answer: HTTPResponse = urlopen(request, timeout=seconds, context=self._tls)  # noqa: S310
        return answer
