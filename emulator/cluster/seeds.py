"""Objects that a stack's cluster has before the program first runs: the project's `local/seeds/<stack>.yaml`."""

import time
from pathlib import Path

import yaml

from emulator.cluster.api import Api, ApiError, Object, is_ready, path_of, unless_gone

_MANAGER = "local-seeds"
_MARKER = "/api/v1/namespaces/kube-system/configmaps/local-seeds"
_READY_SECONDS = 30.0


class SeedError(Exception):
    """A seed cannot be applied; the message names the file and the object."""


def plant(api: Api, file: Path) -> int:
    """Apply a file's manifests to the cluster, once in the life of its content. Return their number.

    Later changes of the objects or of the file have no effect. Waits until the nodes among them are Ready. Raises
    SeedError if an object is rejected or a node does not become Ready.
    """
    if not file.exists():
        return 0
    with unless_gone():
        api.get(_MARKER)
        return 0
    documents = [document for document in yaml.safe_load_all(file.read_text()) if document]
    for document in documents:
        try:
            # A new node keeps the status of its creation; it has no other source of resources.
            api.apply(path_of(api, document), document, _MANAGER)
        except ApiError as error:
            raise SeedError(f"{file}: {document.get('kind')} {document['metadata']['name']}: {error}") from error
    nodes = [document["metadata"]["name"] for document in documents if document["kind"] == "Node"]
    deadline = time.monotonic() + _READY_SECONDS
    while late := [name for name in nodes if not is_ready(api.get(f"/api/v1/nodes/{name}"))]:
        if time.monotonic() > deadline:
            raise SeedError(f"{file}: not Ready after {_READY_SECONDS:.0f} s: {', '.join(late)}")
        time.sleep(0.1)
    marker: Object = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"applied": file.name}}
    api.apply(_MARKER, {**marker, "metadata": {"name": "local-seeds"}}, _MANAGER)
    return len(documents)
