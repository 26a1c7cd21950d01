"""The local cluster as the managed cluster: its nodes follow the pools, and it is emptied when it is deleted."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from emulator import cluster
from emulator.azure import credentials, drain
from emulator.azure.arm import Arm
from emulator.azure.errors import ArmError, refused
from emulator.azure.facts import AzureFacts
from emulator.azure.nodes import Node
from emulator.azure.store import Store
from emulator.cluster.api import MERGE_PATCH, Api, ApiError
from emulator.cluster.credentials import Account, read_kubeconfig
from emulator.cluster.layout import NODE_NAME, Layout
from emulator.paths import Paths
from emulator.plugin.errors import ProviderError
from runner.files import write_private

APPLIED = "azure.emulator/applied"
"""Annotation of a pool's node: the labels, taints and annotations that it has from its pool."""

_NODES = "/api/v1/nodes"
_SIMULATED = {"kwok.x-k8s.io/node": "fake"}
# Keeps pods that must really run off simulated system nodes.
_SIMULATED_SYSTEM_TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
_OWN_NAMESPACES = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
_SHOWN = 5

Object = dict[str, Any]


class LocalCluster:
    """The link (`arm.ClusterLink`) to the local cluster of a state folder."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def require_free(self) -> None:
        with self._api() as api:
            namespaces, nodes = _names(api, "/api/v1/namespaces"), _names(api, _NODES)
        found = [f"the namespace {name}" for name in namespaces if name not in _OWN_NAMESPACES]
        found += [f"the node {name}" for name in nodes if name != NODE_NAME]
        if found:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            raise taken(", ".join(found[:_SHOWN]) + more)

    def follow(self, nodes: Sequence[Node]) -> None:
        """Make these nodes the pools' nodes. The local kubelet's own node takes the place of the first system node."""
        wanted = {NODE_NAME if node.first_of_system else node.name: node for node in nodes}
        with self._api() as api:
            existing = _names(api, _NODES)
            for name, found in existing.items():
                if name not in wanted and APPLIED in (found["metadata"].get("annotations") or {}):
                    if name == NODE_NAME:
                        _patch(api, name, changes(found, {}, [], {}))
                    else:
                        _remove(api, name)
            for name, node in wanted.items():
                if name in existing:
                    _patch(api, name, changes(existing[name], *_marks(node, simulated=name != NODE_NAME)))
                elif name != NODE_NAME:
                    api.create(_NODES, document(name, node))

    def unsatisfiable_budgets(self) -> list[str]:
        with self._api() as api:
            return drain.unsatisfiable(api.get("/apis/policy/v1/poddisruptionbudgets").get("items") or [])

    def drain(self, nodes: Sequence[Node]) -> None:
        with self._api() as api:
            drain.drain(api, [node.name for node in nodes])

    def empty(self) -> None:
        """Delete everything in the local cluster and start it again, with its addresses and credentials."""
        try:
            cluster.wipe(self._paths)
        except cluster.ClusterError as error:
            raise ProviderError(str(error)) from None

    def credentials(self) -> Account:
        return read_kubeconfig(self._paths.kubeconfig.read_text())

    def install_kubelogin(self) -> Path:
        """Put the emulated kubelogin where the Kubernetes provider finds it; return its path."""
        layout = Layout(self._paths)
        secret = layout.azure / "secrets" / "exec-credential.json"
        for folder in (secret.parent, layout.azure_bin):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(secret, credentials.exec_credential(self.credentials().token))
        program = layout.azure_bin / "kubelogin"
        write_private(program, credentials.kubelogin(str(secret)))
        program.chmod(0o700)
        return program

    @contextlib.contextmanager
    def _api(self) -> Iterator[Api]:
        try:
            yield Api(self.credentials())
        except (ApiError, OSError, ValueError) as error:
            raise ProviderError(
                f"the local cluster, which is the emulated managed cluster, does not answer as expected ({error}). "
                "Start it with `make up`; `make status` lists its processes and their logs"
            ) from None


def taken(what: str) -> ArmError:
    """Return the error for a local cluster that is already in use."""
    return refused("LocalClusterInUse", what=what)


def _names(api: Api, path: str) -> dict[str, Object]:
    return {each["metadata"]["name"]: each for each in api.get(path).get("items") or []}


def _remove(api: Api, node: str) -> None:
    """Delete a node and its pods. Without the node's machine, the pods would stay for a while."""
    for pod in api.get(f"/api/v1/pods?fieldSelector=spec.nodeName={node}").get("items") or []:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        _delete(api, path, {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}})
    _delete(api, f"{_NODES}/{node}", {})


