"""Rewrites the objects of kinds in the version that their definitions store, and forgets older versions.

An object stays in etcd in the version in which it was last written. While one is left in an older version, the API
server has the operator convert it with each read, and refuses a definition without that version. Upstream's script
`hack/migrate-to-v1beta2.sh` (kubernetes-sigs/kueue) rewrites the objects, too. The last step is Kubernetes' own
(kubernetes.io, custom-resource-definition-versioning): the definition's status names the stored version only.

An object that the operator's webhooks no longer accept stays as it is, and its definition keeps the older version: the
log names it. Runs in the cluster, as often as it is started; standard library only. It changes no object's content.

Usage: python -m components.queueing.stored_versions GROUP PLURAL...
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from urllib.error import HTTPError

from components.kubernetes.in_cluster import Api, Json

log = logging.getLogger("stored-versions")

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PAGE = 500
"""Objects in one answer to a list, of which only the metadata is sent."""


def migrate(api: Api, group: str, plurals: Iterable[str]) -> int:
    """Rewrite what a group's kinds have in older versions; return how many objects are left in one.

    Raises HTTPError and OSError where the API server does not answer, or does not let the account.
    """
    return sum(_migrate(api, group, plural) for plural in plurals)


def _migrate(api: Api, group: str, plural: str) -> int:
    path = f"{DEFINITIONS}/{plural}.{group}"
    definition = api.get(path)
    (stored,) = (str(each["name"]) for each in definition["spec"]["versions"] if each["storage"])
    if definition["status"]["storedVersions"] == [stored]:
        return 0
    # The list is complete before the first write: its pages expire within minutes.
    found = list(_objects(api, f"/apis/{group}/{stored}", plural))
    left = sum(not _write(api, item) for item in found)
    log.info("%s: %d of %d objects are stored as %s", plural, len(found) - left, len(found), stored)
    if not left:
        # A definition that has changed meanwhile ends this with a conflict.
        version = {"resourceVersion": definition["metadata"]["resourceVersion"]}
        api.patch(f"{path}/status", {"metadata": version, "status": {"storedVersions": [stored]}})
    return left


def _objects(api: Api, base: str, plural: str) -> Iterator[str]:
    """Yield the path of each object of a kind."""
    query = {"limit": str(PAGE)}
    while True:
        page = api.metadata(f"{base}/{plural}", **query)
        yield from (_path(base, plural, item["metadata"]) for item in page["items"] or ())  # null of none
        if not (rest := page["metadata"].get("continue")):
            return
        query["continue"] = rest


def _path(base: str, plural: str, metadata: Json) -> str:
    namespace = metadata.get("namespace")
    return f"{base}/{f'namespaces/{namespace}/' if namespace else ''}{plural}/{metadata['name']}"


def _write(api: Api, path: str) -> bool:
    """Have an object written as it is; return whether it is written, or gone."""
    try:
        api.patch(path, {})
    except HTTPError as error:
        if error.code in (HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.FORBIDDEN):
            log.warning("%s is not accepted as it is: %s; delete it", path, error.read().decode(errors="replace"))
            return False
        if error.code != HTTPStatus.NOT_FOUND:
            raise
    return True


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    log.info("%d objects are left in an older version", migrate(Api.in_cluster(seconds=60), sys.argv[1], sys.argv[2:]))
