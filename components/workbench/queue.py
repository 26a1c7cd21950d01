"""The workbench's queue: a flavor that tolerates the GPU nodes' taint, a ClusterQueue and a LocalQueue.

Source: redhat-na-ssa/hobbyist-guide-to-rhoai, configs/09.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.network import NAMESPACE_LABEL
from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.resource_quota import resource_quota

CLUSTER_QUEUE: Final = "cluster-queue"
LOCAL_QUEUE: Final = "local-queue-test"
DEFAULT: Final = {"kueue.x-k8s.io/default-queue": "true"}
"""Annotation that codeflare-sdk uses to find the queue for a Ray cluster. Kueue ignores it."""


@dataclass(frozen=True, kw_only=True)
class QueueArgs:
    """The arguments of the queue.

    amounts: nominal quota of each resource that the queue covers.
    flavor: name of an existing flavor. None creates one with tolerations of the GPU nodes' taints.
    open_to_all: any namespace may use the queue, as in the guide. Otherwise only the workbench's.
    kueue_api: API version of the queues and the flavor.
    """

    namespace: str
    amounts: Mapping[str, str]
    flavor: pulumi.Input[str] | None = None
    tolerations: Sequence[Mapping[str, str]] = field(default_factory=lambda: [GPU_TOLERATION])
    open_to_all: bool = False
    kueue_api: str = names.KUEUE_API


def cluster_queue(args: QueueArgs, flavor: pulumi.Input[str]) -> Document:
    """Return the ClusterQueue. As in the guide, it has no cohort, so it does not lend or borrow."""
    own = {} if args.open_to_all else {"matchLabels": {NAMESPACE_LABEL: args.namespace}}
    return {
        "apiVersion": args.kueue_api,
        "kind": "ClusterQueue",
        "metadata": {"name": CLUSTER_QUEUE},
        "spec": {
            "namespaceSelector": own,
            "resourceGroups": [
                {
                    "coveredResources": list(args.amounts),
                    "flavors": [
                        {
                            "name": flavor,
                            "resources": [
                                {"name": name, "nominalQuota": amount} for name, amount in args.amounts.items()
                            ],
                        }
                    ],
                }
            ],
        },
    }


def bound(args: QueueArgs, namespace: pulumi.Input[str]) -> Document:
    """Return the ResourceQuota that limits the devices of the project's pods to the queue's.

    From 2.19 on, OpenShift AI's Kueue suspends jobs without a queue only in teams' namespaces. Without the quota, a Ray
    cluster or a notebook of the project without a queue would run on teams' GPUs.
    """
    devices = {f"requests.{name}": amount for name, amount in args.amounts.items() if "/" in name}
    return resource_quota("devices", namespace, devices)


def local_queue(args: QueueArgs, namespace: pulumi.Input[str], cluster_queue: pulumi.Input[str]) -> Document:
    """Return the LocalQueue for Ray clusters of codeflare-sdk."""
    return {
        "apiVersion": args.kueue_api,
        "kind": "LocalQueue",
        "metadata": {"name": LOCAL_QUEUE, "namespace": namespace, "annotations": dict(DEFAULT)},
        "spec": {"clusterQueue": cluster_queue},
    }
