"""What target `aks` creates in Azure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from components import names
from components.azure import aks, versions
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
from stacks.settings.model import SettingsModel, choice, matching, one_of
from stacks.settings.pools import FurtherPoolSettings

SUPPORT_PLANS: Final = {"official": "KubernetesOfficial", values.LONG_TERM: "AKSLongTermSupport"}
TIERS: Final = ("Free", "Standard", "Premium")
OS_SKUS: Final = tuple(image.os_sku for image in versions.NODE_IMAGES)
REGISTRY_SKUS: Final = ("Basic", "Standard", "Premium")
STORAGE_SKUS: Final = values.STORAGE_SKUS
NETWORK_POLICIES: Final = ("cilium", "calico", "none")
LOGINS: Final = ("azurecli", "workloadidentity", "spn", "msi", values.LOCAL)
KUBERNETES_CHANNELS: Final = ("none", "patch")
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NODE_OS_CHANNELS: Final = ("NodeImage", "SecurityPatch", "Unmanaged", "None")


class RegistrySettings(SettingsModel):
    """The container registry."""

    name: RegistryName
    """The first part of `<name>.azurecr.io`."""
    sku: Annotated[str, choice("registry SKU", REGISTRY_SKUS)] = "Standard"
    """Size and speed: Basic holds 10 GiB, Standard 100 GiB, Premium 500 GiB."""
    admin_user: bool = False
    """One password, shared by all, that may push and pull. Gives up that pushes can be traced to somebody and that a
    leaver's access ends; nodes pull with their own identity and never need it.
    """


class NetworkSettings(SettingsModel):
    """The addresses."""

    vnet_cidr: Cidr = "10.128.0.0/20"
    """Addresses of the virtual network (as in edwardsp/ai-on-aks, deploy)."""
    node_cidr: Cidr = "10.128.4.0/22"
    """Addresses of the nodes' subnet in the virtual network (as in edwardsp/ai-on-aks, deploy)."""
    pod_cidr: Cidr = "10.244.0.0/16"
    """Addresses of the overlay, from which each node takes a /24. AKS' default."""
    service_cidr: Cidr = "10.0.0.0/16"
    """Addresses of the Services. AKS' default."""
    policy: Annotated[str, choice("network policy", NETWORK_POLICIES)] = "cilium"
    """What enforces NetworkPolicies. none: nothing does, and any pod reaches any other."""


class ApiServerSettings(SettingsModel):
    """Who reaches the API server: exactly one of authorizedRanges, private and public says so."""

    authorized_ranges: Annotated[tuple[Cidr, ...], AfterValidator(values.ranges)] = ()
    """Public networks, yours and those from which the stack is deployed; AKS adds the nodes'."""
    private: bool = False
    """It has an address in the virtual network alone; the stack has to be deployed from there."""
    public: bool = False
    """Everybody reaches it. Gives up that a stolen credential is of no use elsewhere, and exposes the API server's own
    flaws.
    """
    run_command: bool = False
    """`az aks command invoke` works. Gives up that the network alone decides: Azure's API then leads past it."""


class AccessSettings(SettingsModel):
    """Who administers the cluster."""

    admin_groups: tuple[Guid, ...] = ()
    """Object ids of Entra groups. Whoever deploys the stack has to be in one of them."""
    login: Annotated[str, choice("login", LOGINS)] = "azurecli"
    """How the deployment signs in: kubelogin's azurecli, workloadidentity, spn or msi, or local for the cluster's own
    certificate.
    """
    local_accounts: bool = False
    """The cluster's own certificate exists. Gives up sign-in: it is cluster-admin to whoever holds it, names nobody in
    the audit log, and ends only when the cluster's certificates are rotated.
    """


class WindowSettings(SettingsModel):
    """The hours to which AKS keeps its upgrades, as far as it can."""

    day: Annotated[str, choice("day", DAYS)] = "Sunday"
    """Day of the week."""
    start: values.TimeOfDay = "02:00"
    """When the window opens."""
    hours: Annotated[int, Field(ge=4, le=24)] = 8
    """How many hours it is open; nodes are upgraded one after the other, GPU nodes in half an hour or so each, beside
    what their pods take to end.
    """
    every_weeks: Annotated[int, Field(ge=1, le=4)] = 1
    """How many weeks from one window to the next."""
    utc_offset: values.UtcOffset = "+00:00"
    """Offset of day and start from universal time."""


class UpgradeSettings(SettingsModel):
    """What AKS upgrades by itself; each drains nodes, one GPU node after the other."""

    kubernetes: Annotated[str, choice("upgrade channel", KUBERNETES_CHANNELS)] = "none"
    """Which versions of Kubernetes: none, or the newest patch of the minor version (patch). AKS' channels that go on to
    other minor versions are none of these: an update of the stack would try to take them back, and drivers, Volcano and
    the scheduler are chosen for the one that kubernetesVersion names.
    """
    node_os: Annotated[str, choice("node OS channel", NODE_OS_CHANNELS)] = "NodeImage"
    """Which node systems: NodeImage, weekly images. SecurityPatch, patches without an image where that can be.
    Unmanaged, what Ubuntu installs by itself, without restarts. None gives up security fixes until somebody upgrades
    the node image.
    """
    drain_timeout_minutes: Annotated[int, Field(ge=1, le=1440)] = 30
    """How many minutes an upgrade waits for the pods of a GPU node to end before it fails."""
    window: WindowSettings = WindowSettings()


