"""The cluster of a kubeconfig, with the requests that the drift check sends."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import kubernetes
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ResourceNotFoundError, ResourceNotUniqueError
from urllib3.exceptions import HTTPError

from drift.controllers import CHECK, RESTARTED
from drift.fields import ENGINE
from drift.state import Declared, Manifest
from runner.properties import parse  # noqa: TID251 - a notation

_SECONDS: Final = (5, 65)
"""Seconds to connect and to wait for an answer. The API server ends a request after 60 s."""

_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"


class ClusterError(Exception):
    """The cluster does not answer any request. The message gives the reason and the fix."""


class RefusedError(Exception):
    """The API server rejects a request about one object. The message comes from the API server."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class KindGoneError(Exception):
    """The cluster does not serve the kind of an object."""


class Cluster:
    """One API server. Threads may call its methods at the same time after each kind has been looked up."""

    def __init__(self, api: Any, cache: Path) -> None:
        self._client = kubernetes.dynamic.DynamicClient(api, cache_file=str(cache))
        self.server = str(api.configuration.host)

    def knows(self, declared: Declared) -> bool:
        """Return whether the cluster serves the kind of an object. Looks the kind up."""
        try:
            self._resource(declared)
        except KindGoneError:
            return False
        return True

    def read(self, declared: Declared) -> Manifest | None:
        """Return the object in the cluster, None if it does not exist. Raises RefusedError."""
        try:
            return self._ask("get", declared)
        except RefusedError as error:
            if error.status == 404:
                return None
            raise

    def applied(self, declared: Declared, body: Mapping[str, Any], name: str | None = None) -> Manifest:
        """Return the object after a forced server-side apply, as a dry run. Raises RefusedError.

        name: another name than the object's.
        """
        metadata = {**body["metadata"], "name": name or declared.name}
        options = {"field_manager": CHECK, "force_conflicts": True, "dry_run": "All", "content_type": _APPLY}
        return self._ask("patch", declared, name=name, body={**body, "metadata": metadata}, **options)

    def replaced(self, declared: Declared, body: Manifest, *, dry_run: bool) -> Manifest:
        """Replace the object by a body that holds the resourceVersion of the read object. Writes as the engine.

        Raises RefusedError, with status 409 if the object has changed since.
        """
        options = {"dry_run": "All"} if dry_run else {}
        return self._ask("put", declared, body=body, field_manager=ENGINE, **options)

    def create(self, declared: Declared, body: Manifest) -> Manifest:
        """Create the object as the engine. Raises RefusedError, KindGoneError."""
        return self._ask("post", declared, body=body, field_manager=ENGINE)

    def delete(self, declared: Declared, live: Manifest) -> None:
        """Delete the object if its uid is still the one that was read. Raises RefusedError."""
        metadata = live["metadata"]
        conditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        self._ask("delete", declared, body={"preconditions": conditions})

    def restart(self, declared: Declared, time: datetime) -> None:
        """Have a workload replace its pods. Raises RefusedError, KindGoneError."""
        body: Any = time.isoformat(timespec="seconds")
        for name in reversed(parse(RESTARTED)):
            body = {name: body}
        self._ask("patch", declared, body=body, field_manager=CHECK, content_type=_MERGE)

    def _ask(self, method: str, declared: Declared, *, name: str | None = None, **options: Any) -> Manifest:
        resource = self._resource(declared)
        named = None if method == "post" else name or declared.name
        path = resource.path(name=named, namespace=declared.namespace)
        with _understood(self.server):
            answer = self._client.request(method, path, serialize=False, _request_timeout=_SECONDS, **options)
            content: Manifest = json.loads(answer.data)
            return content

    def _resource(self, declared: Declared) -> Any:
        try:
            with _understood(self.server):
                return self._client.resources.get(api_version=declared.api_version, kind=declared.kind)
        except (ResourceNotFoundError, ResourceNotUniqueError):
            raise KindGoneError(f"{declared.api_version} {declared.kind}") from None


@contextmanager
def connected(kubeconfig: Path | None, context: str | None) -> Iterator[Cluster]:
    """Yield the cluster of a kubeconfig's context. None means the default of kubectl.

    Raises ClusterError if the file or the context is invalid, or the API server does not answer.
    """
    try:
        api = kubernetes.config.new_client_from_config(
            str(kubeconfig) if kubeconfig is not None else None, context=context, persist_config=False
        )
    except Exception as error:  # the loader raises all exceptions of its helpers
        raise ClusterError(
            f"the kubeconfig cannot be used: {error}; name another one with --kubeconfig or --context"
        ) from None
    server = str(api.configuration.host)
    with tempfile.TemporaryDirectory() as folder:
        try:
            with _understood(server):
                kubernetes.client.VersionApi(api).get_code(_request_timeout=_SECONDS)
                cluster = Cluster(api, Path(folder) / "kinds.json")
        except RefusedError as error:
            raise ClusterError(f"the API server {server} rejects the request: {error}") from None
        yield cluster


@contextmanager
def _understood(server: str) -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        raise RefusedError(int(error.status or 0), _message(error)) from None
    except HTTPError as error:
        raise ClusterError(
            f"the API server {server} does not answer ({_reason(error)}): check that the cluster runs and is the right "
            "one. Name another one with --kubeconfig and --context"
        ) from None


def _message(error: ApiException) -> str:
    try:
        status = json.loads(error.body or "")
    except ValueError:
        return f"{error.status} {error.reason}"
    return str(status.get("message") or status.get("reason")) if isinstance(status, dict) else str(status)


def _reason(error: HTTPError) -> str:
    cause = getattr(error, "reason", None) or error
    return str(cause).rpartition(": ")[2]
