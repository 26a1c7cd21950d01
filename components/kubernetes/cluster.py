"""The contract between a target and the layers: the properties of a cluster."""

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
    """Names of storage classes by purpose. None if the cluster has no class for it.

    block: a volume of one pod.
    files: folders that many pods write, such as notebooks.
    logs: folders that many pods write as several users, such as logs of training jobs and their viewers.
    shared: how many nodes can mount `files` and `logs`. It is one node if the cluster has no other class.
    """

    block: str | None = None
    files: str | None = None
    logs: str | None = None
    shared: AccessMode = AccessMode.MANY_NODES


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster of any vendor that layers are installed on.

    provider: the provider of all Kubernetes objects. Layers never use a default provider.
    pools: its GPU nodes by shape and price, in the order that queues try them.
    placement: where pods run.
    fabric: the network devices that pods with whole GPU nodes request.
    gpu_resource: resource name for GPUs.
    storage: its storage classes by purpose.
    registry: registry of the site's own images. None without one.
    pod_security: the mechanism that decides which pods may be privileged.
    has_admission_policies: it has ValidatingAdmissionPolicy (Kubernetes 1.30 or later).
    default_priority: the cluster's own default priority class. None if the platform's class may be the default.
    kueue_api: the API version of Kueue's objects that the cluster's Kueue stores.
    load_balancer: annotations of a Service that make its load balancer internal. None if the cluster has no internal
    load balancers.
    made_by: the resource of the cluster. Its deletion or replacement applies to everything installed, and its provider
    must be replaced with it. None if the cluster outlives the stack.
    kept: the cluster and its contents remain on a disk when the stack is destroyed, but the connection to it is
    deleted. Objects are deleted one by one only while their provider remains, for example when a layer is disabled.
    data_password: password for data that layers keep on that disk, as durable as the disk. None if each layer creates
    its own.
    ready: resources to wait for before anything is installed.
    gpus_ready: resources to wait for before a pod runs on a GPU node.
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
        """The first pool. The stack's own checks and jobs run on it."""
        return self.pools[0]

    def options(self, *needs: pulumi.Resource, gpus: bool = False) -> pulumi.ResourceOptions:
        """Return the options of a layer on this cluster.

        needs: resources or layers that must exist first. A layer counts as existing when its `ready` resources do.
        gpus: the layer runs pods on GPU nodes.
        """
        waited = [*self.ready, *(self.gpus_ready if gpus else ()), *needs]
        options = pulumi.ResourceOptions(providers=[self.provider], depends_on=needed(waited))
        if self.made_by is None:
            gone = pulumi.ResourceOptions(deleted_with=self.provider) if self.kept else None
            return pulumi.ResourceOptions.merge(options, gone)
        # When a resource is replaced, the engine deletes the objects on it first, in any order. A controller could lose
        # its rights before it removes its finalizers. With `deleted_with` the provider, the engine does not delete the
        # objects.
        return standing_on(self.made_by, options, gone_with=self.provider)
