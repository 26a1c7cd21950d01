"""Simulation of upstream's hardware operators on a node: labels, and resources of device plugins.

`RULES` lists the rules in order; later rules use the results of earlier ones.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from emulator.cluster.api import Object
from emulator.cluster.devices import ClusterSnapshot, Hardware, NodeFeatures
from emulator.cluster.simulations import NodeAgent

FEATURES = "feature.node.kubernetes.io/"
MOFED_WAIT = "network.nvidia.com/operator.mofed.wait"
"""Label of the network operator: `false` when a node's InfiniBand driver is loaded."""

NIC_LABEL = f"{FEATURES}pci-15b3.present"
GPU_LABELS = tuple(f"{FEATURES}pci-{form}.present" for form in ("10de", "0302_10de", "0300_10de"))
"""Labels that the operators require (Mellanox/network-operator, pkg/nodeinfo; NVIDIA/gpu-operator,
state_manager.go).
"""

_NVSHARE, _SHARES = "nvshare-device-plugin", "NVSHARE_VIRTUAL_DEVICES"
_GPU_TAINT_TOLERATED = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_FIELDS = ("class", "vendor", "device")
_DEFAULT_WHITELIST = ("03", "0b40", "12")
_DEFAULT_FIELDS = ("class", "vendor")


def simulate(
    node: Object, hardware: Hardware, snapshot: ClusterSnapshot, agents: Sequence[NodeAgent] = ()
) -> NodeFeatures:
    """Return what a node shows according to all rules and to the project's own agents on it."""
    found = NodeFeatures()
    for rule in RULES:
        rule(node, hardware, snapshot, found)
    for agent in agents:
        equipped = not agent.needs or getattr(hardware, agent.needs)
        if equipped and any(_owned_by(pod, agent.daemonset) for pod in snapshot.running({}, _name(node))):
            found.labels[agent.label] = agent.value_on(_name(node))
    return found


def feature_discovery(node: Object, hardware: Hardware, snapshot: ClusterSnapshot, found: NodeFeatures) -> None:
    """Label a node with its PCI devices while a worker of Node Feature Discovery runs there.

    The worker's configuration sets classes and label format (source/pci/pci.go). NodeFeatureRules add more labels.
    """
    workers = snapshot.running({"app.kubernetes.io/name": "node-feature-discovery", "role": "worker"}, _name(node))
    if not workers:
        return
    pci = _worker_configuration(workers[0], snapshot)
    whitelist = pci.get("deviceClassWhitelist") or _DEFAULT_WHITELIST
    wanted = pci.get("deviceLabelFields") or ()
    fields = [name for name in _FIELDS if name in wanted] or _DEFAULT_FIELDS
    for device in hardware.pci():
        if any(device["class"].startswith(str(white).lower()) for white in whitelist):
            found.labels[f"{FEATURES}pci-{'_'.join(device[name] for name in fields)}.present"] = "true"
    for rule in snapshot.feature_rules:
        for item in rule["spec"].get("rules") or []:
            if _matches_pci(item, hardware):
                labels = (item.get("labels") or {}).items()
                found.labels |= {key if "/" in key else f"{FEATURES}{key}": str(value) for key, value in labels}


def network_operator(node: Object, hardware: Hardware, snapshot: ClusterSnapshot, found: NodeFeatures) -> None:
    """Load the InfiniBand driver and run the device plugins of a NicClusterPolicy, like the network operator.

    Plugins start on nodes with a loaded driver, and offer the ports that their configuration selects.
    """
    if not _operated(snapshot, "network-operator", snapshot.nic_policies) or not hardware.infiniband:
        return
    spec = snapshot.nic_policies[0].get("spec") or {}
    if found.labels.get(NIC_LABEL) != "true" or not _tolerated(node, spec.get("tolerations")):
        return
    if not spec.get("ofedDriver"):
        return
    found.labels[MOFED_WAIT] = "false"
    for item in _configuration(spec, "sriovDevicePlugin", "resourceList"):
        if _selects_port(item.get("selectors") or {}):
            found.resources[f"{item.get('resourcePrefix') or 'intel.com'}/{item['resourceName']}"] = str(
                hardware.infiniband
            )
            break  # the first resource that selects the ports gets them
    for item in _configuration(spec, "rdmaSharedDevicePlugin", "configList"):
        if _selects_port(item.get("selectors") or {}):
            name = f"{item.get('resourcePrefix') or 'rdma'}/{item['resourceName']}"
            found.resources[name] = str(item.get("rdmaHcaMax") or 0)


