"""Rewrites the objects of an API group in the version that their definitions store, and forgets older versions.

An object stays in etcd in the version in which it was last written. While one is left in an older version, the API
server has the operator convert it with each read, and refuses a definition without that version. Upstream's script
`hack/migrate-to-v1beta2.sh` (kubernetes-sigs/kueue) rewrites the objects, too. The last step is Kubernetes' own
(kubernetes.io, custom-resource-definition-versioning): the definition's status names the stored version only.

Runs in the cluster, as often as it is started; standard library only. It changes no object's content.

Usage: python -m components.queueing.stored_versions GROUP
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from http import HTTPStatus
from urllib.error import HTTPError

from components.kubernetes.in_cluster import Api, Json

log = logging.getLogger("stored-versions")

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PAGE = 100
"""Objects in one answer to a list, each of which the API server may have to have converted."""


def migrate(api: Api, group: str) -> int:
    """Rewrite what definitions of a group have in older versions; return how many objects that were.

    Raises HTTPError and OSError where the API server does not answer, or lets the account not.
    """
    written = 0
    for definition in api.get(DEFINITIONS)["items"]:
        spec, stored = definition["spec"], _stored(definition)
        if spec["group"] != group or definition["status"]["storedVersions"] == [stored]:
            continue
        count = sum(_write(api, f"/apis/{group}/{stored}", spec, item) for item in _objects(api, group, stored, spec))
        log.info("%s: %d objects are stored as %s", definition["metadata"]["name"], count, stored)
        # A write by an older API server meanwhile has changed the definition, and ends this with a conflict.
        version = {"resourceVersion": definition["metadata"]["resourceVersion"]}
        path = f"{DEFINITIONS}/{definition['metadata']['name']}/status"
        api.patch(path, {"metadata": version, "status": {"storedVersions": [stored]}})
        written += count
    return written


def _stored(definition: Json) -> str:
    (version,) = (each["name"] for each in definition["spec"]["versions"] if each["storage"])
    return str(version)


def _objects(api: Api, group: str, version: str, spec: Json) -> Iterator[Json]:
    """Yield all objects of a kind, page by page."""
    query = {"limit": str(PAGE)}
    while True:
        page = api.get(f"/apis/{group}/{version}/{spec['names']['plural']}", **query)
        yield from page["items"]
        if not (rest := page["metadata"].get("continue")):
            return
        query["continue"] = rest


def _write(api: Api, base: str, spec: Json, item: Json) -> bool:
    """Have an object written as it is; return whether it was still there."""
    namespace = item["metadata"].get("namespace")
    folder = f"{base}/namespaces/{namespace}" if namespace else base
    try:
        api.patch(f"{folder}/{spec['names']['plural']}/{item['metadata']['name']}", {})
    except HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        return False
    return True


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    log.info("%d objects rewritten", migrate(Api.in_cluster(seconds=60), sys.argv[1]))
