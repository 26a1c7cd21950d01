"""How much of what no queue counts a team's namespace holds, and that what its pods leave out is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import job_kinds, names
from components.kubernetes.manifests import Document
from components.kubernetes.quantity import Quantity
from components.kubernetes.resource_quota import EVICTING_PODS, FOREIGN_AFFINITY, resource_quota

FILES: Final = 500
"""Most of a team's ConfigMaps, and of its Secrets, of which each may have 1 MiB in the API server's store."""
MOST_JOBS: Final = 1000
"""Most of a team's objects of each kind that members submit, those that have ended among them."""
APPWRAPPERS: Final = job_kinds.APPWRAPPER.resource
POD_GROUPS: Final = job_kinds.POD_GROUP.resource
SUBMITTED: Final = tuple(sorted(kind.resource for kind in (*job_kinds.SUBMITTED, job_kinds.POD_GROUP)))
"""Kinds of custom resources that members create."""
_COUNTED: Final = {"pulumi.com/waitFor": "jsonpath={.status.used.*}"}
STORAGE: Final = Quantity.parse("20Ti")
DISK: Final = Quantity.parse("50Gi")
"""Of a node's disk, for each container. A node of 128 GiB keeps as much again for images before its kubelet removes
pods (kubernetes.io, concepts/scheduling-eviction/node-pressure-eviction)."""
DEFAULT_REQUEST: Final = {names.CPU: "1", names.MEMORY: "4Gi"}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """services: how many, load balancers among them. node_ports: a Service may open ports of the nodes.

    claims, storage: how many volumes, and the bytes that they ask for together. disk: bytes of its node's disk that a
    container may fill which asks for none.
    """

    services: int = 500
    load_balancers: int = 0
    node_ports: bool = False
    claims: int = 100
    storage: Quantity = STORAGE
    disk: Quantity = DISK


def quotas(namespace: pulumi.Input[str], bounds: Bounds) -> list[Document]:
    """Return a namespace's ResourceQuotas, none of which counts what a ClusterQueue counts.

    MLBatch's QUOTA_MAINTENANCE.md forbids that; pods of classes that evict others are counted to have none of them, and
    so are those whose affinity names other namespaces: a running pod keeps away what its anti-affinity names.
    """
    return [
        resource_quota("bounds", namespace, _hard(bounds)),
        resource_quota("no-system-pods", namespace, {"pods": "0"}, scope=EVICTING_PODS),
        resource_quota("no-foreign-affinity", namespace, {"pods": "0"}, scope=FOREIGN_AFFINITY),
    ]


def job_quotas(namespace: pulumi.Input[str], defined: Sequence[str]) -> list[Document]:
    """Return the ResourceQuotas of how many jobs a namespace has. defined: those of SUBMITTED that the stack defines.

    Until the quota controller knows a kind that a quota names, the API server refuses all objects of it. It looks for
    new kinds every 30 s, and at a quota of one that it did not know every 5 minutes (kube-controller-manager v1.34,
    `pkg/controller/resourcequota`). So each kind that the stack has just defined has a quota of its own, which is
    waited for.
    """
    waited = [
        resource_quota(kind.partition(".")[0], namespace, _jobs([kind]), annotations=_COUNTED) for kind in defined
    ]
    others = [kind for kind in SUBMITTED if kind not in defined]
    return [*waited, resource_quota("other-jobs", namespace, _jobs(others))]


def limit_range(namespace: pulumi.Input[str], disk: Quantity = DISK) -> Document:
    """Return what containers are taken to ask for that name neither request nor limit, and what then ends them.

    Kueue 0.15 prefers a default request to a container's own limit (`pkg/workload/resources.go`), while the API server
    takes the limit for the request: an admission policy refuses jobs that name limits alone. The limit of memory is its
    request, for nodes have no more than quotas count; one of CPU is not needed, which each gets in proportion to what
    it requests. Disk is limited and not requested: few jobs fill it, and those can say so.
    """
    limits = {names.MEMORY: DEFAULT_REQUEST[names.MEMORY], names.DISK: str(disk)}
    requests = {**DEFAULT_REQUEST, names.DISK: "0"}
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "requests", "namespace": namespace},
        "spec": {"limits": [{"type": "Container", "default": limits, "defaultRequest": requests}]},
    }


def _hard(bounds: Bounds) -> dict[str, str]:
    hard = {
        "services": _count(bounds.services),
        "services.loadbalancers": _count(bounds.load_balancers),
        "persistentvolumeclaims": _count(bounds.claims),
        "requests.storage": str(bounds.storage),
        "configmaps": _count(FILES),
        "secrets": _count(FILES),
    }
    if not (bounds.node_ports or bounds.load_balancers):  # each load balancer has ports of the nodes too
        hard["services.nodeports"] = "0"
    return hard


def _jobs(kinds: Sequence[str]) -> dict[str, str]:
    return {f"count/{kind}": _count(MOST_JOBS) for kind in kinds}


def _count(number: int) -> str:
    return str(Quantity.parse(number))
