"""A simulated node shows its devices only while their operators and resources are on the cluster."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from emulator.cluster import operators
from emulator.cluster.devices import ClusterSnapshot, Hardware, NodeFeatures, shows
from emulator.cluster.operators import GPU_LABELS, MOFED_WAIT, NIC_LABEL, simulate
from emulator.cluster.simulations import NodeAgent, SimulationError, node_agents

HARDWARE = Hardware(gpus=8, product="NVIDIA-H100-80GB-HBM3", infiniband=8, nvme=8)
ANNOTATIONS = {
    "hardware.emulator/gpus": "8",
    "hardware.emulator/gpu-product": "NVIDIA-H100-80GB-HBM3",
    "hardware.emulator/infiniband": "8",
    "hardware.emulator/nvme": "8",
}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
VENDOR = {"deviceClassWhitelist": ["0207", "0302"], "deviceLabelFields": ["vendor"]}
PORTS = {"resourcePrefix": "nvidia.com", "resourceName": "mlnxnics", "selectors": {"vendors": ["15b3"]}}


def node(**more: Any) -> dict[str, Any]:
    metadata = {"name": "n", "uid": "u", "annotations": ANNOTATIONS, "labels": {}}
    return {"metadata": metadata, "spec": {"taints": [TAINT]}, "status": {}, **more}


def pod(labels: dict[str, str], on: str = "elsewhere", owner: str = "", phase: str = "Running") -> dict[str, Any]:
    owners = [{"kind": "DaemonSet", "name": owner}] if owner else []
    volume = {"name": "conf", "configMap": {"name": "conf"}}
    metadata = {"name": "p", "namespace": "x", "labels": labels, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"nodeName": on, "volumes": [volume]}, "status": {"phase": phase}}


WORKER = pod({"app.kubernetes.io/name": "node-feature-discovery", "role": "worker"}, "n")
NETWORK = pod({"app.kubernetes.io/name": "network-operator"})
GPU = pod({"app.kubernetes.io/name": "gpu-operator"})


def snapshot(
    *pods: dict[str, Any],
    pci: dict[str, Any] | None = None,
    nic: dict[str, Any] | None = None,
    cluster: dict[str, Any] | None = None,
) -> ClusterSnapshot:
    conf = {"data": {"nfd-worker.conf": yaml.safe_dump({"sources": {"pci": VENDOR if pci is None else pci}})}}
    return ClusterSnapshot(
        pods=pods,
        config_map=lambda namespace, name: conf if (namespace, name) == ("x", "conf") else None,
        nic_policies=[] if nic is None else [{"metadata": {"name": "nic"}, "spec": nic}],
        cluster_policies=[] if cluster is None else [{"metadata": {"name": "gpu"}, "spec": cluster}],
    )


def policy(*resources: dict[str, Any], plugin: str = "sriovDevicePlugin", key: str = "resourceList") -> dict[str, Any]:
    return {"ofedDriver": {"image": "doca-driver"}, plugin: {"config": json.dumps({key: list(resources)})}}


CLUSTER = {"driver": {"enabled": True, "rdma": {"enabled": True}}}
ALL = snapshot(WORKER, NETWORK, GPU, nic=policy(PORTS), cluster=CLUSTER)


def test_hardware_is_read_from_annotations_and_a_node_without_them_is_not_changed() -> None:
    assert Hardware.of(node()) == HARDWARE
    assert Hardware.of({"metadata": {"annotations": {"kwok.x-k8s.io/node": "fake"}}}) is None


def test_everything_installed_shows_everything() -> None:
    found = simulate(node(), HARDWARE, ALL)
    assert found.resources == {"nvidia.com/mlnxnics": "8", "nvidia.com/gpu": "8"}
    assert found.labels == {
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "feature.node.kubernetes.io/pci-15b3.present": "true",
        "network.nvidia.com/operator.mofed.wait": "false",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    }
    assert found.notes == []


def test_without_operators_a_node_shows_no_devices() -> None:
    assert simulate(node(), HARDWARE, ClusterSnapshot()) == NodeFeatures()


@pytest.mark.parametrize(
    ("pci", "labels"),
    [
        (VENDOR, ["pci-10de.present", "pci-15b3.present"]),
        ({**VENDOR, "deviceLabelFields": ["vendor", "class"]}, ["pci-0207_15b3.present", "pci-0302_10de.present"]),
        ({"deviceClassWhitelist": ["02"]}, ["pci-0207_15b3.present"]),
        ({}, ["pci-0302_10de.present"]),  # the defaults do not include network classes
    ],
)
def test_the_worker_labels_in_the_form_that_it_is_configured_for(pci: dict[str, Any], labels: list[str]) -> None:
    found = simulate(node(), HARDWARE, snapshot(WORKER, pci=pci))
    assert sorted(found.labels) == [f"feature.node.kubernetes.io/{label}" for label in labels]


def test_a_worker_does_not_label_other_nodes() -> None:
    pending = pod({"app.kubernetes.io/name": "node-feature-discovery", "role": "worker"}, "n", phase="Pending")
    elsewhere = pod({"app.kubernetes.io/name": "node-feature-discovery", "role": "worker"}, "m")
    assert simulate(node(), HARDWARE, snapshot(pending, elsewhere)) == NodeFeatures()


def test_a_node_feature_rule_adds_its_label() -> None:
    expressions = {"vendor": {"op": "In", "value": ["15b3"]}, "class": {"op": "In", "value": ["0200", "0207"]}}
    item = {
        "labels": {"pci-15b3.present": "true"},
        "matchFeatures": [{"feature": "pci.device", "matchExpressions": expressions}],
    }
    ruled = replace(snapshot(WORKER, pci={}), feature_rules=[{"spec": {"rules": [item]}}])
    assert NIC_LABEL in simulate(node(), HARDWARE, ruled).labels
    assert NIC_LABEL not in simulate(node(), replace(HARDWARE, infiniband=0), ruled).labels


@pytest.mark.parametrize(
    ("selectors", "selected"),
    [
        ({"vendors": ["15b3"], "linkTypes": ["infiniband"], "isRdma": True}, True),
        ({}, True),
        ({"vendors": ["8086"]}, False),
        ({"vendors": ["15b3"], "linkTypes": ["ether"]}, False),
        ({"vendors": ["15b3"], "linkTypes": ["IB"]}, False),  # another operator's spelling
        ({"devices": ["101e"]}, True),
        ([{"vendors": ["15b3"]}], True),
    ],
)
def test_ports_are_offered_where_the_selectors_match(selectors: Any, selected: bool) -> None:
    asked = snapshot(WORKER, NETWORK, nic=policy({**PORTS, "selectors": selectors}))
    assert ("nvidia.com/mlnxnics" in simulate(node(), HARDWARE, asked).resources) is selected


def test_shared_devices_are_offered_as_often_as_configured() -> None:
    shared = {"resourceName": "rdma_shared_device_a", "rdmaHcaMax": 63, "selectors": {"vendors": ["15b3"]}}
    asked = snapshot(WORKER, NETWORK, nic=policy(shared, plugin="rdmaSharedDevicePlugin", key="configList"))
    assert simulate(node(), HARDWARE, asked).resources == {"rdma/rdma_shared_device_a": "63"}


@pytest.mark.parametrize(
    "lacking",
    [
        snapshot(WORKER, nic=policy(PORTS)),  # no operator
        snapshot(WORKER, NETWORK),  # no policy
        snapshot(NETWORK, nic=policy(PORTS)),  # no label
        snapshot(WORKER, NETWORK, nic=policy(PORTS), pci={**VENDOR, "deviceLabelFields": ["class", "vendor"]}),
        snapshot(WORKER, NETWORK, nic={**policy(PORTS), "ofedDriver": None}),
        snapshot(WORKER, NETWORK, nic={"ofedDriver": {}, "sriovDevicePlugin": {"config": "not json"}}),
    ],
)
def test_ports_need_operator_policy_label_and_driver(lacking: ClusterSnapshot) -> None:
    assert simulate(node(), HARDWARE, lacking).resources == {}


def test_pods_that_do_not_tolerate_a_taint_add_no_devices() -> None:
    tainted = node(spec={"taints": [TAINT, {"key": "team", "value": "a", "effect": "NoSchedule"}]})
    assert simulate(tainted, HARDWARE, ALL).resources == {}
    tolerations = [{"key": "team", "operator": "Equal", "value": "a"}]
    tolerated = snapshot(
        WORKER,
        NETWORK,
        GPU,
        nic={**policy(PORTS), "tolerations": tolerations},
        cluster={**CLUSTER, "daemonsets": {"tolerations": tolerations}},
    )
    assert sorted(simulate(tainted, HARDWARE, tolerated).resources) == ["nvidia.com/gpu", "nvidia.com/mlnxnics"]


@pytest.mark.parametrize(
    ("hardware", "spec", "gpus", "reason"),
    [
        (HARDWARE, {"driver": {"enabled": True}}, "8", ""),
        (HARDWARE, CLUSTER, None, "GpuDriverWaits"),
        (HARDWARE, {"driver": {"enabled": True, "rdma": {"enabled": True, "useHostMofed": True}}}, "8", ""),
        (replace(HARDWARE, infiniband=0), CLUSTER, "8", ""),
        (replace(HARDWARE, driver="aks"), {"driver": {"enabled": True}}, None, "GpuDriverConflict"),
        (replace(HARDWARE, driver="aks"), {"driver": {"enabled": False}}, "8", ""),
        (HARDWARE, {"driver": {"enabled": False}}, None, "GpuDriverMissing"),
        (HARDWARE, {"devicePlugin": {"enabled": False}}, None, ""),
    ],
)
def test_gpus_need_one_driver_and_with_rdma_the_infiniband_driver_first(
    hardware: Hardware, spec: dict[str, Any], gpus: str | None, reason: str
) -> None:
    found = simulate(node(), hardware, snapshot(WORKER, GPU, cluster=spec))
    assert found.resources.get("nvidia.com/gpu") == gpus
    assert [note for note, _ in found.notes] == ([reason] if reason else [])


def test_a_loaded_driver_stays_when_the_network_operator_goes() -> None:
    loaded = node(status={"capacity": {"nvidia.com/gpu": "8"}})
    without = snapshot(WORKER, GPU, cluster=CLUSTER)
    assert simulate(loaded, HARDWARE, without).resources == {"nvidia.com/gpu": "8"}


AGENTS = node_agents(Path(__file__).resolve().parents[3] / "local" / "simulations.yaml")


def test_agents_label_the_nodes_on_which_they_run() -> None:
    scratch = pod({}, "n", owner="local-nvme-scratch")
    labeler = pod({}, "n", owner="node-labeler")
    found = simulate(node(), HARDWARE, ClusterSnapshot(pods=[scratch, labeler]), AGENTS)
    assert found.labels == {"mlbatch/nvme-scratch": "ready", "hyperv/PhysicalHostName": "simulated-n"}
    without = simulate(node(), replace(HARDWARE, nvme=0), ClusterSnapshot(pods=[scratch]), AGENTS)
    assert "mlbatch/nvme-scratch" not in without.labels


def test_agents_are_the_projects_and_optional(tmp_path: Path) -> None:
    file = tmp_path / "simulations.yaml"
    assert node_agents(file) == ()
    file.write_text("- {daemonset: d, label: l, value: 'v-{node}'}")
    assert node_agents(file) == (NodeAgent("d", "l", "v-{node}"),)
    assert len(NodeAgent("d", "l", "v-{node}").value_on("n" * 70)) == 63


@pytest.mark.parametrize(
    "text", ["- {daemonset: d, label: l, value: v, needs: tpus}", "- {daemonset: d}", "- {", "- d"]
)
def test_an_unusable_file_of_simulations_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "simulations.yaml"
    file.write_text(text)
    with pytest.raises(SimulationError, match=r"simulations\.yaml: "):
        node_agents(file)


def test_a_node_shows_its_devices_in_labels_capacity_and_allocatable() -> None:
    wanted = NodeFeatures(labels={NIC_LABEL: "true"}, resources={"nvidia.com/gpu": "8"})
    assert not shows(node(), wanted)
    amounts = {"cpu": "96", "nvidia.com/gpu": "8"}
    now = node(status={"capacity": amounts, "allocatable": amounts})
    now["metadata"] = {**now["metadata"], "labels": {NIC_LABEL: "true", "own": "kept"}}
    assert shows(now, wanted)
    assert not shows({**now, "status": {"capacity": amounts}}, wanted)


@pytest.mark.parametrize(
    ("found", "states"),
    [
        (NodeFeatures(labels={NIC_LABEL: "true", MOFED_WAIT: "false"}), {"nic": "ready", "gpu": "ready"}),
        (NodeFeatures(labels={NIC_LABEL: "true"}), {"nic": "notReady", "gpu": "ready"}),
        (NodeFeatures(), {"nic": "notReady", "gpu": "ready"}),
        (
            NodeFeatures(labels={NIC_LABEL: "true", MOFED_WAIT: "false"}, notes=[("GpuDriverConflict", "")]),
            {"nic": "ready", "gpu": "notReady"},
        ),
    ],
)
def test_policies_are_ready_when_every_node_concerned_is(found: NodeFeatures, states: dict[str, str]) -> None:
    told = operators.policy_states(ALL, {"n": (HARDWARE, found)})
    assert {item["metadata"]["name"]: state for _, item, state in told} == states


def test_the_label_of_a_gpu_node_may_have_each_form_of_the_operator() -> None:
    assert GPU_LABELS[0] == "feature.node.kubernetes.io/pci-10de.present"
    classed = snapshot(WORKER, GPU, cluster={"driver": {"enabled": True}}, pci={})
    assert simulate(node(), HARDWARE, classed).resources == {"nvidia.com/gpu": "8"}


def test_shares_of_a_gpu_are_offered_as_long_as_nvshares_plugin_runs_on_the_node() -> None:
    def plugin(on: str) -> dict[str, Any]:
        found = pod({"name": "nvshare-device-plugin"}, on)
        environment = [{"name": "NVSHARE_VIRTUAL_DEVICES", "value": "10"}]
        found["spec"]["containers"] = [{"name": "nvshare-lib"}, {"name": "plugin", "env": environment}]
        return found

    card = replace(HARDWARE, gpus=1)
    assert simulate(node(), card, snapshot(plugin("n"))).resources == {"nvshare.com/gpu": "10"}
    assert simulate(node(), card, snapshot(plugin("other"))).resources == {}
    assert simulate(node(), replace(HARDWARE, gpus=0), snapshot(plugin("n"))).resources == {}
