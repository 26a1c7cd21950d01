"""Quotas, and the ClusterQueues that carry them. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pulumi

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.quantity import Quantity
from components.tenancy.lending import DECLARED

Quota: TypeAlias = Mapping[str, Quantity]
"""Amounts by resource name. A quota names each of the platform's resources; a limit names those that it limits."""


@dataclass(frozen=True, kw_only=True)
class FlavorQuota:
    """What a queue has of a flavor.

    quota: its own. borrowing_limit, lending_limit: most that it borrows beyond, and that others borrow from it; a
    resource left out has no limit.
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
    api: str = names.KUEUE_API,
) -> Document:
    """Return a ClusterQueue with MLBatch's policies.

    An owner takes back at once what others borrowed (reclaimWithinCohort Any); within the queue, higher priority or
    older submission wins; a borrower never preempts another team's lower priority. Sources: MLBatch TEAM-SETUP.md;
    Kueue `apis/kueue/v1beta2/clusterqueue_types.go`.

    flavors: in the order in which Kueue tries them.
    namespaces: selects those whose jobs it admits. An empty selector admits all of them; None admits none.
    covered: the resources that it has; a job that asks for another is never admitted, but for pods, which are then not
    counted. gpu_resource: as which nodes offer GPUs, the name of their amount in the queue. api: Kueue's API version.
    usage_based: of the jobs that wait, those of the LocalQueue that has used least lately go first. No job preempts
    another one of the queue then: a light user's job that is preempted would go first again, and be preempted again.

    Lending limits stand in an annotation too, by which the slack controller knows what to go back to after a loss.
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
            **({"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}} if usage_based else {}),
            "resourceGroups": [
                {
                    "coveredResources": [offered(resource, gpu_resource) for resource in covered],
                    "flavors": [
                        {"name": each.flavor, "resources": _resources(each, covered, gpu_resource)} for each in flavors
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
    """Return the name under which nodes offer a resource. gpu_resource: that of GPUs."""
    return gpu_resource if resource == names.GPU else resource


def _limit(key: str, limits: Quota, resource: str) -> Mapping[str, Any]:
    return {key: str(limits[resource])} if resource in limits else {}
