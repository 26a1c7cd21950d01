"""What target `aks` creates in Azure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from components.azure import versions
from components.azure.sizes import GPU_SIZES, MOST_PODS, REGIONS, VmSize
from components.kubernetes.node_pool import NodePool
from stacks.aks.settings import checks, values
from stacks.aks.settings.values import (
    AccountName,
    AdminName,
    Cidr,
    ClusterName,
    ContainerName,
    Guid,
    PoolName,
    RegistryName,
    ResourceGroupName,
    Zones,
)
from stacks.errors import ConfigError, Path
from stacks.settings.limits import MOST_NODES
from stacks.settings.model import SettingsModel, choice

SUPPORT_PLANS: Final = {"official": "KubernetesOfficial", values.LONG_TERM: "AKSLongTermSupport"}
TIERS: Final = ("Free", "Standard", "Premium")
OS_SKUS: Final = tuple(image.os_sku for image in versions.NODE_IMAGES)
REGISTRY_SKUS: Final = ("Basic", "Standard", "Premium")
STORAGE_SKUS: Final = ("Standard_LRS", "Standard_ZRS", "Standard_GRS", "Standard_GZRS", "Standard_RAGRS")
NETWORK_POLICIES: Final = ("cilium", "calico", "none")
LOGINS: Final = ("azurecli", "workloadidentity", "spn", "msi", values.LOCAL)
KUBERNETES_CHANNELS: Final = ("none", "patch", "stable", "rapid")
NODE_OS_CHANNELS: Final = ("NodeImage", "SecurityPatch", "Unmanaged", "None")


class RegistrySettings(SettingsModel):
    """The container registry.

    name: its first part of <name>.azurecr.io. sku: Basic holds 10 GiB, Standard 100 GiB, Premium 500 GiB.
    admin_user: one password, shared by all, that may push and pull. Gives up that pushes can be traced to somebody and
        that a leaver's access ends; nodes pull with their own identity and never need it.
    """

    name: RegistryName
    sku: Annotated[str, choice("registry SKU", REGISTRY_SKUS)] = "Standard"
    admin_user: bool = False


class NetworkSettings(SettingsModel):
    """The addresses.

    vnet_cidr, node_cidr: of the virtual network, and of the nodes' subnet in it (as in edwardsp/ai-on-aks, deploy).
    pod_cidr: of the overlay, from which each node takes a /24. service_cidr: of the Services. Both are AKS' defaults.
    policy: what enforces NetworkPolicies. none: nothing does, and any pod reaches any other.
    """

    vnet_cidr: Cidr = "10.128.0.0/20"
    node_cidr: Cidr = "10.128.4.0/22"
    pod_cidr: Cidr = "10.244.0.0/16"
    service_cidr: Cidr = "10.0.0.0/16"
    policy: Annotated[str, choice("network policy", NETWORK_POLICIES)] = "cilium"


class ApiServerSettings(SettingsModel):
    """Who reaches the API server: exactly one of the first three says so.

    authorized_ranges: public networks, yours and those from which the stack is deployed; AKS adds the nodes'.
    private: an address in the virtual network alone; the stack has to be deployed from there.
    public: everybody. Gives up that a stolen credential is of no use elsewhere, and exposes the API server's own flaws.
    run_command: `az aks command invoke` works. Gives up that the network alone decides: Azure's API then leads past it.
    """

    authorized_ranges: Annotated[tuple[Cidr, ...], AfterValidator(values.ranges)] = ()
    private: bool = False
    public: bool = False
    run_command: bool = False


class AccessSettings(SettingsModel):
    """Who administers the cluster.

    admin_groups: object ids of Entra groups. Whoever deploys the stack has to be in one of them.
    login: how the deployment signs in: kubelogin's azurecli, workloadidentity, spn or msi, or local for the cluster's
        own certificate.
    local_accounts: that certificate exists. Gives up sign-in: it is cluster-admin to whoever holds it, names nobody in
        the audit log, and ends only when the cluster's certificates are rotated.
    """

    admin_groups: tuple[Guid, ...] = ()
    login: Annotated[str, choice("login", LOGINS)] = "azurecli"
    local_accounts: bool = False


class UpgradeSettings(SettingsModel):
    """What AKS upgrades by itself; each drains nodes, one GPU node after the other.

    kubernetes: none, or the newest patch of the minor version (patch), or also minor versions (stable, rapid).
    node_os: NodeImage, weekly images. SecurityPatch, patches without an image where that can be. Unmanaged, what Ubuntu
        installs by itself, without restarts. None gives up security fixes until somebody upgrades the node image.
    drain_timeout_minutes: how long an upgrade waits for the pods of a GPU node to end before it fails.
    """

    kubernetes: Annotated[str, choice("upgrade channel", KUBERNETES_CHANNELS)] = "none"
    node_os: Annotated[str, choice("node OS channel", NODE_OS_CHANNELS)] = "NodeImage"
    drain_timeout_minutes: Annotated[int, Field(ge=1, le=1440)] = 30


class SystemPoolSettings(SettingsModel):
    """The nodes of the cluster's own pods and of the platform's controllers. Holds when the cluster is created.

    count: two, so that one may fail. zones: over which they are spread; [] in regions without zones.
    """

    name: PoolName = "system"
    count: Annotated[int, Field(ge=2, le=MOST_NODES)] = 2
    vm_size: Annotated[str, AfterValidator(values.system_size)] = "Standard_D4s_v5"
    os_disk_gib: Annotated[int, Field(ge=30, le=2048)] = 128
    zones: Zones = ("1", "2", "3")


class AutoscaleSettings(SettingsModel):
    """Bounds between which the cluster's autoscaler sets the number of GPU nodes."""

    min: Annotated[int, Field(ge=0, le=MOST_NODES)] = 0
    max: Annotated[int, Field(ge=1, le=MOST_NODES)]