def gpu_operator(node: Object, hardware: Hardware, snapshot: ClusterSnapshot, found: NodeFeatures) -> None:
    """Install driver and device plugin of a ClusterPolicy, like the GPU operator.

    With GPUDirect RDMA the driver waits for the InfiniBand driver. A machine cannot have two GPU drivers. A node may
    have the labels of feature discovery from the start.
    """
    if not _operated(snapshot, "gpu-operator", snapshot.cluster_policies) or not hardware.gpus:
        return
    spec = snapshot.cluster_policies[0].get("spec") or {}
    labels = {**(node["metadata"].get("labels") or {}), **found.labels}
    if not any(labels.get(label) == "true" for label in GPU_LABELS):
        return
    tolerations = (spec.get("daemonsets") or {}).get("tolerations")
    if not _tolerated(node, tolerations):
        found.notes.append(("GpuTaintNotTolerated", "the GPU operator's pods do not tolerate the node's taints"))
        return
    found.labels["nvidia.com/gpu.present"] = "true"
    driver = spec.get("driver") or {}
    rdma = driver.get("rdma") or {}
    installs = driver.get("enabled", True)
    if installs and hardware.driver:
        text = f"the GPU driver of {hardware.driver} is loaded, so the GPU operator cannot load its own"
        found.notes.append(
            ("GpuDriverConflict", f"{text}. Create the pool without a driver, or set driver.enabled to false")
        )
        return
    if not installs and not hardware.driver:
        found.notes.append(
            ("GpuDriverMissing", "the node has no GPU driver, and the GPU operator is configured without one")
        )
        return
    waits = rdma.get("enabled") and not rdma.get("useHostMofed") and hardware.infiniband
    loaded = "nvidia.com/gpu" in ((node.get("status") or {}).get("capacity") or {})
    if installs and waits and not loaded and found.labels.get(MOFED_WAIT) != "false":
        found.notes.append(("GpuDriverWaits", "the GPU driver with RDMA waits for the InfiniBand driver of the node"))
        return
    if (spec.get("devicePlugin") or {}).get("enabled", True):
        found.resources["nvidia.com/gpu"] = str(hardware.gpus)
    if (spec.get("gfd") or {}).get("enabled", True):
        found.labels |= {"nvidia.com/gpu.count": str(hardware.gpus), "nvidia.com/gpu.product": hardware.product}


def nvshare(node: Object, hardware: Hardware, snapshot: ClusterSnapshot, found: NodeFeatures) -> None:
    """Offer shares of the node's GPU, like NVshare's device plugin, as many as its pod's variable says.

    Source: grgalex/nvshare, kubernetes/device-plugin/main.go and devices.go.
    """
    plugins = snapshot.running({"name": _NVSHARE}, _name(node))
    containers = [each for pod in plugins for each in pod["spec"]["containers"]] if hardware.gpus else []
    shares = [item["value"] for each in containers for item in each.get("env") or [] if item["name"] == _SHARES]
    if shares:
        found.resources["nvshare.com/gpu"] = shares[0]


RULES: tuple[Callable[[Object, Hardware, ClusterSnapshot, NodeFeatures], None], ...] = (
    feature_discovery,
    network_operator,
    gpu_operator,
    nvshare,
)


