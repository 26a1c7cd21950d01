"""What target `aks` creates in Azure: the keys of section azure, without the rules between them."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from components import names
from components.azure import aks, versions
from components.azure.sizes import GPU_SIZES, MOST_PODS, REGIONS, VmSize
from components.kubernetes.node_pool import NodePool
from stacks.config.errors import ConfigError, Path
from stacks.settings.limits import MOST_NODES
from stacks.settings.model import SettingsModel, choice, matching, one_of
from stacks.settings.pools import FurtherPoolSettings
from stacks.targets.aks.settings import values

SUPPORT_PLANS: Final = {"official": "KubernetesOfficial", values.LONG_TERM: "AKSLongTermSupport"}
TIERS: Final = ("Free", "Standard", "Premium")
OS_SKUS: Final = values.OS_SKUS
SSH_ACCESS: Final = ("LocalUser", "Disabled")
REGISTRY_SKUS: Final = ("Basic", "Standard", "Premium")
STORAGE_SKUS: Final = values.STORAGE_SKUS
NETWORK_POLICIES: Final = ("cilium", "calico", "none")
LOGINS: Final = ("azurecli", "workloadidentity", "spn", "msi", values.LOCAL)
KUBERNETES_CHANNELS: Final = ("none", "patch")
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NODE_OS_CHANNELS: Final = ("NodeImage", "SecurityPatch", "Unmanaged", "None")


class RegistrySettings(SettingsModel):
    """The container registry."""

    name: values.RegistryName
    """First part of `<name>.azurecr.io`."""
    sku: Annotated[str, choice("registry SKU", REGISTRY_SKUS)] = "Standard"
    """Size and speed. Basic includes 10 GiB, Standard 100 GiB, Premium 500 GiB."""
    admin_user: bool = False
    """Enable one shared password for push and pull. Pushes are then anonymous, and people who leave keep access. Nodes
    do not need it: they pull with their own identity.
    """


class NetworkSettings(SettingsModel):
    """Address ranges and network policies."""

    vnet_cidr: values.Cidr = "10.128.0.0/20"
    """Range of the virtual network. Default: as in edwardsp/ai-on-aks (deploy)."""
    node_cidr: values.Cidr = "10.128.4.0/22"
    """Range of the nodes' subnet in the virtual network. Default: as in edwardsp/ai-on-aks (deploy)."""
    pod_cidr: values.Cidr = "10.244.0.0/16"
    """Range of the pod overlay. Each node takes a /24. Default: that of AKS."""
    service_cidr: values.Cidr = "10.0.0.0/16"
    """Range of Services. Default: that of AKS."""
    policy: Annotated[str, choice("network policy", NETWORK_POLICIES)] = "cilium"
    """Engine that enforces NetworkPolicies. With `none`, each pod can connect to all others."""


class ApiServerSettings(SettingsModel):
    """Access to the API server. Set exactly one of authorizedRanges, private and public."""

    authorized_ranges: Annotated[tuple[values.Cidr, ...], AfterValidator(values.ranges)] = ()
    """Public networks of users and of the machine that deploys the stack. AKS adds the nodes' addresses."""
    private: bool = False
    """Use only an address in the virtual network. Deploy the stack from there."""
    public: bool = False
    """Allow connections from everywhere. This exposes flaws of the API server, and stolen credentials work from
    anywhere.
    """
    run_command: bool = False
    """Enable `az aks command invoke`. It bypasses the network restrictions through Azure's API."""


class AccessSettings(SettingsModel):
    """Administrators of the cluster."""

    admin_groups: tuple[values.Guid, ...] = ()
    """Object IDs of Entra groups. The account that deploys the stack must be a member of one."""
    login: Annotated[str, choice("login", LOGINS)] = "azurecli"
    """How the deployment signs in: with a method of kubelogin, or `local` with the cluster's certificate."""
    local_accounts: bool = False
    """Enable the cluster's certificate. Its holder is cluster-admin without sign-in and without a name in the audit
    log. Only a rotation of the cluster's certificates revokes it.
    """


class WindowSettings(SettingsModel):
    """Maintenance window of AKS upgrades. AKS can exceed it."""

    day: Annotated[str, choice("day", DAYS)] = "Sunday"
    """Day of the week."""
    start: values.TimeOfDay = "02:00"
    """Start time."""
    hours: Annotated[int, Field(ge=4, le=24)] = 8
    """Length in hours. AKS upgrades one node after the other. A GPU node takes about half an hour, plus the time until
    its pods end.
    """
    every_weeks: Annotated[int, Field(ge=1, le=4)] = 1
    """Weeks between windows."""
    utc_offset: values.UtcOffset = "+00:00"
    """UTC offset of day and start."""


