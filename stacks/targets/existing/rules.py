"""Rules of target `existing`, and common rules of all targets on an existing cluster."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from components import names
from components.kubernetes.quantity import Quantity
from components.nodes.network_operator import DevicePlugin
from components.workloads.interface import Exposure
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import MISSING, ConfigError, Path, few, instead, key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.gpu import GpuSettings, ScratchSettings
from stacks.settings.health import AutopilotSettings, CheckSettings, Mode
from stacks.settings.tenancy import QueueingSettings
from stacks.settings.workloads import ViewerSettings, WorkloadsSettings
from stacks.targets.existing import gpu_policies
from stacks.targets.existing.settings import ClusterSettings, PoolSettings, StorageClassSettings, path_of
from stacks.targets.existing.target import given_shape, is_looked_up
from stacks.validation.walk import apply, sections

_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"
_KEYS: Final = {names.GPU: "gpusPerNode", names.CPU: "cpu", names.MEMORY: "memory"}
"""The key for the amount of each resource in a node's shape."""
_MACHINE: Final = "instanceType"


def check(partial: PartialSettings, classes_made: Iterable[str] = ()) -> Iterator[ConfigError]:
    """Yield errors of settings that do not match the nodes. classes_made: storage classes that the stack creates."""
    yield from apply(partial, _load_balancer, _viewers, _rdma, _policies, _sharing)
    yield from _classes(partial, classes_made)
    yield from apply(partial, _nodes)


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield warnings about nodes with less than the settings say, and about their GPU operator."""
    yield from apply(partial, gpu_policies.warnings, _short)


def _nodes(partial: PartialSettings, cluster: ClusterSettings, facts: ClusterFacts) -> Iterator[ConfigError]:
    for which, pool in enumerate(cluster.pools):
        if is_looked_up(pool):
            yield from _found(partial, path_of(which), pool, facts)


def _short(partial: PartialSettings, cluster: ClusterSettings, facts: ClusterFacts) -> Iterator[str]:
    """Yield warnings about nodes with less than the settings say."""
    for which, pool in enumerate(cluster.pools):
        for path, resource, offers in _offers(partial, path_of(which), pool, facts):
            wanted = given_shape(pool).resources[resource]
            short = [name for name, amount in offers.items() if amount < wanted]
            if short and max(offers.values()) >= wanted:
                yield (
                    f"{key(path)}: these nodes offer less {resource} than {wanted}: {few(short)}; quotas count the "
                    "amount in the settings, so admitted jobs may stay pending"
                )


def _load_balancer(
    partial: PartialSettings, cluster: ClusterSettings, workloads: WorkloadsSettings
) -> Iterator[ConfigError]:
    """Yield the error of an internal load balancer without the provider's annotations."""
    lab = workloads.jupyterlab
    if not lab.enabled or lab.exposure is not Exposure.INTERNAL or cluster.internal_load_balancer:
        return
    annotations = key(("cluster", "internalLoadBalancer"))
    yield ConfigError(
        ("workloads", "jupyterlab", "exposure"),
        "the annotations for an internal load balancer on this cluster are not set",
        f"set {annotations}, or use a port-forward",
        expected=f"cluster or public, or {annotations} with the annotations of the cluster's provider",
    )


def _viewers(partial: PartialSettings, cluster: ClusterSettings, workloads: WorkloadsSettings) -> Iterator[ConfigError]:
    """Yield errors of viewers whose namespace does not allow the tolerations of system nodes."""
    others = set(cluster.system.tolerations) - {each for pool in cluster.pools for each in pool.tolerations}
    if not workloads.metaseq.queued or not others:
        return
    gang, tolerations = key(("workloads", "metaseq", "submission", "gang")), key(("cluster", "system", "tolerations"))
    for name, viewer in workloads.of(ViewerSettings).items():
        if viewer.enabled:
            yield ConfigError(
                ("workloads", name, "enabled"),
                "the viewer runs in a team's namespace, next to the logs, and teams' pods cannot have the "
                f"tolerations of {tolerations}",
                f"set {gang} to none, or remove {tolerations}",
            )


def _rdma(partial: PartialSettings, cluster: ClusterSettings) -> Iterator[ConfigError]:
    """Yield errors of network devices that pods request and nodes do not offer."""
    gpu = partial.section(GpuSettings)
    if gpu is not None and gpu.fabric.enabled:
        is_sriov = gpu.fabric.device_plugin is DevicePlugin.SRIOV
        offered = names.INFINIBAND if is_sriov else names.SHARED_INFINIBAND
        for which, pool in enumerate(cluster.pools):
            rdma = pool.rdma
            # Pools after the first may have no network.
            if (rdma is None and which > 0) or (rdma is not None and rdma.resource == offered):
                continue
            yield ConfigError(
                (*path_of(which), "rdma"),
                f"mlbatch:gpu.fabric.devicePlugin is {gpu.fabric.device_plugin}, which offers "
                f"{offered}, but " + ("their number is not set" if rdma is None else f"pods request {rdma.resource}"),
                "set it, or mlbatch:gpu.fabric.enabled to false if the nodes already offer their own",
                expected=f"resource: {offered}, with the number in perNode",
                value=MISSING,
            )
        return
    for which, pool in enumerate(cluster.pools):
        if (rdma := pool.rdma) is None or partial.facts is None:
            continue
        wanted, nodes = Quantity.parse(rdma.per_node), partial.facts.nodes_with(pool.node_selector)
        short = [node.name for node in nodes if Quantity.parse(node.allocatable.get(rdma.resource, "0")) < wanted]
        if short:
            yield ConfigError(
                (*path_of(which), "rdma", "perNode"),
                f"these nodes offer fewer {rdma.resource}: {few(short)}",
                "lower it, or name the resource that `kubectl describe node` shows under Allocatable",
            )