def policy_states(
    snapshot: ClusterSnapshot, nodes: Mapping[str, tuple[Hardware, NodeFeatures]]
) -> Iterator[tuple[str, Object, str]]:
    """Yield (operator, its custom resource, its state): ready when every node concerned is ready.

    Without a node with such a device, a NicClusterPolicy does not become ready (state-ofed of the network operator).
    """
    ports = [found for hardware, found in nodes.values() if hardware.infiniband and found.labels.get(NIC_LABEL)]
    if _operated(snapshot, "network-operator", snapshot.nic_policies):
        ready = ports and all(MOFED_WAIT in found.labels for found in ports)
        yield "network-operator", snapshot.nic_policies[0], "ready" if ready else "notReady"
    if _operated(snapshot, "gpu-operator", snapshot.cluster_policies):
        waiting = [found for _, found in nodes.values() if found.notes]
        yield "gpu-operator", snapshot.cluster_policies[0], "notReady" if waiting else "ready"


def _operated(snapshot: ClusterSnapshot, operator: str, resources: Sequence[Object]) -> bool:
    """Tell whether an operator runs and has its custom resource. Only OLM's pods have the second label."""
    labels = ({"app.kubernetes.io/name": operator}, {"app.kubernetes.io/component": operator})
    return bool(resources) and any(snapshot.running(each) for each in labels)


def _worker_configuration(worker: Object, snapshot: ClusterSnapshot) -> Mapping[str, Any]:
    for volume in worker["spec"].get("volumes") or []:
        name = (volume.get("configMap") or {}).get("name")
        found = snapshot.config_map(worker["metadata"]["namespace"], name) if name else None
        text = ((found or {}).get("data") or {}).get("nfd-worker.conf")
        if text:
            content = yaml.safe_load(text) or {}
            pci: Mapping[str, Any] = (content.get("sources") or {}).get("pci") or {}
            return pci
    return {}


def _matches_pci(rule: Mapping[str, Any], hardware: Hardware) -> bool:
    features = rule.get("matchFeatures") or []
    return bool(features) and all(
        feature.get("feature") == "pci.device"
        and any(_matches(device, feature.get("matchExpressions") or {}) for device in hardware.pci())
        for feature in features
    )


def _matches(device: Mapping[str, str], expressions: Mapping[str, Any]) -> bool:
    return all(
        expression.get("op") == "In" and device.get(name) in (expression.get("value") or [])
        for name, expression in expressions.items()
    )


def _configuration(spec: Mapping[str, Any], plugin: str, key: str) -> list[dict[str, Any]]:
    """Return the resources in a device plugin's configuration, none if the plugin cannot read it."""
    text = (spec.get(plugin) or {}).get("config")
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return []
    return [item for item in found.get(key) or [] if item.get("resourceName")]


def _selects_port(selectors: Any) -> bool:
    """Tell whether a device plugin's selectors match an InfiniBand port; all given ones must match."""
    port = {"vendors": "15b3", "devices": "101e", "drivers": "mlx5_core", "linkTypes": "infiniband"}
    given = selectors[0] if isinstance(selectors, list) and selectors else selectors
    port["deviceIDs"] = port["devices"]
    return all(value in given[key] for key, value in port.items() if given.get(key))


def _tolerated(node: Object, tolerations: Sequence[Mapping[str, str]] | None) -> bool:
    """Tell whether pods with these tolerations, and one for the GPU taint, may run on the node."""
    given = [_GPU_TAINT_TOLERATED, *(tolerations or ())]
    taints = [taint for taint in node["spec"].get("taints") or [] if taint["effect"] in ("NoSchedule", "NoExecute")]
    # Pods of a DaemonSet tolerate the taints of the node lifecycle controller.
    taints = [taint for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]
    return all(any(_tolerates(each, taint) for each in given) for taint in taints)


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("operator") == "Exists":
        return not toleration.get("key") or toleration["key"] == taint["key"]
    return toleration.get("key") == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")


def _owned_by(pod: Object, daemon_set: str) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    return any((owner["kind"], owner["name"]) == ("DaemonSet", daemon_set) for owner in owners)


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])