class UpgradeSettings(SettingsModel):
    """Upgrades of nodes, one GPU node after the other. An upgrade drains the node first: its jobs end."""

    kubernetes: Annotated[str, choice("upgrade channel", KUBERNETES_CHANNELS)] = "none"
    """`patch` upgrades to the newest patch of kubernetesVersion. The AKS channels for minor versions are not available,
    because drivers, Volcano and scheduler depend on kubernetesVersion, and an update of the stack would try to
    downgrade.
    """
    node_os: Annotated[str, choice("node OS channel", NODE_OS_CHANNELS)] = "None"
    """Automatic upgrades of the node OS, for all pools. `None`: none, you upgrade the node images. `NodeImage`: weekly
    images. `SecurityPatch`: patches, without a new image if possible. `Unmanaged`: Ubuntu's own updates, without
    restarts. `NodeImage` and `SecurityPatch` end jobs in the window.
    """
    drain_timeout_minutes: Annotated[int, Field(ge=1, le=1440)] = 30
    """Minutes that an upgrade waits for the pods of a GPU node to end. Then it fails."""
    soak_minutes: Annotated[int, Field(ge=0, le=30)] = 0
    """Minutes that an upgrade waits after it has drained a GPU node, before it installs the new image. You can stop the
    upgrade in this time.
    """
    window: WindowSettings = WindowSettings()


class SystemPoolSettings(SettingsModel):
    """Nodes for the pods of AKS and the platform's controllers.

    An update changes `count` in place. Other changes need a new pool, and the program prints the commands.
    """

    name: values.PoolName = "system"
    """Name of the node pool."""
    count: Annotated[int, Field(ge=2, le=MOST_NODES)] = 2
    """Number of nodes. With two, one can fail."""
    vm_size: Annotated[str, AfterValidator(values.system_size)] = "Standard_D4s_v5"
    """Machine type with at least 4 vCPUs, not a GPU (N...) or burstable (B...) type."""
    os_disk_gib: Annotated[int, Field(ge=30, le=2048)] = 128
    """Disk size of a node in GiB."""
    zones: values.Zones = ("1", "2", "3")
    """Availability zones of the nodes. [] in regions without zones."""


class AutoscaleSettings(SettingsModel):
    """Limits of the cluster autoscaler for GPU nodes."""

    min: Annotated[int, Field(ge=0, le=MOST_NODES)] = 1
    """Minimum number of nodes. 0 works only if pods request no InfiniBand ports: the autoscaler does not know that a
    new node has them.
    """
    max: Annotated[int, Field(ge=1, le=MOST_NODES)]
    """Maximum number of nodes."""


class GpuPoolSettings(SettingsModel):
    """The GPU nodes."""

    name: values.PoolName = "ndv5"
    """Name of the node pool."""
    vm_size: Annotated[str, one_of(values.gpu_size, tuple(GPU_SIZES))] = "Standard_ND96isr_H100_v5"
    """Machine type with NVIDIA GPUs."""
    count: Annotated[int, Field(ge=0, le=MOST_NODES)] = 1
    """Number of nodes. With autoscale, the initial number; quotas follow the maximum."""
    autoscale: AutoscaleSettings | None = None
    """Limits of the cluster autoscaler. Default: a fixed number of nodes."""
    os_disk_gib: Annotated[int, Field(ge=64, le=2048)] = 128
    """Disk size of a node in GiB. Default: as in edwardsp/ai-on-aks."""
    zones: values.Zones = ()
    """Availability zones of the nodes. Default: none, because few zones have these machines."""
    proximity_placement_group: bool = False
    """Keep the nodes in one data centre. Azure then has capacity less often."""
    capacity_reservation_group_id: values.ReservationGroupId | None = None
    """Resource ID of a group with a capacity reservation of this machine type. Azure has them for few GPU types.
    The identity `<clusterName>-cluster` needs Contributor on its resource group. A change replaces the pool.
    """
    max_pods: Annotated[int, Field(ge=30, le=MOST_PODS)] = MOST_PODS
    """Maximum number of pods per node."""
    taint: bool = True
    """Keep pods without GPUs off these nodes. If false, all pods can run there and use the CPUs."""
    skip_gpu_driver_install_tag: bool = False
    """Also set the tag SkipGPUDriverInstall. AKS supported it until 2025-08-14 and does not create pools with it any
    more. Leave it off: the stack always sets the pool's own option.
    """
    any_region: bool = False
    """Do not check that the region offers the machine type, for regions that the platform's list lacks."""

    @property
    def is_spot(self) -> bool:
        """Whether Azure may take the machines back."""
        return False

    @property
    def size(self) -> VmSize:
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
    """GPU nodes of another size or price. The keys are those of `gpuPool`."""

    name: values.PoolName
    """Name of the node pool and of its ResourceFlavor (with a suffix if `packing` is `topology`). Teams use it in
    `pools`."""
    spot: bool = False
    """Use spot machines. Azure can take them back with 30 seconds' notice. Their jobs are requeued and continue from
    the last checkpoint. A change replaces the pool.
    """

    @property
    def is_spot(self) -> bool:
        return self.spot