class SystemPoolSettings(SettingsModel):
    """The nodes of the cluster's own pods and of the platform's controllers. Holds when the cluster is created."""

    name: PoolName = "system"
    """Name of the node pool."""
    count: Annotated[int, Field(ge=2, le=MOST_NODES)] = 2
    """How many nodes: two, so that one may fail."""
    vm_size: Annotated[str, AfterValidator(values.system_size)] = "Standard_D4s_v5"
    """Machine type: at least 4 vCPUs, with neither GPUs (N...) nor bursts (B...)."""
    os_disk_gib: Annotated[int, Field(ge=30, le=2048)] = 128
    """Size of a node's disk in GiB."""
    zones: Zones = ("1", "2", "3")
    """Zones over which the nodes are spread; [] in regions without zones."""


class AutoscaleSettings(SettingsModel):
    """Bounds between which the cluster's autoscaler sets the number of GPU nodes."""

    min: Annotated[int, Field(ge=0, le=MOST_NODES)] = 1
    """Fewest nodes; 0 where pods ask for no InfiniBand ports, which the autoscaler finds on no node that is yet to be.
    """
    max: Annotated[int, Field(ge=1, le=MOST_NODES)]
    """Most nodes."""


class GpuPoolSettings(SettingsModel):
    """The GPU nodes."""

    name: PoolName = "ndv5"
    """Name of the node pool."""
    vm_size: Annotated[str, one_of(values.gpu_size, tuple(GPU_SIZES))] = "Standard_ND96isr_H100_v5"
    """Machine type, one with NVIDIA GPUs."""
    count: Annotated[int, Field(ge=0, le=MOST_NODES)] = 1
    """How many nodes; with autoscale, how many there are at first. Quotas then follow the largest number."""
    autoscale: AutoscaleSettings | None = None
    """Bounds between which the cluster's autoscaler sets the number of nodes; default as many as count says."""
    os_disk_gib: Annotated[int, Field(ge=64, le=2048)] = 128
    """Size of a node's disk in GiB; edwardsp/ai-on-aks' 128."""
    zones: Zones = ()
    """Zones over which the nodes are spread; none, for such machines are in few."""
    proximity_placement_group: bool = False
    """Keep the nodes in one data centre, at the price that Azure finds room less often."""
    max_pods: Annotated[int, Field(ge=30, le=MOST_PODS)] = MOST_PODS
    """How many pods one node may run."""
    taint: bool = True
    """Keeps pods that ask for no GPU away. Without it anything may land on these nodes and take their CPUs."""
    skip_gpu_driver_install_tag: bool = False
    """Also set the tag by which AKS left drivers out until August 2025. It refuses or ignores the tag today; the pool's
    own switch, which is always set, does the same.
    """
    any_region: bool = False
    """Skip the check that the region offers the size, for regions that came later than the platform's list."""

    @property
    def is_spot(self) -> bool:
        """Whether Azure may take the machines back."""
        return False

    @property
    def size(self) -> VmSize:
        """The machine type."""
        return GPU_SIZES[self.vm_size]

    @property
    def most_nodes(self) -> int:
        """Nodes that there can be: as many as the autoscaler may make, else the count."""
        return self.autoscale.max if self.autoscale else self.count

    def pool(self, flavor: str, *, infiniband: bool, alone: bool) -> NodePool:
        """Return the nodes as the layers see them: as many as there can be.

        flavor: its name. infiniband: ports are handed out one by one, as NVIDIA's SR-IOV device plugin does. alone:
        there is no other pool.
        """
        shape = self.size.machine(max_pods=self.max_pods).shape(ports=None if infiniband else 0)
        minimum = self.autoscale.min if self.autoscale else None
        nodes = aks.gpu_nodes(taint=self.taint, spot=self.is_spot, pool=None if alone else self.name)
        return NodePool(name=flavor, nodes=nodes, count=self.most_nodes, shape=shape, minimum=minimum)


class MoreGpuPoolSettings(GpuPoolSettings, FurtherPoolSettings):
    """GPU nodes of another size, or at another price: as `gpuPool`."""

    name: PoolName
    """Name of the node pool, of its flavor, and under teams' `pools`."""
    spot: bool = False
    """Take machines at Azure's spot price. Azure takes them back whenever it needs them, with half a minute's notice:
    jobs are queued again, and go on from their last checkpoint. Holds when the pool is created.
    """

    @property
    def is_spot(self) -> bool:
        """Whether Azure may take the machines back."""
        return self.spot