class GpuPoolSettings(SettingsModel):
    """The GPU nodes.

    count: of nodes; with autoscale, how many there are at first. Quotas then follow the largest number.
    os_disk_gib: edwardsp/ai-on-aks' 128. zones: none, for such machines are in few. max_pods: on one node.
    proximity_placement_group: keep the nodes in one data centre, at the price that Azure finds room less often.
    taint: keeps pods that ask for no GPU away. Without it anything may land on these nodes and take their CPUs.
    skip_gpu_driver_install_tag: also set the tag by which AKS left drivers out until August 2025. It refuses or ignores
        the tag today; the pool's own switch, which is always set, does the same.
    any_region: skip the check that the region offers the size, for regions that came later than the platform's list.
    """

    name: PoolName = "ndv5"
    vm_size: Annotated[str, AfterValidator(values.gpu_size)] = "Standard_ND96isr_H100_v5"
    count: Annotated[int, Field(ge=0, le=MOST_NODES)] = 1
    autoscale: AutoscaleSettings | None = None
    os_disk_gib: Annotated[int, Field(ge=64, le=2048)] = 128
    zones: Zones = ()
    proximity_placement_group: bool = False
    max_pods: Annotated[int, Field(ge=30, le=MOST_PODS)] = MOST_PODS
    taint: bool = True
    skip_gpu_driver_install_tag: bool = False
    any_region: bool = False

    @property
    def size(self) -> VmSize:
        """The machine type."""
        return GPU_SIZES[self.vm_size]

    @property
    def most_nodes(self) -> int:
        """Nodes that there can be: as many as the autoscaler may make, else the count."""
        return self.autoscale.max if self.autoscale else self.count


class BlobStorageSettings(SettingsModel):
    """The storage account of the data sets.

    sku: redundancy; Standard_LRS keeps three copies in one data centre.
    allowed_ranges: public networks that reach it besides the nodes, such as the one that the data comes from.
    shared_key: requests signed with the account's key, or with a SAS token made from it, are served. Gives up that
        access is tied to an identity: the key is everything, and a token lasts until it expires or the key changes.
    """

    account: AccountName
    container: ContainerName = "data"
    sku: Annotated[str, choice("storage SKU", STORAGE_SKUS)] = "Standard_LRS"
    allowed_ranges: tuple[Cidr, ...] = ()
    shared_key: bool = False


