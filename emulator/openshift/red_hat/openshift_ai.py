"""The stub of OpenShift AI's operator (red-hat-data-services/rhods-operator, internal/controller)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from emulator.cluster.api import MERGE_PATCH, Api, ApiError, Object
from emulator.cluster.credentials import Account
from emulator.openshift.red_hat.bundles import OPERATORS
from emulator.openshift.red_hat.stub import KUEUE, MANAGED, Stub, condition, log, reference

_CLUSTERS: Final = "/apis/datasciencecluster.opendatahub.io/v2/datascienceclusters"
_INITIALIZATIONS: Final = "/apis/dscinitialization.opendatahub.io/v2/dscinitializations"
_QUEUES_API: Final = "kueue.x-k8s.io/v1beta1"
"""The operator creates queues in this version only (pkg/cluster/gvk/gvk.go)."""
_QUEUES: Final = f"/apis/{_QUEUES_API}"
_RAY_CLUSTERS: Final = "/apis/ray.io/v1/rayclusters"
_NETWORKS: Final = "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"
_KUBERAY: Final = "kuberay-operator"
"""KubeRay's account and its role."""
_LEGACY: Final = "kueue-managed"
"""Label of namespaces whose jobs Kueue manages, of earlier versions."""


class OpenShiftAi(Stub):
    """Installs KubeRay for a DataScienceCluster (internal/controller)."""

    package = "rhods-operator"

    def __init__(self, account: Account, operands: Path) -> None:
        super().__init__(account, operands)
        self._kuberay = Api(account, user=f"system:serviceaccount:redhat-ods-applications:{_KUBERAY}")

    def _work(self) -> None:
        initialized = self._read(_INITIALIZATIONS) or {"items": []}
        for found in initialized["items"]:
            is_only = len(initialized["items"]) == 1
            monitoring = found["spec"].get("monitoring") or {}
            namespace = monitoring.get("namespace") if monitoring.get("managementState") == "Managed" else None
            if namespace and self._read(f"/api/v1/namespaces/{namespace}") is None:
                self._api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
            path = f"{_INITIALIZATIONS}/{found['metadata']['name']}"
            self._report(path, found, [], phase="Ready" if is_only else "Error")
        is_initialized = [each for each in initialized["items"] if (each.get("status") or {}).get("phase") == "Ready"]
        for found in (self._read(_CLUSTERS) or {"items": []})["items"]:
            if "deletionTimestamp" in found["metadata"]:
                continue
            waiting = list(self._components(found)) if is_initialized else ["a DSCInitialization is missing"]
            ready = condition("Ready", not waiting, "NotReady" if waiting else "Ready", "; ".join(waiting))
            path = f"{_CLUSTERS}/{found['metadata']['name']}"
            self._report(path, found, [ready], phase="Not Ready" if waiting else "Ready")

    def _components(self, found: Object) -> Iterator[str]:
        """Install the components, and yield what they wait for."""
        components = found["spec"].get("components") or {}
        states = {name: each.get("managementState", "Removed") for name, each in components.items()}
        others = sorted(name for name, state in states.items() if state == "Managed" and name != "ray")
        if others:
            yield f"this stub does not install {', '.join(others)}"
        if states.get("ray") == "Managed":
            if self._install("ray", found, _with_networks, label="app.opendatahub.io/ray"):
                self._open_heads()
            else:
                yield "the Deployment of KubeRay is not available"
        if states.get("kueue") == "Unmanaged":
            yield from self._queues(components["kueue"])

    def _open_heads(self) -> None:
        """Open the head of each Ray cluster to all pods, as its KubeRay does, which also ignores a rejection.

        Source: red-hat-data-services/kuberay, rhoai-3.4, `networkpolicy_controller.go`.
        """
        for found in (self._read(_RAY_CLUSTERS, self._kuberay) or {"items": []})["items"]:
            metadata = found["metadata"]
            head = {"matchLabels": {"ray.io/cluster": metadata["name"], "ray.io/node-type": "head"}}
            body = {
                "metadata": {
                    "name": f"{metadata['name']}-head",
                    "ownerReferences": [reference({"apiVersion": "ray.io/v1", "kind": "RayCluster", **found})],
                },
                "spec": {"podSelector": head, "ingress": [{"ports": [{"port": 8443}]}]},
            }
            try:
                self._kuberay.create(_NETWORKS.format(metadata["namespace"]), body)
            except ApiError as error:
                log.debug("KubeRay: %s", error)

    def _queues(self, kueue: Object) -> Iterator[str]:
        """Create the default queues, and yield what Kueue lacks (components/kueue/kueue_support.go)."""
        found = self._read(KUEUE)
        if not self._has_operator("kueue-operator") or found is None:
            yield "Red Hat build of Kueue is not installed"
            return
        wrong = degraded(found)
        if wrong:
            yield wrong
        queue, local = kueue["defaultClusterQueueName"], kueue["defaultLocalQueueName"]
        if self._read(f"{_QUEUES}/clusterqueues/{queue}") is None:
            yield f"the operator creates the ClusterQueue {queue} with the resources of all nodes; this stub does not"
            return
        nodes = self._api.get("/api/v1/nodes")["items"]
        has_gpus = any("nvidia.com/gpu" in (node["status"].get("allocatable") or {}) for node in nodes)
        for name in ("default-flavor", *(("nvidia-gpu-flavor",) if has_gpus else ())):
            flavor = {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {}}
            self._missing(f"{_QUEUES}/resourceflavors", flavor)
        for namespace in self._api.get("/api/v1/namespaces")["items"]:
            metadata = namespace["metadata"]
            name, labels = metadata["name"], metadata.get("labels") or {}
            if "true" not in (labels.get(MANAGED), labels.get(_LEGACY)) or "deletionTimestamp" in metadata:
                continue
            if not {MANAGED, _LEGACY} <= labels.keys():
                both = {"metadata": {"labels": {MANAGED: "true", _LEGACY: "true"}}}
                self._api.patch(f"/api/v1/namespaces/{name}", both, MERGE_PATCH)
            body = {"kind": "LocalQueue", "metadata": {"name": local}, "spec": {"clusterQueue": queue}}
            self._missing(f"{_QUEUES}/namespaces/{name}/localqueues", body)

    def _missing(self, collection: str, body: Object) -> None:
        """Create an object that does not exist. It does not change, and does not belong to the DataScienceCluster."""
        if self._read(f"{collection}/{body['metadata']['name']}") is None:
            self._api.create(collection, {"apiVersion": _QUEUES_API, **body})

    def _has_operator(self, package: str) -> bool:
        """Tell whether a version of an operator is installed."""
        (csv,) = (each["csv"] for each in OPERATORS if each["package"] == package)
        versions = self._api.get("/apis/operators.coreos.com/v1alpha1/clusterserviceversions")["items"]
        return any(each["metadata"]["name"] == csv for each in versions)


def _with_networks(document: Object) -> None:
    """Give KubeRay the right to write NetworkPolicies (red-hat-data-services/kuberay, config/rbac/role.yaml)."""
    if document["kind"] == "ClusterRole" and document["metadata"]["name"] == _KUBERAY:
        networks = {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["create"]}
        document["rules"].append(networks)


def degraded(found: Object) -> str:
    """Return the first condition of an operator's object that keeps OpenShift AI waiting, empty without one."""
    for each in (found.get("status") or {}).get("conditions") or ():
        is_wrong = each["status"] == ("False" if each["type"] == "Available" else "True")
        if is_wrong and (each["type"] == "Available" or each["type"].endswith("Degraded")):
            return f"{found['kind']} {found['metadata']['name']}: {each['type']} is {each['status']}: {each['message']}"
    return ""