class BlobStorageSettings(SettingsModel):
    """The storage account of the data sets."""

    account: AccountName
    """Name of the storage account."""
    container: ContainerName = "data"
    """Name of the container in it."""
    sku: Annotated[str, choice("storage SKU", STORAGE_SKUS)] = "Standard_LRS"
    """Redundancy; Standard_LRS keeps three copies in one data centre."""
    allowed_ranges: tuple[Cidr, ...] = ()
    """Public networks that reach it besides the nodes, such as the one that the data comes from."""
    shared_key: bool = False
    """Serve requests signed with the account's key, or with a SAS token made from it. Gives up that access is tied to
    an identity: the key is everything, and a token lasts until it expires or the key changes.
    """


class FeatureSettings(SettingsModel):
    """The subscription's feature AKSInfinibandSupport, needed by sizes with InfiniBand and asked of no others."""

    assume_registered: bool = False
    """Neither register nor wait, for deployments that may not touch the subscription. Gives up the check: without the
    feature the pool comes up with ports that reach no other node.
    """
    timeout_seconds: Annotated[int, Field(ge=60, le=7200)] = 1800
    """How many seconds to wait until Azure has registered it."""


class AzureSettings(SettingsModel):
    """What is created in Azure."""

    subscription_id: Guid | None = None
    """Subscription; default the one that ARM_SUBSCRIPTION_ID or the Azure CLI names."""
    location: Annotated[str, choice("region", tuple(sorted(REGIONS)))]
    """The region."""
    resource_group: ResourceGroupName = "mlbatch"
    """Resource group that the stack makes, with all the rest in it."""
    node_resource_group: ResourceGroupName | None = None
    """Resource group that AKS creates for the nodes; default `<resourceGroup>-nrg`."""
    cluster_name: ClusterName = "mlbatch"
    """Name of the AKS cluster."""
    kubernetes_version: values.KubernetesVersion = versions.DEFAULT
    """A minor version that AKS supports, for its newest patch, or one with its patch. The end of its support is warned
    of, and refused is only what no cluster can have.
    """
    support: Annotated[str, choice("support plan", tuple(SUPPORT_PLANS))] = "official"
    """Support plan: longTerm for another year of a version, which needs the Premium tier."""
    tier: Annotated[str, choice("tier", TIERS)] = "Standard"
    """Tier of the cluster: Free has no guarantee and is for at most ten nodes or so."""
    os_sku: Annotated[str, choice("OS SKU", OS_SKUS)] = OS_SKUS[0]
    """System of all nodes. Ubuntu2204, for which the pinned drivers are built; Ubuntu is 24.04 from Kubernetes 1.35 on.
    """
    admin_user: AdminName = "azureuser"
    """Name of the nodes' administrator."""
    ssh_public_key: Annotated[str, matching(values.ssh_public_key, values.SSH_KEY, values.SSH_KEYS)]
    """SSH key of the nodes' administrator."""
    registry: RegistrySettings
    network: NetworkSettings = NetworkSettings()
    api_server: ApiServerSettings = ApiServerSettings()
    access: AccessSettings = AccessSettings()
    upgrades: UpgradeSettings = UpgradeSettings()
    system_pool: SystemPoolSettings = SystemPoolSettings()
    gpu_pool: GpuPoolSettings = GpuPoolSettings()
    more_gpu_pools: tuple[MoreGpuPoolSettings, ...] = ()
    """More pools of GPU nodes, in the order in which queues try them after the first, such as spot machines."""
    storage: BlobStorageSettings | None = None
    """The storage account of the data sets; default none."""
    feature: FeatureSettings = FeatureSettings()
    protect: bool = True
    """Group, registry, storage and cluster cannot be deleted before this is set to false and applied."""
    tags: Annotated[Mapping[str, str], AfterValidator(values.tags)] = Field(default_factory=dict)
    """Tags of everything that is created."""

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
        wanted = any(pool.size.infiniband_feature for pool in self.gpu_pools.values())
        return wanted and not self.feature.assume_registered

    @property
    def gpu_pools(self) -> Mapping[Path, GpuPoolSettings]:
        """All pools of GPU nodes, by their keys, in the order in which queues try them."""
        further: Mapping[Path, GpuPoolSettings] = {
            ("azure", "moreGpuPools", index): pool for index, pool in enumerate(self.more_gpu_pools)
        }
        return {("azure", "gpuPool"): self.gpu_pool, **further}

    def pools(self, *, infiniband: bool = True) -> list[NodePool]:
        """Return the GPU nodes as the layers see them. infiniband: ports are handed out one by one."""
        alone = not self.more_gpu_pools
        first = self.gpu_pool.pool(names.FLAVOR, infiniband=infiniband, alone=alone)
        return [
            first,
            *(pool.pool(pool.name, infiniband=infiniband, alone=False) for pool in self.more_gpu_pools),
        ]

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the options to each other, and to what the region and AKS have."""
        return checks.check(self)
