"""Requests to the API server while the settings are read."""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

SECONDS: Final = 15.0
"""How long the API server may take for each answer."""
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = (UNAUTHORIZED, 403)
ABSENT: Final = (404,)
JSON: Final = "application/json"
METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Content type of a list without specifications (kubernetes.io, reference/using-api/api-concepts)."""


def read(client: Any, path: str, accept: str = JSON, **query: str) -> Any:
    """Return the API server's answer unchanged.

    The client's models reject unknown fields and take a second to import.
    Raises kubernetes.client.ApiException if the answer is an error.
    """
    request = client.param_serialize(
        "GET",
        path,
        query_params=list(query.items()),
        header_params={"Accept": accept},
        auth_settings=["BearerToken"],
    )
    answer = client.call_api(*request, _request_timeout=SECONDS)
    answer.read()
    return json.loads(client.response_deserialize(answer, {"2XX": "bytes"}).data)


def unless(
    client: Any, statuses: Collection[int], path: str, accept: str = JSON, **query: str
) -> Mapping[str, Any] | None:
    """Return the object that the API server answers, or None for one of these HTTP statuses.

    Raises TypeError if the answer is not an object. JSON null does not mean that the object is absent.
    """
    import kubernetes

    try:
        found = read(client, path, accept, **query)
    except kubernetes.client.ApiException as error:
        if error.status in statuses:
            return None
        raise
    if not isinstance(found, Mapping):
        raise TypeError(f"{path} is {found!r:.100}")
    return found


def asked(
    client: Any, group: str, version: str, plural: str, name: str | None = None, accept: str = JSON, **query: str
) -> Mapping[str, Any] | None:
    """Return an object or a list, or None if the cluster lacks it or the user cannot read it.

    group: empty for the core API.
    """
    root = ["/apis", group] if group else ["/api"]
    path = "/".join((*root, version, plural, *filter(None, [name])))
    return unless(client, (*ABSENT, *FORBIDDEN), path, accept, **query)
