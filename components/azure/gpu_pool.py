"""The pool of GPU nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pulumi
from pulumi_azure_native import containerservice

from components.azure.aks import RETIRED_TAG, SPOT_TAINT
from components.azure.scope import ResourceScope
from components.kubernetes.node_pool import GPU_TAINT
from components.layer import Layer

FIXED: Final = (
    "availabilityZones",
    "capacityReservationGroupID",
    "gpuProfile",
    "maxPods",
    "osDiskSizeGB",
    "proximityPlacementGroupID",
    "scaleSetEvictionPolicy",
    "scaleSetPriority",
    "spotMaxPrice",
    "vmSize",
    "vnetSubnetID",
)
"""Inputs that AKS cannot change in an existing pool. Of these, the provider replaces a pool only for its size
(pulumi/pulumi-azure-native, provider/pkg/gen/replacement.go). Changes of the others would fail during the update."""


@dataclass(frozen=True, kw_only=True)
class Autoscale:
    """Smallest and largest number of nodes for the cluster's autoscaler."""

    min: int
    max: int


@dataclass(frozen=True, kw_only=True)
class GpuPoolArgs:
    """The arguments of a pool of GPU nodes.

    kubernetes_version: the cluster's.
    count: number of nodes. With autoscale it applies only at creation.
    taint: the nodes have `nvidia.com/gpu=present:NoSchedule`, so that only pods that request GPUs run there.
    ssh_access: LocalUser or Disabled.
    spot: machines that Azure can reclaim. They have no settings for how many an upgrade takes at a time.
    placement_id: proximity placement group.
    reservation_id: capacity reservation group. AKS changes it only with a preview API.
    max_pods: limit for each node.
    labels: labels of the nodes besides AKS's.
    retired_tag: also set SkipGPUDriverInstall for clouds that still need it. Today AKS rejects or ignores it.
    drain_timeout_minutes: how long an upgrade waits for a node's pods to end.
    soak_minutes: how long it then waits before it installs the new image.
    """

    name: str
    cluster: str
    scope: ResourceScope
    kubernetes_version: str
    vm_size: str
    count: int
    autoscale: Autoscale | None = None
    os_disk_gib: int = 128
    os_sku: str
    ssh_access: str = "LocalUser"
    subnet_id: pulumi.Input[str]
    zones: tuple[str, ...] = ()
    placement_id: pulumi.Input[str] | None = None
    reservation_id: str | None = None
    max_pods: int = 250
    taint: bool = True
    spot: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    retired_tag: bool = False
    drain_timeout_minutes: int = 30
    soak_minutes: int = 0


class GpuPool(Layer):
    """Create the GPU nodes without a driver. NVIDIA's GPU operator installs it, and two drivers would conflict.

    An upgrade replaces one node after the other without a surge node, because the quota for such machines rarely has
    one to spare. If a node cannot be drained, the upgrade fails, and the node takes pods again. AKS's other behavior,
    Cordon, needs surge nodes (MicrosoftDocs/azure-aks-docs, articles/aks/upgrade-options.md).

    With an autoscaler, the node count is only the initial one. A change that AKS cannot make in a pool replaces it. The
    old pool and its pods are deleted first, because both have the same name and the quota is rarely enough for both.
    """

    def __init__(self, name: str, args: GpuPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:GpuPool", name, None, opts)
        scaling = args.autoscale
        taints = [*([GPU_TAINT] if args.taint else []), *([SPOT_TAINT] if args.spot else [])]
        pool = containerservice.AgentPool(
            args.name,
            agent_pool_name=args.name,
            resource_name_=args.cluster,
            resource_group_name=args.scope.resource_group,
            mode=containerservice.AgentPoolMode.USER,
            type=containerservice.AgentPoolType.VIRTUAL_MACHINE_SCALE_SETS,
            orchestrator_version=args.kubernetes_version,
            vm_size=args.vm_size,
            count=args.count,
            enable_auto_scaling=scaling is not None,
            min_count=scaling.min if scaling else None,
            max_count=scaling.max if scaling else None,
            os_type=containerservice.OSType.LINUX,
            os_sku=args.os_sku,
            os_disk_size_gb=args.os_disk_gib,
            security_profile=containerservice.AgentPoolSecurityProfileArgs(ssh_access=args.ssh_access),
            gpu_profile=containerservice.GPUProfileArgs(driver=containerservice.GPUDriver.NONE),
            node_taints=[taint_text(taint) for taint in taints],
            scale_set_priority=containerservice.ScaleSetPriority.SPOT if args.spot else None,
            scale_set_eviction_policy=containerservice.ScaleSetEvictionPolicy.DELETE if args.spot else None,
            spot_max_price=-1 if args.spot else None,
            # AKS adds this label to spot machines and returns it with the pool's own labels.
            node_labels={**args.labels, **({SPOT_TAINT["key"]: SPOT_TAINT["value"]} if args.spot else {})},
            availability_zones=list(args.zones) or None,
            proximity_placement_group_id=args.placement_id,
            capacity_reservation_group_id=args.reservation_id,
            vnet_subnet_id=args.subnet_id,
            max_pods=args.max_pods,
            upgrade_settings=containerservice.AgentPoolUpgradeSettingsArgs(
                max_surge=None if args.spot else "0",
                max_unavailable=None if args.spot else "1",
                drain_timeout_in_minutes=args.drain_timeout_minutes,
                node_soak_duration_in_minutes=args.soak_minutes or None,
            ),
            tags={**args.scope.tags, **({RETIRED_TAG: "true"} if args.retired_tag else {})},
            opts=pulumi.ResourceOptions(
                parent=self,
                ignore_changes=["count"] if scaling else None,
                replace_on_changes=list(FIXED),
                delete_before_replace=True,
            ),
        )
        self.ready = [pool]
        self.register_outputs({"id": pool.id})


def taint_text(taint: Mapping[str, str]) -> str:
    """Return a taint in AKS's format."""
    return f"{taint['key']}={taint['value']}:{taint['effect']}"