class BlobStorageSettings(SettingsModel):
    """Storage account for data sets."""

    account: values.AccountName
    """Name of the storage account."""
    container: values.ContainerName = "data"
    """Name of the container in it."""
    sku: Annotated[str, choice("storage SKU", STORAGE_SKUS)] = "Standard_LRS"
    """Redundancy. Standard_LRS keeps three copies in one data centre."""
    allowed_ranges: tuple[values.Cidr, ...] = ()
    """Public networks with access, in addition to the nodes, such as the source of the data."""
    shared_key: bool = False
    """Accept the account's key, and SAS tokens made from it. Access is then not tied to an identity: the key gives full
    access, and a token works until it expires or the key changes.
    """


class DiagnosticsSettings(SettingsModel):
    """Export of the control plane's logs to Log Analytics, with the audit log. Azure bills each GB."""

    enabled: bool = False
    """Export the logs."""
    categories: tuple[Annotated[str, choice("log category", aks.LOG_CATEGORIES)], ...] = aks.LOG_DEFAULTS
    """Logs. `kube-audit-admin`: each change in the cluster, with its user. `kube-audit`: also each read, which is much
    more. `guard`: sign-ins.
    """
    workspace_id: values.WorkspaceId | None = None
    """Resource ID of an existing workspace. Default: the stack creates `<clusterName>-logs`."""
    retention_days: Annotated[int, Field(ge=aks.LOG_DAYS[0], le=aks.LOG_DAYS[1])] = aks.LOG_DAYS[0]
    """Days that the created workspace keeps logs. The first 31 are free."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        if not self.categories:
            yield ConfigError((*path, "categories"), "no log is selected", "list at least one, or remove the key")
        if self.workspace_id is not None:
            message = "this has no effect on a workspace that the stack does not create"
            yield from self.unused(path, ["retention_days"], message, "remove the key, or workspaceId")


class FeatureSettings(SettingsModel):
    """The subscription feature AKSInfinibandSupport. Only machine types with InfiniBand need it."""

    assume_registered: bool = False
    """Do not register or check the feature, for deployments without rights on the subscription. Without the feature,
    the InfiniBand ports of the nodes have no connection to each other.
    """
    timeout_seconds: Annotated[int, Field(ge=60, le=7200)] = 1800
    """Maximum seconds to wait for the registration."""


class AzureOptions(SettingsModel):
    """Resources in Azure."""

    subscription_id: values.Guid | None = None
    """Subscription. Default: that of ARM_SUBSCRIPTION_ID or the Azure CLI."""
    location: Annotated[str, choice("region", tuple(sorted(REGIONS)))]
    """Azure region."""
    resource_group: values.ResourceGroupName = "mlbatch"
    """Resource group that the stack creates for all its resources."""
    node_resource_group: values.ResourceGroupName | None = None
    """Resource group that AKS creates for the nodes. Default: `<resourceGroup>-nrg`."""
    cluster_name: values.ClusterName = "mlbatch"
    """Name of the AKS cluster."""
    kubernetes_version: values.KubernetesVersion = versions.DEFAULT
    """Minor version that AKS supports (its newest patch is used), or a patch version. The program warns before support
    ends, and refuses only versions that no cluster can have.
    """
    support: Annotated[str, choice("support plan", tuple(SUPPORT_PLANS))] = "official"
    """Support plan. `longTerm` supports a version for another year and needs tier Premium."""
    tier: Annotated[str, choice("tier", TIERS)] = "Standard"
    """Pricing tier of the cluster. Free has no SLA and is for up to about ten nodes."""
    os_sku: Annotated[str, one_of(values.os_sku, OS_SKUS)] = OS_SKUS[0]
    """Operating system of all nodes. From Kubernetes 1.35 on, Ubuntu is 24.04."""
    admin_user: values.AdminName = "azureuser"
    """User name of the nodes' administrator."""
    ssh_public_key: Annotated[str, matching(values.ssh_public_key, values.SSH_KEY, values.SSH_KEYS)]
    """SSH key of the nodes' administrator. `az aks update --ssh-key-value` changes it on an existing cluster."""
    ssh_access: Annotated[str, choice("SSH access", SSH_ACCESS)] = SSH_ACCESS[0]
    """SSH service of the nodes: for the holder of the key, or `Disabled`. Nodes follow with their next image."""
    registry: RegistrySettings
    network: NetworkSettings = NetworkSettings()
    api_server: ApiServerSettings = ApiServerSettings()
    access: AccessSettings = AccessSettings()
    upgrades: UpgradeSettings = UpgradeSettings()
    system_pool: SystemPoolSettings = SystemPoolSettings()
    gpu_pool: GpuPoolSettings = GpuPoolSettings()
    more_gpu_pools: tuple[MoreGpuPoolSettings, ...] = ()
    """More GPU node pools, such as spot machines. Queues try them after gpuPool, in the order of the list."""
    storage: BlobStorageSettings | None = None
    """Storage account for data sets. Default: none."""
    diagnostics: DiagnosticsSettings = DiagnosticsSettings()
    feature: FeatureSettings = FeatureSettings()
    protect: bool = True
    """Protect resource group, registry, storage account and cluster. To delete one, first apply `false`."""
    tags: Annotated[Mapping[str, str], AfterValidator(values.tags)] = Field(default_factory=dict)
    """Tags of all resources."""

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
        """All pools of GPU nodes, by their keys, in the order that queues try them."""
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
