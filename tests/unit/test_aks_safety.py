"""Gaps in the published walkthroughs of AI on AKS that the program closes by default."""

import json
from typing import Any

import pytest
import yaml

from components import names
from components.artifacts import Mirror
from components.queueing import migration
from tests.unit.harness import Record, Registered
from tests.unit.test_aks import CLUSTER, POOL, deployed, everything, only, settings, shipped
from tests.unit.test_stack import pairs

NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"


@pytest.fixture(scope="module")
def record(mirror: Mirror) -> Record:
    return deployed(mirror, everything())


def pods_of(record: Record) -> list[tuple[Registered, dict[str, Any]]]:
    """Return every pod that an object of the program describes, with the object."""
    found = []
    for item in record.objects():
        if item.kind != "CustomResourceDefinition":
            described = [value for key, value in pairs(item.inputs) if key == "spec" and isinstance(value, dict)]
            found += [(item, spec) for spec in described if "containers" in spec]
    return found


def test_what_may_write_on_nodes_may_write_on_its_own_only_and_a_launcher_reads_pods(record: Record) -> None:
    writers = [
        item
        for item in record.of("ClusterRole")
        for rule in item.inputs.get("rules", [])
        if "nodes" in rule.get("resources", []) and set(rule["verbs"]) & {"patch", "update", "*"}
    ]
    assert {item.object_name for item in writers} == {
        "local-nvme-scratch",
        "mlbatch-autopilot",
        "mlbatch-health-reporter",
        "node-labeler",
    }
    narrowed = {item.object_name: item for item in record.of("ValidatingAdmissionPolicy")}
    for writer in writers:
        rules = json.dumps(narrowed[writer.object_name].inputs["spec"])
        assert "authentication.kubernetes.io/node-name" in rules
        before = record.closure(record.one("ClusterRoleBinding", writer.object_name))
        in_force = record.one("ValidatingAdmissionPolicyBinding", writer.object_name)
        assert {narrowed[writer.object_name].urn, in_force.urn} <= before
    (rule,) = record.one("Role", "mpi-worker-view", "workloads").inputs["rules"]
    assert rule == {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}


def test_only_pods_that_want_gpus_land_on_gpu_nodes(record: Record) -> None:
    assert only(record, POOL).inputs["nodeTaints"] == ["nvidia.com/gpu=present:NoSchedule"]
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    (flavor,) = record.of("ResourceFlavor")
    assert toleration["key"] in {each["key"] for each in flavor.inputs["spec"]["tolerations"]}
    agents = {"autopilot", "local-nvme-scratch", "node-labeler"}
    for item, pod in pods_of(record):
        wants = any(names.GPU in container.get("resources", {}).get("requests", {}) for container in _containers(pod))
        tolerates = toleration in pod.get("tolerations", [])
        launcher = pod.get("serviceAccountName") == "mpi-worker-view"
        assert tolerates == (wants or launcher or item.object_name in agents), item.name


def test_every_job_ends_with_its_work_or_at_its_deadline(record: Record) -> None:
    jobs = [
        value
        for item in record.objects()
        for value in [item.inputs, *(value for _, value in pairs(item.inputs))]
        if isinstance(value, dict) and value.get("apiVersion") == "batch/v1" and value.get("kind") == "Job"
    ]
    jobs = [job for job in jobs if not job["metadata"]["name"].startswith(migration.NAME)]  # it holds no GPU
    assert len(jobs) >= 4
    assert all(job["spec"]["activeDeadlineSeconds"] > 0 for job in jobs)
    (volcano,) = [item for item in record.of("Job") if item.inputs["apiVersion"].startswith("batch.volcano.sh")]
    for task in volcano.inputs["spec"]["tasks"]:
        assert task["template"]["spec"]["activeDeadlineSeconds"] > 0
    for _, pod in pods_of(record):
        for container in _containers(pod):
            assert "sleep 3600" not in " ".join(container.get("command", []))


def test_the_shipped_settings_choose_none_of_the_looser_ways() -> None:
    text = yaml.safe_dump(shipped())
    for loose in ("adminUser", "localAccounts", "public: true", "runCommand", "sharedKey", "taint: false", "exposure"):
        assert loose not in text


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod["containers"], *pod.get("initContainers", [])]


