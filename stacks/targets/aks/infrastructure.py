"""Creates the Azure resources of target `aks`, in the order of their dependencies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.azure.aks import infiniband_deployment, namespace_identity, workspace_name
from components.azure.blob_storage import BlobStorage, BlobStorageArgs, Grant
from components.azure.cluster import AksCluster, AksClusterArgs, ApiServer, PodNetwork
from components.azure.cluster_users import ClusterUsers, ClusterUsersArgs
from components.azure.credentials import Credentials, CredentialsArgs
from components.azure.diagnostics import Diagnostics, DiagnosticsArgs
from components.azure.feature import InfinibandFeature, InfinibandFeatureArgs
from components.azure.gpu_pool import Autoscale, GpuPool, GpuPoolArgs
from components.azure.identity import ClusterIdentities, ClusterIdentitiesArgs
from components.azure.maintenance import MaintenanceWindows, MaintenanceWindowsArgs, Window, maintenance_windows
from components.azure.network import Network, NetworkArgs
from components.azure.provider import azure_provider
from components.azure.proximity import ProximityGroup, ProximityGroupArgs
from components.azure.registry import Registry, RegistryArgs, RegistryPull, RegistryPullArgs
from components.azure.resource_group import ResourceGroup, ResourceGroupArgs
from components.azure.scope import ResourceScope
from components.azure.system_pool import SystemPool, SystemPoolUpdates, SystemPoolUpdatesArgs
from components.azure.workload_identity import WorkloadIdentity, WorkloadIdentityArgs
from components.layer import standing_on
from components.nodes.nvme_scratch import POOL_LABEL
from stacks.settings.workloads import WorkloadsSettings
from stacks.targets.aks.settings import AksSettings
from stacks.targets.aks.settings.azure import AzureSettings
from stacks.targets.aks.settings.options import GpuPoolSettings
from stacks.targets.aks.settings.storage import VolumeSettings
from stacks.targets.aks.settings.values import GUID

_NODES: Final = ""
"""Key of the nodes, among keys that are namespaces."""


@dataclass(frozen=True, kw_only=True)
class Infrastructure:
    """Azure resources that the layers in the cluster need.

    cluster: the managed cluster. identifier: independent of the cluster's address.
    kubeconfig: secret. ready: before anything runs in the cluster. pool: before anything runs on GPU nodes.
    registry: where the site's own images are pulled from. kubelet_client: client id of the nodes' identity.
    identities: of namespaces, by namespace, for volumes that are mounted with them.
    account: the storage account's name, None without one. storage: before anything mounts its containers.
    """

    cluster: pulumi.Resource
    identifier: str
    kubeconfig: pulumi.Output[str]
    ready: Sequence[pulumi.Resource]
    pool: Sequence[pulumi.Resource]
    registry: str
    kubelet_client: pulumi.Input[str]
    identities: Mapping[str, WorkloadIdentity]
    account: str | None
    storage: Sequence[pulumi.Resource]


def create(settings: AksSettings) -> Infrastructure:
    """Register the Azure resources. The cluster and resources with data are protected unless the settings disable it.

    The stack's volumes determine the containers, and the rights on them.
    """
    azure = settings.azure
    subscription = azure_provider("azure", subscription=azure.subscription_id, location=azure.location)
    scope = ResourceScope(resource_group=azure.resource_group, location=azure.location, tags=azure.tags)

    def within(*needs: pulumi.Input[pulumi.Resource], kept: bool = False) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(
            providers=[subscription], depends_on=list(needs), protect=azure.protect if kept else None
        )

    feature = _feature(azure, within())
    group = ResourceGroup("group", ResourceGroupArgs(scope=scope), within(kept=True))
    network = Network(
        "network",
        NetworkArgs(
            name=azure.cluster_name,
            scope=scope,
            cidr=azure.network.vnet_cidr,
            node_cidr=azure.network.node_cidr,
        ),
        within(*group.ready),
    )
    registry = Registry(
        "registry",
        RegistryArgs(
            name=azure.registry.name,
            scope=scope,
            sku=azure.registry.sku,
            admin_user=azure.registry.admin_user,
        ),
        within(*group.ready, kept=True),
    )
    identities = ClusterIdentities(
        "identities",
        ClusterIdentitiesArgs(
            control_plane=f"{azure.cluster_name}-cluster",
            kubelets=f"{azure.cluster_name}-nodes",
            scope=scope,
            subnet_id=network.subnet_id,
        ),
        within(*group.ready),
    )
    cluster = AksCluster(
        "cluster",
        _cluster(azure, scope, identities, network),
        within(*identities.ready, identities.arrived, *feature, kept=True),
    )
    pull = RegistryPull(
        "pull",
        RegistryPullArgs(name=azure.registry.name, registry_id=registry.id, puller=identities.kubelets.principal),
        within(),
    )
    on_cluster = standing_on(cluster.ready[0], within(*cluster.ready, *feature))
    system = SystemPoolUpdates(
        "system-pool",
        SystemPoolUpdatesArgs(
            cluster=azure.cluster_name,
            scope=scope,
            subnet_id=network.subnet_id,
            pool=_system_pool(azure),
            found=cluster.pools,
        ),
        on_cluster,
    )
    after_system = standing_on(cluster.ready[0], within(*cluster.ready, *feature, *system.ready))
    pools = [
        _gpu_pool(azure, scope, network, within, after_system, group.ready, pool) for pool in azure.gpu_pools.values()
    ]
    groups = {group.lower() for team in settings.teams for group in team.groups if GUID.fullmatch(group)}
    if groups:
        users = ClusterUsersArgs(cluster=azure.cluster_name, group_id=group.id, groups=sorted(groups))
        ClusterUsers("users", users, on_cluster)
    MaintenanceWindows("maintenance", _maintenance(azure, scope), on_cluster)
    if azure.diagnostics.enabled:
        Diagnostics("diagnostics", _diagnostics(azure, scope, group, cluster), within(*cluster.ready))
    namespaces = _workload_identities(settings, scope, cluster, within(*group.ready))
    mounted = [volume for volume in settings.storage.volumes if volume.account is None]
    grants = _grants(mounted, settings.workloads, identities, namespaces)
    storage = _storage(azure, scope, network, mounted, grants, within(*group.ready, kept=True))
    credentials = Credentials(
        "credentials",
        CredentialsArgs(cluster=azure.cluster_name, scope=scope, login=azure.access.login, after=cluster.ready),
        within(),
    )
    return Infrastructure(
        cluster=cluster.ready[0],
        identifier=f"{azure.resource_group}/{azure.cluster_name}",
        kubeconfig=credentials.kubeconfig,
        ready=[*cluster.ready, *pull.ready],
        pool=[node for pool in pools for node in pool.ready],
        registry=registry.server,
        kubelet_client=identities.kubelets.client,
        identities=namespaces,
        account=azure.storage.account if azure.storage else None,
        storage=storage,
    )


def _feature(azure: AzureSettings, options: pulumi.ResourceOptions) -> list[pulumi.Input[pulumi.Resource]]:
    if not azure.registers_feature:
        return []
    args = InfinibandFeatureArgs(
        deployment=infiniband_deployment(azure.cluster_name),
        location=azure.location,
        timeout_seconds=azure.feature.timeout_seconds,
    )
    return [InfinibandFeature("infiniband", args, options).registered]


def _cluster(
    azure: AzureSettings, scope: ResourceScope, identities: ClusterIdentities, network: Network
) -> AksClusterArgs:
    return AksClusterArgs(
        name=azure.cluster_name,
        scope=scope,
        node_resource_group=azure.nodes_group,
        kubernetes_version=azure.kubernetes_version,
        support_plan=azure.support_plan,
        tier=azure.tier,
        admin_user=azure.admin_user,
        ssh_public_key=azure.ssh_public_key,
        identity_id=identities.id,
        identity_principal=identities.principal,
        kubelets=identities.kubelets,
        subnet_id=network.subnet_id,
        system_pool=_system_pool(azure),
        pod_network=PodNetwork(
            pod_cidr=azure.network.pod_cidr,
            service_cidr=azure.network.service_cidr,
            policy=azure.network.policy,
        ),
        api_server=ApiServer(
            authorized_ranges=azure.api_server.authorized_ranges,
            private=azure.api_server.private,
            run_command=azure.api_server.run_command,
        ),
        local_accounts=azure.access.local_accounts,
        admin_groups=azure.access.admin_groups,
        upgrade_channel=azure.upgrades.kubernetes,
        node_os_channel=azure.upgrades.node_os,
    )


def _system_pool(azure: AzureSettings) -> SystemPool:
    system = azure.system_pool
    return SystemPool(
        name=system.name,
        kubernetes_version=azure.kubernetes_version,
        count=system.count,
        vm_size=system.vm_size,
        os_disk_gib=system.os_disk_gib,
        os_sku=azure.os_sku,
        zones=system.zones,
        ssh_access=azure.ssh_access,
    )


def _maintenance(azure: AzureSettings, scope: ResourceScope) -> MaintenanceWindowsArgs:
    upgrades = azure.upgrades
    return MaintenanceWindowsArgs(
        cluster=azure.cluster_name,
        scope=scope,
        names=maintenance_windows(upgrades.kubernetes, upgrades.node_os),
        window=Window(
            day=upgrades.window.day,
            start=upgrades.window.start,
            hours=upgrades.window.hours,
            weeks=upgrades.window.every_weeks,
            utc_offset=upgrades.window.utc_offset,
        ),
    )


def _diagnostics(
    azure: AzureSettings, scope: ResourceScope, group: ResourceGroup, cluster: AksCluster
) -> DiagnosticsArgs:
    wanted, kind = azure.diagnostics, "/providers/Microsoft.ContainerService/managedClusters/"
    return DiagnosticsArgs(
        cluster=cluster.ready[0],
        # Not the cluster's own output, which a preview does not know after a change of the cluster.
        cluster_id=pulumi.Output.concat(group.id, kind, azure.cluster_name),
        scope=scope,
        categories=list(dict.fromkeys(wanted.categories)),
        workspace=wanted.workspace_id,
        name=workspace_name(azure.cluster_name),
        retention_days=wanted.retention_days,
    )


def _gpu_pool(
    azure: AzureSettings,
    scope: ResourceScope,
    network: Network,
    within: Any,
    on_cluster: pulumi.ResourceOptions,
    group: Sequence[pulumi.Resource],
    pool: GpuPoolSettings,
) -> GpuPool:
    is_first, placement = pool is azure.gpu_pool, None
    if pool.proximity_placement_group:
        placement_args = ProximityGroupArgs(
            name=f"{azure.cluster_name}-{pool.name}",
            scope=scope,
            vm_size=pool.vm_size,
            zone=pool.zones[0] if len(pool.zones) == 1 else None,
        )
        placement = ProximityGroup(
            "placement" if is_first else f"placement-{pool.name}", placement_args, within(*group)
        )
    return GpuPool(
        "gpus" if is_first else f"gpus-{pool.name}",
        GpuPoolArgs(
            name=pool.name,
            cluster=azure.cluster_name,
            scope=scope,
            kubernetes_version=azure.kubernetes_version,
            vm_size=pool.vm_size,
            count=pool.count,
            autoscale=Autoscale(min=pool.autoscale.min, max=pool.autoscale.max) if pool.autoscale else None,
            os_disk_gib=pool.os_disk_gib,
            os_sku=azure.os_sku,
            ssh_access=azure.ssh_access,
            subnet_id=network.subnet_id,
            zones=pool.zones,
            placement_id=placement.id if placement else None,
            reservation_id=pool.capacity_reservation_group_id,
            max_pods=pool.max_pods,
            taint=pool.taint,
            spot=pool.is_spot,
            labels=POOL_LABEL,
            retired_tag=pool.skip_gpu_driver_install_tag,
            drain_timeout_minutes=azure.upgrades.drain_timeout_minutes,
            soak_minutes=azure.upgrades.soak_minutes,
        ),
        on_cluster,
    )


def _workload_identities(
    settings: AksSettings, scope: ResourceScope, cluster: AksCluster, options: pulumi.ResourceOptions
) -> Mapping[str, WorkloadIdentity]:
    """Register an identity for each namespace with a volume that uses workload identity."""
    volumes, workloads = settings.storage.volumes, settings.workloads
    wanted = dict.fromkeys(volume.home(workloads) for volume in volumes if volume.uses_namespace)
    return {
        namespace: WorkloadIdentity(
            f"identity-{namespace}",
            WorkloadIdentityArgs(
                name=namespace_identity(settings.azure.cluster_name, namespace),
                scope=scope,
                issuer=cluster.oidc_issuer,
                namespace=namespace,
            ),
            options,
        )
        for namespace in wanted
    }


def _grants(
    mounted: Sequence[VolumeSettings],
    workloads: WorkloadsSettings,
    identities: ClusterIdentities,
    namespaces: Mapping[str, WorkloadIdentity],
) -> list[Grant]:
    """Return the grants of each identity on the containers of the stack's own account."""
    writes: dict[tuple[str, str], bool] = {}
    for volume in mounted:
        if not volume.uses_token:
            who = volume.home(workloads) if volume.uses_namespace else _NODES
            writes[volume.container, who] = writes.get((volume.container, who), False) or not volume.read_only
    principals = {_NODES: identities.kubelets.principal, **{name: one.principal for name, one in namespaces.items()}}
    return [
        Grant(name=f"in-{who}" if who else "nodes", container=container, principal=principals[who], writes=may_write)
        for (container, who), may_write in writes.items()
    ]


def _storage(
    azure: AzureSettings,
    scope: ResourceScope,
    network: Network,
    mounted: Sequence[VolumeSettings],
    grants: Sequence[Grant],
    options: pulumi.ResourceOptions,
) -> Sequence[pulumi.Resource]:
    """Register the storage account with the containers that volumes name."""
    if azure.storage is None:
        return []
    args = BlobStorageArgs(
        account=azure.storage.account,
        container=azure.storage.container,
        more_containers=list(dict.fromkeys(volume.container for volume in mounted)),
        scope=scope,
        sku=azure.storage.sku,
        subnet_id=network.subnet_id,
        allowed_ranges=azure.storage.allowed_ranges,
        shared_key=azure.storage.shared_key,
        grants=grants,
    )
    return BlobStorage("data", args, options).ready