def _delete(api: Api, path: str, options: Object) -> None:
    try:
        api.delete(path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})
    except ApiError as error:
        if error.status not in (404, 409):
            raise


def _patch(api: Api, node: str, patch: Object) -> None:
    if patch:
        api.patch(f"{_NODES}/{node}", patch, MERGE_PATCH)


def subscription(paths: Paths) -> Arm:
    """Return the emulated subscription of a state folder, with its local cluster."""
    folder = Layout(paths).azure
    return Arm(Store(folder), AzureFacts.of(folder / "facts.yaml"), LocalCluster(paths))


def document(name: str, node: Node) -> Object:
    """Return the Node object of a simulated machine. Its status is used only at creation."""
    labels, taints, annotations = _marks(node, simulated=True)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**labels, "kubernetes.io/hostname": name},
            "annotations": {**annotations, APPLIED: _applied(labels, taints, annotations)},
        },
        "spec": {"providerID": node.provider_id, **({"taints": taints} if taints else {})},
        "status": {"capacity": dict(node.amounts), "allocatable": dict(node.allocatable)},
    }


def changes(
    found: Object, labels: Mapping[str, str], taints: Sequence[Mapping[str, str]], annotations: Mapping[str, str]
) -> Object:
    """Return the merge patch that gives a node what its pool defines. Empty if it has that already."""
    metadata, spec = found["metadata"], found.get("spec") or {}
    applied = (metadata.get("annotations") or {}).get(APPLIED)
    had = json.loads(applied) if applied else {"labels": [], "taints": [], "annotations": []}
    wanted = dict(annotations)
    if labels:
        wanted[APPLIED] = _applied(labels, taints, annotations)
    patch = {
        "labels": _merge(metadata.get("labels") or {}, labels, had["labels"]),
        "annotations": _merge(metadata.get("annotations") or {}, wanted, [*had["annotations"], APPLIED]),
    }
    result: Object = {}
    if any(patch.values()):
        result["metadata"] = {key: value for key, value in patch.items() if value}
    present = [_plain(each) for each in spec.get("taints") or []]
    own = [dict(each) for each in taints]
    others = [each for each in present if each not in had["taints"] and each not in own]
    if sorted(map(str, present)) != sorted(map(str, [*own, *others])):
        kept = [each for each in spec.get("taints") or [] if _plain(each) in others]
        result["spec"] = {"taints": [*own, *kept]}
    return result


def _merge(present: Mapping[str, str], wanted: Mapping[str, str], had: Sequence[str]) -> dict[str, str | None]:
    patch: dict[str, str | None] = {key: value for key, value in wanted.items() if present.get(key) != value}
    patch |= {key: None for key in had if key in present and key not in wanted}
    return patch


def _marks(node: Node, *, simulated: bool) -> tuple[dict[str, str], list[dict[str, str]], dict[str, str]]:
    """Return the labels, taints and annotations that a node has from its pool."""
    labels = dict(node.labels)
    taints = [dict(each) for each in node.taints]
    if not simulated:
        # This machine keeps its own architecture and has no devices.
        labels.pop("kubernetes.io/arch", None)
        return labels, taints, {}
    if node.labels.get("kubernetes.azure.com/mode") == "system":
        taints.append(_SIMULATED_SYSTEM_TAINT)
    return labels, taints, {**_SIMULATED, **node.annotations}


def _applied(labels: Mapping[str, str], taints: Sequence[Mapping[str, str]], annotations: Mapping[str, str]) -> str:
    own = {"labels": sorted(labels), "taints": list(taints), "annotations": sorted(annotations)}
    return json.dumps(own, sort_keys=True)


def _plain(taint: Mapping[str, Any]) -> dict[str, Any]:
    return {key: taint[key] for key in ("key", "value", "effect") if key in taint}
