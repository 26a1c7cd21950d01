"""Build quotas and the ClusterQueues that contain them. Pure functions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

import pulumi

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.quantity import Quantity
from components.tenancy.lending import DECLARED

Quota: TypeAlias = Mapping[str, Quantity]
"""Amounts by resource name. A quota has all resources of the platform. A limit has only the resources that it limits.
"""


UNLIMITED: Final = "1P"
"""More than the nodes of any cluster have. Kueue adds up the quotas of a cohort in 64 bits."""


class StopPolicy(StrEnum):
    """Whether a queue starts jobs (Kueue, `apis/kueue/v1beta2/clusterqueue_types.go`, StopPolicy).

    Hold: it starts no jobs, and its running jobs continue.
    HoldAndDrain: it also suspends its running jobs, each as a whole.
    """

    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


@dataclass(frozen=True, kw_only=True)
class FlavorQuota:
    """A queue's quota of a flavor. A resource that a limit omits is unlimited.

    quota: the nominal quota.
    borrowing_limit: the most that the queue borrows beyond its quota.
    lending_limit: the most that other queues borrow from it.
    """

    flavor: pulumi.Input[str]
    quota: Quota
    borrowing_limit: Quota = field(default_factory=dict)
    lending_limit: Quota = field(default_factory=dict)


def cluster_queue(
    name: str,
    *,
    flavors: Sequence[FlavorQuota],
    cohort: str,
    namespaces: Mapping[str, Any] | None,
    covered: Sequence[str] = names.RESOURCES,
    gpu_resource: str = names.GPU,
    usage_based: bool = False,
    stop_policy: StopPolicy = StopPolicy.NONE,
    unlimited: Sequence[str] = (),
    api: str = names.KUEUE_API,
) -> Document:
    """Return a ClusterQueue with MLBatch's policies.

    An owner reclaims borrowed quota at once (reclaimWithinCohort Any). In the queue, a job with higher priority goes
    first, then the oldest. A borrower never preempts jobs of another team that have lower priority. Sources: MLBatch
    TEAM-SETUP.md; Kueue `apis/kueue/v1beta2/clusterqueue_types.go`.

    flavors: in the order that Kueue tries them.
    namespaces: selector of the namespaces whose jobs the queue admits. An empty selector admits all, None admits none.
    covered: resources of the queue. A job that requests another resource is never admitted. The exception is pods,
    which are then not counted.
    gpu_resource: resource name of GPUs on the nodes and in the queue.
    usage_based: admit first the pending jobs of the LocalQueue with the least recent use. Jobs of the queue then do not
    preempt each other. A preempted job of a light user would go first again, and be preempted again.
    unlimited: further resources of the queue, with a quota that no job exceeds.
    api: Kueue's API version.

    An annotation repeats the lending limits, so that the slack controller can restore them after a loss of nodes.
    """
    declared = [
        {offered(name, gpu_resource): str(each.lending_limit[name]) for name in covered if name in each.lending_limit}
        for each in flavors
    ]
    noted = json.dumps(declared if len(declared) > 1 else declared[0])
    annotations = {"annotations": {DECLARED: noted}} if any(declared) else {}
    return {
        "apiVersion": api,
        "kind": "ClusterQueue",
        "metadata": {"name": name, **annotations},
        "spec": {
            "cohort" if api == names.KUEUE_API_BEFORE else "cohortName": cohort,
            **({"namespaceSelector": dict(namespaces)} if namespaces is not None else {}),
            "preemption": {
                "withinClusterQueue": "Never" if usage_based else "LowerOrNewerEqualPriority",
                "reclaimWithinCohort": "Any",
                "borrowWithinCohort": {"policy": "Never"},
            },
            **({"stopPolicy": str(stop_policy)} if stop_policy is not StopPolicy.NONE else {}),
            **({"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}} if usage_based else {}),
            "resourceGroups": [
                {
                    "coveredResources": [*(offered(resource, gpu_resource) for resource in covered), *unlimited],
                    "flavors": [
                        {
                            "name": each.flavor,
                            "resources": [
                                *_resources(each, covered, gpu_resource),
                                *({"name": resource, "nominalQuota": UNLIMITED} for resource in unlimited),
                            ],
                        }
                        for each in flavors
                    ],
                }
            ],
        },
    }


def _resources(each: FlavorQuota, covered: Sequence[str], gpu_resource: str) -> list[Document]:
    return [
        {
            "name": offered(resource, gpu_resource),
            "nominalQuota": str(each.quota[resource]),
            **_limit("borrowingLimit", each.borrowing_limit, resource),
            **_limit("lendingLimit", each.lending_limit, resource),
        }
        for resource in covered
    ]


def offered(resource: str, gpu_resource: str) -> str:
    """Return the name under which nodes offer a resource. gpu_resource: the name for GPUs."""
    return gpu_resource if resource == names.GPU else resource


def _limit(key: str, limits: Quota, resource: str) -> Mapping[str, Any]:
    return {key: str(limits[resource])} if resource in limits else {}
