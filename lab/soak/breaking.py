"""Causes faults on a cluster, and repairs those with an end."""

from typing import Any

from lab.soak.trace import Event, Fault
from tests.local.environment import Cluster
from tests.local.jobs import cordon, gpu_nodes, mark

SYSTEM = "mlbatch-system"


class Breaking:
    """Faults of the cluster's current GPU nodes and of the platform's controllers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.nodes = sorted(gpu_nodes(cluster))
        self._documents = {name: self._document(name) for name in self.nodes}

    def start(self, event: Event) -> None:
        name = self.nodes[event.node]
        match event.fault:
            case Fault.SICK:
                mark(self._cluster, name, "EVICT")
            case Fault.CORDONED:
                cordon(self._cluster, name, True)
            case Fault.DELETED:
                self._cluster.delete("v1", "Node", name)
            case _:
                operator = event.fault.split()[0]
                pods = self._cluster.list("v1", "Pod", SYSTEM, label_selector=f"app.kubernetes.io/name={operator}")
                for pod in pods[:1]:
                    self._cluster.delete("v1", "Pod", pod["metadata"]["name"], SYSTEM)

    def end(self, event: Event) -> None:
        name = self.nodes[event.node]
        match event.fault:
            case Fault.SICK:
                mark(self._cluster, name, None)
            case Fault.CORDONED:
                cordon(self._cluster, name, False)
            case Fault.DELETED:
                self._cluster.create(self._documents[name])

    def _document(self, name: str) -> dict[str, Any]:
        """Return a node's document for its recreation."""
        node = self._cluster.get("v1", "Node", name)
        assert node is not None
        kept = {key: node["metadata"].get(key) for key in ("name", "labels", "annotations")}
        status = {key: node["status"][key] for key in ("allocatable", "capacity")}
        taints = [taint for taint in node["spec"].get("taints") or [] if "node.kubernetes.io" not in taint["key"]]
        return {"apiVersion": "v1", "kind": "Node", "metadata": kept, "spec": {"taints": taints}, "status": status}
