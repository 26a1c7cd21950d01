"""Web interfaces of the workloads, reached by port-forward unless the administrator chooses a load balancer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pulumi

from components.kubernetes import objects
from components.kubernetes.manifests import SKIP_AWAIT, Document
from components.kubernetes.objects import metadata
from components.kubernetes.placement import NodeGroup
from components.kubernetes.security import PodSecurity
from components.kubernetes.volumes import AccessMode
from components.kubernetes.workloads import deployment
from components.workloads.pods import WORKLOAD_LABEL

USER: Final = 1000


class Exposure(StrEnum):
    """Networks that can connect to a Service."""

    CLUSTER = "cluster"
    INTERNAL = "internal"
    PUBLIC = "public"


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How a Service is exposed.

    exposure: only in the cluster, by a load balancer in the cluster's network, or by a load balancer with a public
    address. Both load balancers use plain HTTP, so the traffic can be read in transit.
    ranges: CIDR blocks that a load balancer accepts connections from. Required with one.
    internal: annotations that make a load balancer internal. None if the cluster has no internal load balancers.
    """

    exposure: Exposure = Exposure.CLUSTER
    ranges: tuple[str, ...] = ()
    internal: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a load balancer that is open to all, or that the cluster does not offer."""
        if self.exposure is not Exposure.CLUSTER and not self.ranges:
            raise ValueError("a load balancer needs the address ranges that may connect to it")
        if self.exposure is Exposure.INTERNAL and self.internal is None:
            raise ValueError("this cluster offers no internal load balancer")


def service(name: str, namespace: pulumi.Input[str], *, port: int, target: int, reach: Reach) -> Document:
    """Return the Service of an interface.

    A load balancer keeps the client's address (externalTrafficPolicy Local), which the NetworkPolicy allows. Otherwise
    the policy would see the address of a node (kubernetes.io, tutorials/services/source-ip).
    """
    internal = (reach.internal or {}) if reach.exposure is Exposure.INTERNAL else {}
    annotations = {**SKIP_AWAIT, **internal}
    document = objects.service(name, namespace, {WORKLOAD_LABEL: name}, {"http": (port, target)}, annotations)
    document["spec"]["type"] = "ClusterIP"
    if reach.exposure is not Exposure.CLUSTER:
        ranges = list(reach.ranges)
        balancer = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "loadBalancerSourceRanges": ranges}
        document["spec"] |= balancer
    return document


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The volume of a PVC.

    storage_class: supports the access mode. None for the cluster's default.
    size: a canonical quantity.
    access: how many nodes may mount it.
    """

    storage_class: str | None
    size: str
    access: AccessMode = AccessMode.MANY_NODES

    def claim(
        self,
        name: str,
        namespace: pulumi.Input[str],
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Document:
        """Return the PVC.

        The provider does not wait for it, because some storage classes bind it only when a pod uses it.
        """
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata(name, namespace, labels=labels, annotations={**SKIP_AWAIT, **(annotations or {})}),
            "spec": {
                "accessModes": [self.access.value],
                **({"storageClassName": self.storage_class} if self.storage_class is not None else {}),
                "resources": {"requests": {"storage": self.size}},
            },
        }


def user_of(pod_security: PodSecurity, user: int = USER) -> int | None:
    """Return the UID for a pod. None if SecurityContextConstraints assign UIDs to each namespace."""
    return user if pod_security is PodSecurity.STANDARDS else None


def pod_security(user: int | None = USER) -> Document:
    """Return the pod's security context: an unprivileged user whose group owns the volumes.

    user: None if the cluster assigns UIDs to each namespace and rejects others (OpenShift's SCC restricted-v2).
    """
    own = {} if user is None else {"runAsUser": user, "runAsGroup": user, "fsGroup": user}
    return {
        "runAsNonRoot": True,
        **own,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def ray_token(*, signs_in: bool) -> Document:
    """Return whether the head of a Ray cluster gets the token of its service account.

    signs_in: OpenShift AI adds a sign-in to its pod, in front of the dashboard, with its own service account. It reads
    this token, and without it the head never runs (openshift/oauth-proxy, providers/openshift/provider.go).
    """
    return {} if signs_in else {"automountServiceAccountToken": False}


def one_replica(
    name: str,
    namespace: pulumi.Input[str],
    container: Document,
    volumes: Sequence[Document],
    *,
    label: str,
    nodes: NodeGroup,
    user: int | None,
) -> Document:
    """Return a Deployment with one pod.

    It ends before its replacement starts, because only one node at a time can mount its volume.
    label: key of the label that selects its pods. The value is the name.
    user: see `pod_security`.
    """
    pod = {
        **nodes.body(),
        "automountServiceAccountToken": False,
        "securityContext": pod_security(user),
        "containers": [container],
        "volumes": list(volumes),
    }
    return deployment(name, namespace, {label: name}, pod, recreate=True, annotations=SKIP_AWAIT)
