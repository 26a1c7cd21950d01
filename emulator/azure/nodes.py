"""The nodes of agent pools, like those of AKS: names, labels, taints, capacity, devices."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulator.azure.facts import AzureFacts, Size
from emulator.azure.services.base import CLUSTER, POOL, at, node_suffix
from emulator.azure.store import Record, State
from emulator.cluster.devices import PREFIX

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_GIB, _MIB, _KIB, _MB = 1024**3, 1024**2, 1024, 1000**2


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a pool.

    first_of_system: the local kubelet's own node takes the place of this one, so that controllers really run there.
    amounts, allocatable: capacity, and the part of it for pods.
    taints: objects with key, value and effect.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    annotations: Mapping[str, str]
    provider_id: str
    amounts: Mapping[str, str]
    allocatable: Mapping[str, str]
    first_of_system: bool


def desired(facts: AzureFacts, state: State) -> list[Node]:
    """Return the current nodes of the managed cluster's pools."""
    found: list[Node] = []
    for cluster in state.of_type(CLUSTER):
        pools = sorted(state.of_type(POOL, cluster.id), key=lambda each: each.hidden.get("order", 0))
        leader = next((each.id for each in pools if each.properties["mode"] == "System"), "")
        for pool in pools:
            size = facts.size(str(pool.properties["vmSize"]))
            if size is None:
                continue
            for position, instance in enumerate(pool.hidden.get("instances", [])):
                first = pool.id == leader and position == 0
                found.append(node(facts, cluster, pool, size, instance, first_of_system=first))
    return found


def node(
    facts: AzureFacts, cluster: Record, pool: Record, size: Size, instance: int, *, first_of_system: bool = False
) -> Node:
    """Return one node of a pool; `instance` is its number in the scale set."""
    properties = pool.properties
    scale_set = f"aks-{pool.name}-{node_suffix(cluster.id)}-vmss"
    amounts = {"cpu": str(size.vcpus), "memory": f"{size.memory}Gi", "pods": str(properties["maxPods"])}
    disk = int(properties["osDiskSizeGB"])
    amounts["ephemeral-storage"] = f"{disk}Gi"
    return Node(
        name=f"{scale_set}{_base36(instance)}",
        labels=_labels(facts, cluster, pool, size, instance),
        taints=tuple(_taint(each) for each in properties.get("nodeTaints") or []),
        annotations=_devices(pool, size),
        provider_id=(
            f"azure:///subscriptions/{facts.subscription_id}/resourceGroups/"
            f"{cluster.properties['nodeResourceGroup'].lower()}/providers/Microsoft.Compute/virtualMachineScaleSets/"
            f"{scale_set}/virtualMachines/{instance}"
        ),
        amounts=amounts,
        allocatable={**amounts, **_allocatable(size, int(properties["maxPods"]))},
        first_of_system=first_of_system,
    )


def _labels(facts: AzureFacts, cluster: Record, pool: Record, size: Size, instance: int) -> Mapping[str, str]:
    """Return the pool's labels, and the labels of AKS that place pods.

    Source: https://learn.microsoft.com/azure/aks/use-labels.
    """
    properties, location = pool.properties, cluster.properties["location"]
    zones = properties.get("availabilityZones") or []
    zone = f"{location}-{zones[instance % len(zones)]}" if zones else "0"
    labels = {
        "agentpool": pool.name,
        "kubernetes.azure.com/agentpool": pool.name,
        "kubernetes.azure.com/cluster": cluster.properties["nodeResourceGroup"],
        "kubernetes.azure.com/mode": properties["mode"].lower(),
        "kubernetes.azure.com/os-sku": properties["osSKU"],
        "kubernetes.azure.com/role": "agent",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": properties["vmSize"],
        "topology.kubernetes.io/region": location,
        "topology.kubernetes.io/zone": zone,
    }
    if size.gpus:
        labels["accelerator"] = "nvidia"
        labels["kubernetes.azure.com/accelerator"] = "nvidia"
    return {**labels, **(properties.get("nodeLabels") or {})}


def _devices(pool: Record, size: Size) -> Mapping[str, str]:
    """Return annotations for the machine's devices, which become resources of the node when plugins are installed.

    A machine has InfiniBand if, at the pool's creation, the feature was registered or not, as the size requires.
    """
    found: dict[str, Any] = {}
    if size.gpus:
        found |= {"gpus": size.gpus, "gpu-product": size.product}
        if at(pool.properties, "gpuProfile.driver") != "None":
            found["driver"] = "aks"
    if size.infiniband and bool(pool.hidden.get("infiniband")) == size.feature:
        found["infiniband"] = size.infiniband
    if size.nvme:
        found["nvme"] = size.nvme
    return {f"{PREFIX}{key}": str(value) for key, value in found.items()}


def _allocatable(size: Size, pods: int) -> Mapping[str, str]:
    """Return the amounts that AKS leaves to pods.

    Source: https://learn.microsoft.com/azure/aks/node-resource-reservations, since 1.29.
    CPU: 60, 100, 140, 180, 260, 420, 740 millicores of 1, 2, 4, 8, 16, 32, 64 cores: 10 for each further core.
    Memory: 20 MB for each pod plus 50 MB, at most a quarter, and the eviction threshold of 100 MiB.
    """
    cores = size.vcpus
    kept = {1: 60, 2: 100}.get(cores, 100 + 10 * cores)
    memory = size.memory * _GIB
    reserved = min((20 * pods + 50) * _MB, memory // 4) + 100 * _MIB
    return {"cpu": f"{cores * 1000 - kept}m", "memory": f"{(memory - reserved) // _KIB}Ki"}


def _taint(text: str) -> Mapping[str, str]:
    pair, _, effect = text.rpartition(":")
    key, separator, value = pair.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if separator else {})}


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits.zfill(6)
