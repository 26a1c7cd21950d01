"""In-place changes of a cluster's system pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi_azure_native import resources

from components.azure.scope import ResourceScope
from components.layer import Layer

_API_VERSION: Final = "2025-09-01"
"""The version of pulumi-azure-native's own pools."""


@dataclass(frozen=True, kw_only=True)
class SystemPool:
    """The nodes for the cluster's own pods and the platform's controllers.

    kubernetes_version: the cluster's.
    os_disk_gib: size in GiB.
    zones: the nodes are spread over them. Empty for any zone.
    ssh_access: LocalUser or Disabled.
    """

    name: str = "system"
    kubernetes_version: str
    count: int = 2
    vm_size: str
    os_disk_gib: int = 128
    os_sku: str
    zones: tuple[str, ...] = ()
    ssh_access: str = "LocalUser"

    def properties(self, subnet_id: pulumi.Input[str]) -> Mapping[str, Any]:
        """Return the pool's properties, with the names of AKS's API."""
        return {
            "mode": "System",
            "type": "VirtualMachineScaleSets",
            # AKS accepts a cluster only if all or none of its pools name their version, and GPU pools name theirs.
            "orchestratorVersion": self.kubernetes_version,
            "count": self.count,
            "vmSize": self.vm_size,
            "osType": "Linux",
            "osSKU": self.os_sku,
            "osDiskSizeGB": self.os_disk_gib,
            **({"availabilityZones": list(self.zones)} if self.zones else {}),
            "vnetSubnetID": subnet_id,
            "securityProfile": {"sshAccess": self.ssh_access},
        }


class SystemPoolError(pulumi.RunError):
    """The settings ask for a system pool that AKS can make only as a new one. The user has to act."""


@dataclass(frozen=True, kw_only=True)
class SystemPoolUpdatesArgs:
    """The arguments of the updates. found: the cluster's pools as Azure reports them."""

    cluster: str
    scope: ResourceScope
    subnet_id: pulumi.Input[str]
    pool: SystemPool
    found: pulumi.Output[Sequence[Any] | None]


class SystemPoolUpdates(Layer):
    """Change the system pool of a cluster in place: its Kubernetes version, node count, operating system, SSH access.

    A cluster is created with this pool, and the provider's resource for pools refuses to create an existing one. So a
    template sends it, after the control plane's update, as AKS requires. Its first deployment does not change the pool.
    For another name it creates a second pool.

    It raises SystemPoolError for changes that AKS cannot make in an existing pool. It warns of a second system pool,
    and a preview warns if somebody changed the number of nodes.
    """

    ready: Sequence[pulumi.Resource]
    """Depend on these to upgrade other pools after this one."""

    def __init__(self, name: str, args: SystemPoolUpdatesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:SystemPoolUpdates", name, None, opts)
        deployment = resources.Deployment(
            f"{args.cluster}-{args.pool.name}",
            deployment_name=f"{args.cluster}-{args.pool.name}",
            resource_group_name=args.scope.resource_group,
            properties=resources.DeploymentPropertiesArgs(
                mode=resources.DeploymentMode.INCREMENTAL, template=template(args.cluster, args.pool, args.subnet_id)
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        if pulumi.runtime.is_dry_run():
            # The deployment's outputs are known only if this update does not change the pool.
            args.found.apply(lambda pools: deployment.properties.apply(lambda _: self._warn(args, pools)))
        self.ready = [deployment]
        self.register_outputs({"pool": args.found.apply(lambda pools: _checked(args, pools))})

    def _warn(self, args: SystemPoolUpdatesArgs, pools: Sequence[Any] | None) -> None:
        pool, where = args.pool, _where(args)
        for found in pools or ():
            if found.name == pool.name and found.count != pool.count:
                pulumi.log.warn(
                    f"the system pool {pool.name} has {found.count} nodes, the settings say {pool.count}. To restore "
                    f"the number, run `az aks nodepool scale {where} --name {pool.name} --node-count {pool.count}`",
                    self,
                )
            if found.name != pool.name and found.mode == "System":
                pulumi.log.warn(
                    f"the cluster has a second system pool, {found.name}. If it is the old one, remove it with "
                    f"`az aks nodepool delete {where} --name {found.name}`",
                    self,
                )


def template(cluster: str, pool: SystemPool, subnet_id: pulumi.Input[str]) -> dict[str, Any]:
    """Return the template that updates the pool."""
    return {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "resources": [
            {
                "type": "Microsoft.ContainerService/managedClusters/agentPools",
                "apiVersion": _API_VERSION,
                "name": f"{cluster}/{pool.name}",
                "properties": pool.properties(subnet_id),
            }
        ],
    }


def _checked(args: SystemPoolUpdatesArgs, pools: Sequence[Any] | None) -> str:
    """Return the pool's name. Raises SystemPoolError if the existing pool cannot become the declared one."""
    pool, key = args.pool, "mlbatch:azure.systemPool"
    for found in [each for each in pools or () if each.name == pool.name]:
        for name, now, wanted in (
            ("vmSize", found.vm_size, pool.vm_size),
            ("osDiskGib", found.os_disk_size_gb, pool.os_disk_gib),
            ("zones", list(found.availability_zones or ()), list(pool.zones)),
        ):
            if now != wanted:
                raise SystemPoolError(
                    f"{key}.{name} is {wanted}, but the pool {pool.name} has {now}, and AKS cannot change this in an "
                    f"existing pool. Also set {key}.name to a new name: the update then creates the new pool. After "
                    f"it, remove the old one with `az aks nodepool delete {_where(args)} --name {pool.name}`"
                )
    return pool.name


def _where(args: SystemPoolUpdatesArgs) -> str:
    return f"--resource-group {args.scope.resource_group} --cluster-name {args.cluster}"