def test_a_share_for_logs_is_reached_by_the_endpoint_of_the_one_subnet_that_the_cluster_may_look_at(
    record: Record,
) -> None:
    """The driver lists all of a network for a class that names no subnet, and joins a private endpoint to it."""
    found = record.one("StorageClass", "mlbatch-files-nfs").inputs["parameters"]
    subnet = only(record, "azure-native:network:Subnet")
    assert "networkEndpointType" not in found
    assert {key: found[key] for key in ("vnetResourceGroup", "vnetName", "subnetName")} == {
        "vnetResourceGroup": subnet.inputs["resourceGroupName"],
        "vnetName": subnet.inputs["virtualNetworkName"],
        "subnetName": subnet.inputs["subnetName"],
    }
    assert [endpoint["service"] for endpoint in subnet.inputs["serviceEndpoints"]] == ["Microsoft.Storage"]
    (right,) = (item for item in record.resources if NETWORK_CONTRIBUTOR in str(item.inputs.get("roleDefinitionId")))
    assert right.inputs["scope"] == f"{subnet.name}-id"
    assert right.inputs["principalId"] == f"{only(record, CLUSTER).name}-cluster-principal"


def tolerated(taint: dict[str, Any], tolerations: list[dict[str, Any]]) -> bool:
    """Whether a pod stays on a node with a taint (kubernetes.io, concepts/scheduling-eviction/taint-and-toleration)."""
    return any(
        each.get("key") in (None, taint["key"])
        and each.get("effect") in (None, taint["effect"])
        and (each.get("operator") == "Exists" or each.get("value", "") == taint["value"])
        for each in tolerations
    )


def test_what_keeps_a_node_usable_stays_where_a_check_has_failed(mirror: Mirror) -> None:
    """Else the node loses its drivers with its first failure, and the check that would clear it never runs."""
    raw = everything()
    for check in ("nodeCheck", "ncclGate"):
        raw["health"][check]["effect"] = "NoExecute"
    record = deployed(mirror, raw)
    reports = [record.one("ConfigMap", f"{name}-files").inputs["data"] for name in ("node-check", "nccl-gate")]
    taints = [json.loads(data["report.json"])["taint"] for data in reports]
    assert {(taint["key"], taint["effect"]) for taint in taints} == {("aznhc", "NoExecute"), ("nccl-gate", "NoExecute")}
    values = {item.inputs["name"]: item.inputs["values"] for item in record.resources if "values" in item.inputs}
    staying = {
        "feature discovery": values["node-feature-discovery"]["worker"]["tolerations"],
        "its master": values["node-feature-discovery"]["master"]["tolerations"],
        "driver, toolkit, device plugin": values["gpu-operator"]["daemonsets"]["tolerations"],
        "GPU operator": values["gpu-operator"]["operator"]["tolerations"],
        "network operator": values["network-operator"]["operator"]["tolerations"],
        "InfiniBand driver": record.one("NicClusterPolicy", "nic-cluster-policy").inputs["spec"]["tolerations"],
        "node exporter": values["kube-prometheus-stack"]["prometheus-node-exporter"]["tolerations"],
        "Blob driver": values["blob-csi-driver"]["node"]["tolerations"],
        **{
            item.object_name: item.inputs["spec"]["template"]["spec"].get("tolerations", [])
            for item in record.of("DaemonSet")
        },
    }
    assert {"autopilot", "local-nvme-scratch", "node-labeler"} <= staying.keys()
    assert [(who, taint) for who, found in staying.items() for taint in taints if not tolerated(taint, found)] == []
    jobs = [pod for item, pod in pods_of(record) if item.object_name in ("nccl", "metaseq", "olmo")]
    assert jobs
    assert not [pod for pod in jobs for taint in taints if tolerated(taint, pod.get("tolerations", []))]


def test_the_infiniband_driver_is_the_one_that_is_asked_for(mirror: Mirror) -> None:
    fabric = {"driverVersion": "doca3.2.0-25.10-1.2.8.0-2"}
    spec = (
        deployed(mirror, settings(gpu={"fabric": fabric})).one("NicClusterPolicy", "nic-cluster-policy").inputs["spec"]
    )
    assert spec["ofedDriver"]["version"] == fabric["driverVersion"]
    assert spec["ofedDriver"]["image"] == "doca-driver"
