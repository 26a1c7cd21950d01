"""Objects that a stack's cluster has before the program first runs: the project's `local/seeds/<stack>.yaml`.

A stack without such a file gets that of its target, and the GPU nodes, system node and storage classes that its
settings name. Its update can then be reviewed without its cluster.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from emulator.cluster.api import Api, ApiError, Object, is_ready, path_of, unless_gone
from emulator.cluster.layout import NODE_NAME

_MANAGER = "local-seeds"
_MARKER = "/api/v1/namespaces/kube-system/configmaps/local-seeds"
_READY_SECONDS = 30.0
_GPU, _RDMA = "nvidia.com/gpu", "nvidia.com/roce_gdr"
_CLASS = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "simulated"}


class SeedError(Exception):
    """A seed cannot be applied; the message names the file and the object."""


def plant(api: Api, file: Path, named: Mapping[str, Any] | None = None) -> int:
    """Apply a file's manifests to the cluster, once in the life of its content. Return their number.

    named: `mlbatch:cluster` of a stack. Its nodes and storage classes are applied, too.

    Later changes of the objects or of the file have no effect. Waits until the nodes among them are Ready. Raises
    SeedError if an object is rejected or a node does not become Ready.
    """
    if not file.exists():
        return 0
    with unless_gone():
        api.get(_MARKER)
        return 0
    documents = [document for document in yaml.safe_load_all(file.read_text()) if document]
    # The program reports what is wrong with malformed settings.
    with contextlib.suppress(AttributeError, TypeError):
        documents += list(_named(documents, named or {}))
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


def _named(planted: Sequence[Object], cluster: Mapping[str, Any]) -> Iterator[Object]:
    """Yield the nodes and storage classes that `mlbatch:cluster` names and that are not planted.

    A pool without nodes gets three like the first GPU node that is planted.
    """
    nodes = [each for each in planted if each["kind"] == "Node"]
    for which, pool in enumerate([cluster.get("pool") or {}, *(cluster.get("morePools") or ())]):
        labels = pool.get("nodeSelector") or {}
        if labels and not any(labels.items() <= (each["metadata"].get("labels") or {}).items() for each in nodes):
            like = [each for each in nodes if _GPU in (each.get("status") or {}).get("allocatable", {})]
            for number in range(3 if like else 0):
                yield _node(like[0], f"gpu-{which}-{number}", labels, pool.get("rdma"))
    # Controllers run on the node of the local kubelet.
    if system := (cluster.get("system") or {}).get("nodeSelector"):
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE_NAME, "labels": dict(system)}}
    classes = {each["metadata"]["name"] for each in planted if each["kind"] == "StorageClass"}
    for name in sorted({*(cluster.get("storageClasses") or {}).values()} - classes):
        yield {**_CLASS, "metadata": {"name": name}}


def _node(like: Object, name: str, labels: Mapping[str, str], rdma: Mapping[str, Any] | None) -> Object:
    offered = {rdma.get("resource", _RDMA): str(rdma.get("perNode", 1))} if rdma else {}
    common = {"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    metadata = {**like["metadata"], "name": name, "labels": {**common, **labels}}
    status = {field: {**resources, **offered} for field, resources in like["status"].items()}
    return {**like, "metadata": metadata, "status": status}
