"""Bounds on what no queue counts in a team's namespace, and defaults for what its pods leave out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import job_kinds, names
from components.kubernetes.manifests import Document
from components.kubernetes.quantity import Quantity
from components.kubernetes.resource_quota import EVICTING_PODS, FOREIGN_AFFINITY, resource_quota
from components.tenancy.amounts import MOST_PODS

FILES: Final = 500
"""The most ConfigMaps of a team, and the most Secrets. Each may take 1 MiB in the API server's store."""
MOST_JOBS: Final = 1000
"""The most objects of a team for each kind that members submit. Completed objects count."""
MOST_TRAIN_JOBS: Final = 250
"""The same for TrainJobs. A suspended one already has about six parts. Kubernetes' garbage collector deletes 20
objects a second for all teams (kube-controller-manager v1.36, `--kube-api-qps`)."""
TRAIN_JOB_ROOM: Final = 20 * MOST_TRAIN_JOBS
"""The most Services of a team's TrainJobs, and the most PodGroups. Each job has one, and those of deleted jobs remain
until the garbage collector finds them (`components.tenancy.train_job_room`)."""
BOUNDS: Final = "bounds"
"""Name of the ResourceQuota with the bounds."""
OWN: Final = "mlbatch/without-train-jobs"
"""Annotation of a ResourceQuota: a team with this many Services or PodGroups gets only those of TrainJobs."""
PODS: Final = MOST_PODS
"""The most pods of a team. Completed pods count: from 12,500 of these on, Kubernetes deletes the oldest in the whole
cluster (kube-controller-manager, `--terminated-pod-gc-threshold`), also those of gangs that still run."""
APPWRAPPERS: Final = job_kinds.APPWRAPPER.resource
POD_GROUPS: Final = job_kinds.POD_GROUP.resource
SUBMITTED: Final = tuple(sorted(kind.resource for kind in (*job_kinds.SUBMITTED, job_kinds.POD_GROUP)))
"""Kinds of custom resources that members create."""
_COUNTED: Final = {"pulumi.com/waitFor": "jsonpath={.status.used.*}"}
STORAGE: Final = Quantity.parse("20Ti")
DISK: Final = Quantity.parse("50Gi")
"""Bytes of its node's disk that each container may fill. A node with 128 GiB keeps as much again for images, before its
kubelet evicts pods (kubernetes.io, concepts/scheduling-eviction/node-pressure-eviction)."""
DEFAULT_REQUEST: Final = {names.CPU: "1", names.MEMORY: "4Gi"}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a team's namespace may have.

    services: the number of Services, including load balancers.
    counts_train_jobs: the ResourceQuotas alone limit all Services and PodGroups. False if policies limit those of all
    other jobs (`components.tenancy.train_job_room`): then those of TrainJobs always have room.
    node_ports: a Service may open ports of the nodes.
    claims: the number of PVCs.
    storage: bytes that all PVCs request together.
    disk: bytes of its node's disk that a container may fill if it requests none.
    """

    services: int = 500
    counts_train_jobs: bool = True
    load_balancers: int = 0
    node_ports: bool = False
    claims: int = 100
    storage: Quantity = STORAGE
    disk: Quantity = DISK

    @property
    def room(self) -> int:
        """Number of Services, and of PodGroups, that only TrainJobs may use."""
        return 0 if self.counts_train_jobs else TRAIN_JOB_ROOM


def quotas(namespace: pulumi.Input[str], bounds: Bounds) -> list[Document]:
    """Return a namespace's ResourceQuotas. They do not count what a ClusterQueue counts.

    MLBatch's QUOTA_MAINTENANCE.md forbids that. Pods of priority classes that preempt others have a quota of 0. Pods
    whose affinity names other namespaces have a quota of 0 too, because a running pod keeps away the pods that its
    anti-affinity names.
    """
    own = {OWN: str(bounds.services)} if bounds.room else None
    return [
        resource_quota(BOUNDS, namespace, _hard(bounds), annotations=own),
        resource_quota("no-system-pods", namespace, {"pods": "0"}, scope=EVICTING_PODS),
        resource_quota("no-foreign-affinity", namespace, {"pods": "0"}, scope=FOREIGN_AFFINITY),
    ]


def job_quotas(namespace: pulumi.Input[str], defined: Sequence[str], bounds: Bounds) -> list[Document]:
    """Return the ResourceQuotas for the number of jobs in a namespace.

    defined: the kinds of SUBMITTED that the stack defines.

    While the quota controller does not know a kind that a quota names, the API server rejects all objects of this kind.
    The controller looks for new kinds every 30 s, and retries a quota with an unknown kind every 5 minutes
    (kube-controller-manager v1.34, `pkg/controller/resourcequota`). Each kind that the stack defines therefore has its
    own quota, and the stack waits for it.
    """
    own = {OWN: str(MOST_JOBS)} if bounds.room else {}
    waited = [
        resource_quota(
            kind.partition(".")[0],
            namespace,
            _jobs([kind], bounds.room),
            annotations={**_COUNTED, **(own if kind == POD_GROUPS else {})},
        )
        for kind in defined
    ]
    others = [kind for kind in SUBMITTED if kind not in defined]
    return [*waited, resource_quota("other-jobs", namespace, _jobs(others))]


def limit_range(namespace: pulumi.Input[str], disk: Quantity = DISK) -> Document:
    """Return the LimitRange with defaults for containers that name neither request nor limit.

    Kueue v0.19.2 prefers a default request to a container's own limit (`pkg/workload/resources.go`). The API server
    takes the limit as the request. An admission policy therefore rejects jobs that name limits alone. The limit of
    memory equals its request, because nodes have only the memory that quotas count. CPU needs no limit: each container
    gets CPU in proportion to its request. Disk has a limit and no request, because few jobs fill it, and those can
    request it.
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
        "services": _count(bounds.services + bounds.room),
        "services.loadbalancers": _count(bounds.load_balancers),
        "persistentvolumeclaims": _count(bounds.claims),
        "requests.storage": str(bounds.storage),
        "configmaps": _count(FILES),
        "secrets": _count(FILES),
        "count/pods": _count(PODS),
    }
    if not (bounds.node_ports or bounds.load_balancers):  # each load balancer also opens ports of the nodes
        hard["services.nodeports"] = "0"
    return hard


def _jobs(kinds: Sequence[str], room: int = 0) -> dict[str, str]:
    most = {job_kinds.TRAIN_JOB.resource: MOST_TRAIN_JOBS, POD_GROUPS: MOST_JOBS + room}
    return {f"count/{kind}": _count(most.get(kind, MOST_JOBS)) for kind in kinds}


def _count(number: int) -> str:
    return str(Quantity.parse(number))
