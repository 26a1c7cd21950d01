"""The contract between a target and the layers above it: what a cluster is to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes

from components import names
from components.kubernetes.fabric import NO_RDMA, Fabric
from components.kubernetes.node_pool import NodePool
from components.kubernetes.placement import Placement
from components.kubernetes.security import PodSecurity
from components.kubernetes.volumes import AccessMode
from components.layer import needed, standing_on


@dataclass(frozen=True, kw_only=True)
class StorageClasses:
    """Names of storage classes by purpose; None where the cluster has none for it.

    block: a volume of one pod. files: folders that many pods write, such as notebooks. logs: folders that many pods
    write under several users, as training jobs and the viewers of their logs do. shared: from how many nodes the last
    two are mounted, one where there is no other.
    """

    block: str | None = None
    files: str | None = None
    logs: str | None = None
    shared: AccessMode = AccessMode.MANY_NODES


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster that layers can be installed on, whatever its brand.

    provider: the one provider of every Kubernetes object; layers never use an ambient one.
    pools: its GPU nodes by shape and price, in the order in which queues try them. placement: where pods run.
    fabric: what pods that take whole GPU nodes ask of the network. gpu_resource: as which they ask for GPUs.
    storage: its classes by purpose. registry: where the site's own images are pulled from; None without one.
    pod_security: what decides which pods may be privileged.
    has_admission_policies: it knows ValidatingAdmissionPolicy (Kubernetes 1.30 or later).
    default_priority: the priority class of its own that pods get which name none; None where the platform's may be it.
    kueue_api: the API version of Kueue's objects that the cluster's Kueue stores.
    load_balancer: annotations of a Service that make its load balancer an internal one; None where the cluster offers
        no such load balancer.
    made_by: the resource that is the cluster, with which all that is installed goes, and is replaced; its provider has
        to be replaced with it. None where the cluster outlives the stack.
    kept: the stack takes the way to the cluster down with itself, and the cluster stays with all that is in it, on a
        disk. What is installed is deleted one by one only while its provider stays, as when a layer is switched off.
    data_password: of what layers keep on that disk, as durable as the disk. None where each makes its own.
    ready: before anything is installed. gpus_ready: before a pod is to run on a GPU node.
    """

    provider: kubernetes.Provider
    pools: Sequence[NodePool]
    placement: Placement
    fabric: Fabric = NO_RDMA
    gpu_resource: str = names.GPU
    storage: StorageClasses = StorageClasses()
    registry: pulumi.Input[str] | None = None
    pod_security: PodSecurity = PodSecurity.STANDARDS
    has_admission_policies: bool = True
    default_priority: str | None = None
    kueue_api: str = names.KUEUE_API
    load_balancer: Mapping[str, str] | None = None
    made_by: pulumi.Resource | None = None
    kept: bool = False
    data_password: pulumi.Output[str] | None = None
    ready: Sequence[pulumi.Resource] = ()
    gpus_ready: Sequence[pulumi.Resource] = ()

    @property
    def pool(self) -> NodePool:
        """The first pool, on which the stack's own checks and jobs run."""
        return self.pools[0]

    def options(self, *needs: pulumi.Resource, gpus: bool = False) -> pulumi.ResourceOptions:
        """Return the options of a layer on this cluster.

        needs: what has to stand first; a layer stands for what it calls ready. gpus: it runs pods on GPU nodes.
        """
        waited = [*self.ready, *(self.gpus_ready if gpus else ()), *needs]
        options = pulumi.ResourceOptions(providers=[self.provider], depends_on=needed(waited))
        if self.made_by is None:
            gone = pulumi.ResourceOptions(deleted_with=self.provider) if self.kept else None
            return pulumi.ResourceOptions.merge(options, gone)
        # Of what is replaced with a resource, the engine deletes each object first, in no order: a controller's rights
        # before what it has to let go. It asks for no deletion of what is deleted with one of them, the provider.
        return standing_on(self.made_by, options, gone_with=self.provider)
