"""Target `existing`, and the common facts of all targets on an existing cluster."""

from collections.abc import Iterator, Sequence
from typing import Final

from components import names
from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool, NodeShape
from components.kubernetes.quantity import Quantity
from components.nodes.machines import Machine
from stacks.config.cluster_facts import ClusterFacts, NodeFacts
from stacks.config.errors import Path
from stacks.config.secrets import MLOPS_PASSWORD
from stacks.config.sections import Sections
from stacks.settings.machines import MACHINES
from stacks.settings.names import label_errors
from stacks.settings.pools import FurtherPoolSettings
from stacks.targets.existing.settings import ClusterSettings, ExistingSettings, PoolSettings
from stacks.targets.spec import Planned, TargetSpec, from_section, shared_sections

_TYPE: Final = "node.kubernetes.io/instance-type"
_PRODUCT: Final = "nvidia.com/gpu.product"
_OWN: Final = Machine(name="", gpu_product="", cpu="0", memory="0", gpus=0, pods=110, source="the settings")
"""A machine that only the settings describe, with the kubelet's default limit of pods."""


def _pools(sections: Sections) -> Sequence[NodePool]:
    """Return the nodes as the settings describe them, or else as they are in the cluster."""
    cluster = sections.section(ClusterSettings)
    found = [_pool(pool, sections.facts) for pool in cluster.pools] if cluster is not None else []
    known = [pool for pool in found if pool is not None]
    return known if len(known) == len(found) else ()


def _fabric(sections: Sections, which: int) -> Fabric:
    """Return what the settings say that the nodes' device plugin offers."""
    cluster = sections.section(ClusterSettings)
    rdma = cluster.pools[which].rdma if cluster is not None else None
    if rdma is None:
        return Fabric()
    return Fabric(resource=rdma.resource, devices=rdma.per_node, variables=rdma.variables)


def _planned(sections: Sections) -> Iterator[Planned]:
    """Yield the claims that are there."""
    cluster = sections.section(ClusterSettings)
    for index, claim in enumerate(cluster.volumes if cluster is not None else ()):
        path: Path = ("cluster", "volumes", index, "name")
        yield Planned("PersistentVolumeClaim", claim.namespace, claim.name, path)


def is_looked_up(pool: PoolSettings) -> bool:
    """Return whether the settings leave something to be read off a pool's nodes, and there can be such nodes."""
    is_whole = pool.count is not None and pool.has_shape
    return not is_whole and not any(label_errors((), pool.node_selector))


def _pool(pool: PoolSettings, facts: ClusterFacts | None) -> NodePool | None:
    """Return a pool, None where its nodes would have to be asked."""
    nodes = facts.nodes_with(pool.node_selector) if facts is not None else ()
    if is_looked_up(pool) and not nodes:
        return None
    shape = given_shape(pool) if pool.has_shape else _smallest(nodes)
    if shape is None or (pool.count is None and facts is None):
        return None
    return NodePool(
        name=pool.name if isinstance(pool, FurtherPoolSettings) else names.FLAVOR,
        nodes=pool.nodes,
        count=len(nodes) if pool.count is None else pool.count,
        shape=shape,
        minimum=pool.minimum if pool.count is not None else None,
        is_read=not pool.has_shape,
    )


def given_shape(pool: PoolSettings) -> NodeShape:
    """Return the shape that the settings give."""
    machine = MACHINES[pool.instance_type] if pool.instance_type is not None else _OWN
    devices = {pool.rdma.resource: pool.rdma.per_node} if pool.rdma is not None else {}
    return machine.shape(
        gpus=pool.gpus_per_node,
        cpu=pool.cpu,
        memory=pool.memory,
        roce_devices=devices.get(names.RDMA, 0),
        ports=devices.get(names.INFINIBAND, 0),
    )


def _smallest(nodes: Sequence[NodeFacts]) -> NodeShape | None:
    """Return the shape that every node has at least, None of no nodes."""
    if not nodes:
        return None
    amounts = {
        resource: min(Quantity.parse(node.allocatable.get(resource, "0")) for node in nodes)
        for resource in names.RESOURCES
    }
    labels = nodes[0].labels
    return NodeShape(instance_type=labels.get(_TYPE, ""), gpu_product=labels.get(_PRODUCT, ""), resources=amounts)


EXISTING: Final = TargetSpec(
    name="existing",
    summary="any cluster with GPU nodes that a kubeconfig names: EKS, GKE, on-premises, kind",
    settings=ExistingSettings,
    sections=("kubernetes", "cluster", *shared_sections()),
    secrets=(MLOPS_PASSWORD,),
    count_key=("cluster", "pool", "count"),
    pools_key=("cluster", "morePools"),
    registry_key=("cluster", "registry"),
    has_kubeconfig=True,
    node_selectors=from_section(
        ClusterSettings,
        lambda cluster: [pool.node_selector for pool in cluster.pools if is_looked_up(pool)],
        [],
    ),
    pools=_pools,
    further=from_section(ClusterSettings, lambda cluster: cluster.more_pools, ()),
    shared_files=lambda settings: settings.cluster.storage_classes.files,
    fabric=_fabric,
    kubernetes_version=lambda sections: sections.facts.version if sections.facts is not None else None,
    registry=from_section(ClusterSettings, lambda cluster: cluster.registry, None),
    volumes=from_section(
        ClusterSettings, lambda cluster: {claim.name: claim.namespace for claim in reversed(cluster.volumes)}, None
    ),
    planned=_planned,
)