def _found(partial: PartialSettings, path: Path, pool: PoolSettings, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield errors of the nodes of a pool. path: of its settings."""
    nodes = facts.nodes_with(pool.node_selector)
    if not nodes:
        yield ConfigError(
            (*path, "nodeSelector"),
            "no node of the cluster has these labels",
            f"set it to labels of your GPU nodes (`kubectl get nodes --show-labels`), or set {key((*path, 'count'))} "
            f"and {key((*path, 'instanceType'))} of future nodes",
        )
    yield from _shape(partial, path, pool, facts)
    without = [node.name for node in nodes if not Quantity.parse(node.allocatable.get(names.GPU, "0")).nano]
    if without and not pool.has_shape:
        yield ConfigError(
            (*path, "nodeSelector"),
            f"these nodes do not offer {names.GPU}: {few(without)}",
            "choose other labels, or install the device plugin first; with mlbatch:gpu.operator: true set the "
            "nodes' shape (instanceType, or gpusPerNode, cpu and memory)",
        )


def _shape(partial: PartialSettings, where: Path, pool: PoolSettings, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield errors of amounts that no node has. A single node with a broken GPU is not an error."""
    found: dict[Path, dict[str, Quantity]] = {}
    for path, resource, offers in _offers(partial, where, pool, facts):
        if (most := max(offers.values())) < given_shape(pool).resources[resource]:
            found.setdefault(path, {})[resource] = most
    for path, offered in found.items():
        wanted = listed(f"{given_shape(pool).resources[resource]} of {resource}" for resource in offered)
        there = listed(f"{_KEYS[resource]}: {amount}" for resource, amount in offered.items())
        lower = f"add {there}" if path[-1] == _MACHINE else "lower it"
        yield ConfigError(
            path,
            f"no node offers {wanted}",
            f"{lower}, or remove the shape, which is then read from the nodes",
            expected=f"{there}, or less (Allocatable in `kubectl describe node`)",
        )


def _offers(
    partial: PartialSettings, where: Path, pool: PoolSettings, facts: ClusterFacts
) -> Iterator[tuple[Path, str, Mapping[str, Quantity]]]:
    """Yield what there is of each resource of a shape that the settings give: where they say it, and on each node.

    Nodes whose device plugin is yet to be installed offer no GPUs, and so none are compared. where: the pool's key.
    """
    nodes = facts.nodes_with(pool.node_selector)
    if not (pool.has_shape and nodes):
        return
    for resource, name in _KEYS.items():
        offers = {node.name: Quantity.parse(node.allocatable.get(resource, "0")) for node in nodes}
        if max(offers.values()).nano:
            path: Path = (*where, name)
            is_given = partial.written(path) is not MISSING
            yield path if is_given else (*where, _MACHINE), resource, offers


def _policies(partial: PartialSettings, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield errors of agents that could label all nodes: RBAC cannot limit them to their own node."""
    if facts.has_admission_policies:
        return
    for path, section in sections(partial):
        if isinstance(section, ScratchSettings | AutopilotSettings) and section.enabled:
            switch, other = (*path, "enabled"), "false"
        elif isinstance(section, CheckSettings) and section.enabled and section.mode is Mode.GATE:
            switch, other = (*path, "mode"), str(Mode.CHECK)
        else:
            continue
        yield ConfigError(
            switch,
            f"its pods label nodes, and this cluster of Kubernetes {facts.version} has no "
            "ValidatingAdmissionPolicy to limit each pod to its own node",
            f"upgrade the cluster, or set {key(switch)} to {other}",
            expected="Kubernetes 1.30 or later with that API on, or neither scratch space, gates nor Autopilot",
            value=MISSING,
        )


def _sharing(
    partial: PartialSettings, cluster: ClusterSettings, facts: ClusterFacts, queueing: QueueingSettings
) -> Iterator[ConfigError]:
    """Yield errors of nodes that offer each GPU several times: quotas would count shares as GPUs.

    The labels are those of NVIDIA's feature discovery (NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery).
    """
    if not queueing.enabled:
        return
    for which, pool in enumerate(cluster.pools):
        nodes = facts.nodes_with(pool.node_selector)
        shared = [node.name for node in nodes if node.labels.get(_STRATEGY, "none") != "none"]
        if not shared:
            continue
        yield ConfigError(
            (*path_of(which), "nodeSelector"),
            f"these nodes share each GPU among several pods ({_STRATEGY}): {few(shared)}; "
            "quotas would count shares as GPUs, and jobs on whole nodes would not get whole GPUs",
            "remove the config of the device plugin from the ClusterPolicy and the nodes' label "
            "nvidia.com/device-plugin.config, or choose other nodes",
            value=MISSING,
        )


def _classes(partial: PartialSettings, made: Iterable[str]) -> Iterator[ConfigError]:
    """Yield errors of storage classes that neither the cluster nor the stack has: claims would stay pending."""
    if partial.facts is None or partial.facts.storage_classes is None:
        return
    known = {*partial.facts.storage_classes, *made}
    for path, section in sections(partial):
        if path[0] == "nfs" or getattr(section, "enabled", True) is False:
            continue
        for field, info in type(section).model_fields.items():
            name = getattr(section, field)
            is_class = field.endswith("storage_class") or isinstance(section, StorageClassSettings)
            if is_class and name is not None and name not in known:
                yield ConfigError(
                    (*path, info.alias or field),
                    "the cluster has no storage class with this name, and the stack does not create it",
                    instead(
                        name,
                        known,
                        "create the class first, or remove the key; the default is the cluster's default class",
                    ),
                    expected=listed(sorted(known)) if known else "an existing class",
                )
