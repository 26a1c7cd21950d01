"""The stub of OpenShift AI's operator (red-hat-data-services/rhods-operator, internal/controller)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from emulator.cluster.api import MERGE_PATCH, Object, path_of
from emulator.openshift.red_hat.bundles import OPERATORS
from emulator.openshift.red_hat.stub import JOB_SET, KUEUE, MANAGED, Stub, condition, reference

_RUNTIMES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
_CLUSTERS: Final = "/apis/datasciencecluster.opendatahub.io/v2/datascienceclusters"
_INITIALIZATIONS: Final = "/apis/dscinitialization.opendatahub.io/v2/dscinitializations"
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_QUEUES: Final = "/apis/kueue.x-k8s.io/v1beta2"
_LEGACY: Final = "kueue-managed"
"""Label of namespaces whose jobs Kueue manages, of earlier versions."""
_RUNTIME_IMAGE: Final = "registry.redhat.io/rhoai/odh-training-cuda128-torch29-py312-rhel9:v3.4.3"


class OpenShiftAi(Stub):
    """Installs KubeRay and Trainer for a DataScienceCluster (internal/controller)."""

    package = "rhods-operator"

    def _work(self) -> None:
        initialized = self._read(_INITIALIZATIONS) or {"items": []}
        for found in initialized["items"]:
            is_only = len(initialized["items"]) == 1
            namespace = (found["spec"].get("monitoring") or {}).get("namespace")
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
        others = sorted(name for name, state in states.items() if state == "Managed" and name not in ("ray", "trainer"))
        if others:
            yield f"this stub does not install {', '.join(others)}"
        if states.get("ray") == "Managed" and not self._operator("ray", found):
            yield "the Deployment of KubeRay is not available"
        if states.get("trainer") == "Managed":
            lacking = self._lacking_for_trainer()
            if lacking:
                yield lacking
            elif not self._operator("trainer", found) or not self._runtimes(found):
                yield "the Deployment of Trainer is not available"
        if states.get("kueue") == "Unmanaged":
            yield from self._queues(components["kueue"])

    def _operator(self, component: str, owner: Object) -> bool:
        return self._install(component, owner, label=f"app.opendatahub.io/{component}")

    def _lacking_for_trainer(self) -> str:
        """Return what Trainer lacks (components/trainer/trainer_controller_actions.go)."""
        if not self._has_operator("job-set"):
            return "the JobSet operator is not installed"
        found = self._read(JOB_SET)
        if found is None:
            return "the JobSetOperator cluster is missing"
        if self._read(f"{_CRDS}/jobsets.jobset.x-k8s.io") is None:
            return "JobSet's definition is missing"
        return degraded(found)

    def _runtimes(self, owner: Object) -> bool:
        """Apply the runtimes for TrainJobs. Here they lack `numProcPerNode`, which a newer Trainer does not have."""
        group, uid = "trainer.kubeflow.org", owner["metadata"]["uid"]
        if "runtimes" in self._installed and self._installed["runtimes"][0] == uid:
            return True
        container = {"name": "node", "image": _RUNTIME_IMAGE}
        labels = {f"{group}/trainjob-ancestor-step": "trainer"}
        job = {"metadata": {"labels": labels}, "spec": {"template": {"spec": {"containers": [container]}}}}
        for name in _RUNTIMES:
            metadata = {"name": name, "labels": {f"{group}/framework": "torch"}, "ownerReferences": [reference(owner)]}
            spec = {
                "mlPolicy": {"numNodes": 1, "torch": {}},
                "template": {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}},
            }
            body = {"apiVersion": f"{group}/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": metadata}
            self._api.apply(path_of(self._api, body), {**body, "spec": spec}, "trainer")
        self._installed["runtimes"] = uid, []
        return True

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
            self._api.create(collection, {"apiVersion": "kueue.x-k8s.io/v1beta2", **body})

    def _has_operator(self, package: str) -> bool:
        """Tell whether a version of an operator is installed."""
        (csv,) = (each["csv"] for each in OPERATORS if each["package"] == package)
        versions = self._api.get("/apis/operators.coreos.com/v1alpha1/clusterserviceversions")["items"]
        return any(each["metadata"]["name"] == csv for each in versions)


def degraded(found: Object) -> str:
    """Return the first condition of an operator's object that keeps OpenShift AI waiting, empty without one."""
    for each in (found.get("status") or {}).get("conditions") or ():
        is_wrong = each["status"] == ("False" if each["type"] == "Available" else "True")
        if is_wrong and (each["type"] == "Available" or each["type"].endswith("Degraded")):
            return f"{found['kind']} {found['metadata']['name']}: {each['type']} is {each['status']}: {each['message']}"
    return ""