class FeatureSettings(SettingsModel):
    """The subscription's feature AKSInfinibandSupport, which sizes with InfiniBand need; others are not asked for it.

    assume_registered: neither register nor wait, for deployments that may not touch the subscription. Gives up the
        check: without the feature the pool comes up with ports that reach no other node.
    timeout_seconds: how long to wait until Azure has registered it.
    """

    assume_registered: bool = False
    timeout_seconds: Annotated[int, Field(ge=60, le=7200)] = 1800


class AzureSettings(SettingsModel):
    """What is created in Azure.

    subscription_id: default the one that ARM_SUBSCRIPTION_ID or the Azure CLI names. location: the region.
    node_resource_group: which AKS creates for the nodes; default <resourceGroup>-nrg.
    kubernetes_version: a minor version that AKS supports, for its newest patch, or one with its patch.
    support: longTerm for another year of a version, which needs the Premium tier.
    tier: Free has no guarantee and is for at most ten nodes or so.
    os_sku: of all nodes. Ubuntu2204, for which the pinned drivers are built; Ubuntu is 24.04 from Kubernetes 1.35 on.
    admin_user, ssh_public_key: of the nodes.
    storage: default none.
    protect: group, registry, storage and cluster cannot be deleted before `pulumi state unprotect`.
    tags: of everything.
    """

    subscription_id: Guid | None = None
    location: Annotated[str, choice("region", tuple(sorted(REGIONS)))]
    resource_group: ResourceGroupName = "mlbatch"
    node_resource_group: ResourceGroupName | None = None
    cluster_name: ClusterName = "mlbatch"
    kubernetes_version: Annotated[str, AfterValidator(values.kubernetes_version)] = versions.DEFAULT
    support: Annotated[str, choice("support plan", tuple(SUPPORT_PLANS))] = "official"
    tier: Annotated[str, choice("tier", TIERS)] = "Standard"
    os_sku: Annotated[str, choice("OS SKU", OS_SKUS)] = OS_SKUS[0]
    admin_user: AdminName = "azureuser"
    ssh_public_key: Annotated[str, AfterValidator(values.ssh_public_key)]
    registry: RegistrySettings
    network: NetworkSettings = NetworkSettings()
    api_server: ApiServerSettings = ApiServerSettings()
    access: AccessSettings = AccessSettings()
    upgrades: UpgradeSettings = UpgradeSettings()
    system_pool: SystemPoolSettings = SystemPoolSettings()
    gpu_pool: GpuPoolSettings = GpuPoolSettings()
    storage: BlobStorageSettings | None = None
    feature: FeatureSettings = FeatureSettings()
    protect: bool = True
    tags: Annotated[Mapping[str, str], AfterValidator(values.tags)] = Field(default_factory=dict)

    @property
    def nodes_group(self) -> str:
        """Name of the group that AKS creates for the nodes."""
        return self.node_resource_group or f"{self.resource_group}-nrg"

    @property
    def support_plan(self) -> str:
        """The support plan as AKS names it."""
        return SUPPORT_PLANS[self.support]

    @property
    def registers_feature(self) -> bool:
        """Whether the stack registers the subscription's InfiniBand feature: only sizes that need it ask for it."""
        return self.gpu_pool.size.infiniband_feature and not self.feature.assume_registered

    def pool(self, *, infiniband: bool = True) -> NodePool:
        """Return the GPU nodes as the layers see them: as many as there can be.

        infiniband: ports are handed out one by one, as NVIDIA's SR-IOV device plugin does.
        """
        pool = self.gpu_pool
        return NodePool(count=pool.most_nodes, shape=pool.size.shape(max_pods=pool.max_pods, infiniband=infiniband))

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the options to each other, and to what the region and AKS have."""
        return checks.check(self)
