"""What target `aks` creates in Azure.

Names keep to Azure's rules (learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules), which are
checked here because Azure tells of a bad name only after half of the rest exists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, NetmaskValueError, ip_network
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from components.azure import versions
from components.azure.sizes import GPU_SIZES, MOST_PODS, REGIONS, VmSize, family_of, is_vm_size, vcpus_of
from components.kubernetes.node_pool import NodePool
from stacks.problems import listed, nearest
from stacks.settings.section import Section, choice, refuse

MOST_NODES: Final = 1000
"""Nodes in one pool (MicrosoftDocs/azure-aks-docs, articles/aks/quotas-skus-regions.md)."""
LEAST_SYSTEM_VCPUS: Final = 4
"""Two NVIDIA operators, Kueue, AppWrapper, Volcano and Prometheus do not fit beside AKS' own pods on two."""
LEAST_RSA_BITS: Final = 2048
ANYBODY: Final = "0.0.0.0/0"
NODES_ONLY: Final = "0.0.0.0/32"
"""AKS' notation for an API server that only the cluster's own nodes reach."""
LONG_TERM: Final = "longTerm"
LOCAL: Final = "local"

SUPPORT_PLANS: Final = {"official": "KubernetesOfficial", LONG_TERM: "AKSLongTermSupport"}
TIERS: Final = ("Free", "Standard", "Premium")
OS_SKUS: Final = tuple(image.os_sku for image in versions.NODE_IMAGES)
REGISTRY_SKUS: Final = ("Basic", "Standard", "Premium")
STORAGE_SKUS: Final = ("Standard_LRS", "Standard_ZRS", "Standard_GRS", "Standard_GZRS", "Standard_RAGRS")
NETWORK_POLICIES: Final = ("cilium", "calico", "none")
LOGINS: Final = ("azurecli", "workloadidentity", "spn", "msi", LOCAL)
KUBERNETES_CHANNELS: Final = ("none", "patch", "stable", "rapid")
NODE_OS_CHANNELS: Final = ("NodeImage", "SecurityPatch", "Unmanaged", "None")

_MOST_TAGS: Final = 50
_TAG_NAME: Final = 128
"""What storage accounts allow; other resources take 512."""
_TAG_VALUE: Final = 256
_MOST_RANGES: Final = 200
_GUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_VERSION: Final = re.compile(r"\d+\.\d+(\.\d+)?")


def _named(what: str, pattern: str, allowed: str, suggest: Callable[[str], str]) -> AfterValidator:
    """Return a validator of a name. suggest: from a refused name to one that might do."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            better = suggest(value)
            is_good = re.fullmatch(pattern, better) is not None
            refuse(
                wrong=f"Azure refuses this name of a {what}",
                allowed=allowed,
                fix=f"for example {better!r}" if is_good else "write a name of such characters",
            )
        return value

    return AfterValidator(check)


def _letters_and_digits(value: str) -> str:
    return re.sub(r"[^a-z0-9]", "", value.lower())


def _hyphenated(value: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")


ResourceGroupName = Annotated[
    str,
    _named(
        "resource group",
        r"[\w().-]{0,75}[\w()-]",
        "1 to 76 letters, digits, _, -, . and parentheses, not with a . at the end (AKS' own group is named after this "
        "one, and may have 80)",
        lambda value: _hyphenated(value)[:76].strip("-"),
    ),
]
ClusterName = Annotated[
    str,
    _named(
        "cluster",
        r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?",
        "1 to 63 letters, digits, _ and -, with a letter or digit first and last",
        lambda value: _hyphenated(value)[:63].strip("-"),
    ),
]
RegistryName = Annotated[
    str,
    _named(
        "registry",
        r"[A-Za-z0-9]{5,50}",
        "5 to 50 letters and digits, unique in all of Azure",
        lambda value: _letters_and_digits(value).ljust(5, "0")[:50],
    ),
]
AccountName = Annotated[
    str,
    _named(
        "storage account",
        r"[a-z0-9]{3,24}",
        "3 to 24 lower-case letters and digits, unique in all of Azure",
        lambda value: _letters_and_digits(value).ljust(3, "0")[:24],
    ),
]
ContainerName = Annotated[
    str,
    _named(
        "container",
        r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*",
        "3 to 63 lower-case letters, digits and single hyphens, with a letter or digit first and last",
        lambda value: _hyphenated(value).ljust(3, "0")[:63].strip("-"),
    ),
]
PoolName = Annotated[
    str,
    _named(
        "node pool",
        r"[a-z][a-z0-9]{0,11}",
        "1 to 12 lower-case letters and digits, with a letter first",
        lambda value: _letters_and_digits(value).lstrip("0123456789")[:12],
    ),
]
AdminName = Annotated[
    str,
    _named(
        "nodes' administrator",
        r"(?!(?:root|admin|administrator)$)[a-z_][a-z0-9_-]{0,31}",
        "1 to 32 lower-case letters, digits, _ and -, with a letter or _ first; not root, admin or administrator",
        lambda value: "azureuser",
    ),
]


def _guid(value: str) -> str:
    if not _GUID.fullmatch(value):
        refuse(
            wrong="this is no id as Azure and Entra write them",
            allowed="a GUID: 8, 4, 4, 4 and 12 hexadecimal digits with hyphens between them",
            fix="`az account show --query id` prints a subscription's, `az ad group show --query id` a group's",
        )
    return value.lower()


Guid = Annotated[str, AfterValidator(_guid)]


def _cidr(value: str) -> str:
    return str(_network(value))


def _network(value: str) -> IPv4Network:
    """Return an IPv4 network; refuses what is none, and addresses of a machine in one."""
    allowed = "an IPv4 network such as 10.128.0.0/20"
    try:
        loose = ip_network(value, strict=False)
    except (NetmaskValueError, ValueError):
        refuse(wrong="this is no network", allowed=allowed, fix="write an address, a slash and the prefix length")
    if not isinstance(loose, IPv4Network):
        refuse(wrong="this is an IPv6 network", allowed=allowed, fix="write an IPv4 network")
    if str(loose.network_address) != value.split("/")[0]:
        refuse(wrong="this is the address of a machine in a network", allowed=allowed, fix=f"did you mean {loose}?")
    return loose


Cidr = Annotated[str, AfterValidator(_cidr)]


def _ranges(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(values) > _MOST_RANGES:
        refuse(
            wrong=f"these are {len(values)} networks",
            allowed=f"at most {_MOST_RANGES}, AKS' limit",
            fix="put neighbouring networks together",
        )
    return values


def _zones(values: tuple[str, ...]) -> tuple[str, ...]:
    bad = [value for value in values if value not in ("1", "2", "3")]
    if bad or len(set(values)) < len(values):
        refuse(
            wrong=f"there is no zone {bad[0]!r}" if bad else "a zone stands here twice",
            allowed='any of "1", "2" and "3", each once; [] for wherever there is room',
            fix='for example ["1"]',
        )
    return values


Zones = Annotated[tuple[str, ...], AfterValidator(_zones)]


def _tags(values: Mapping[str, str]) -> Mapping[str, str]:
    allowed = (
        f"at most {_MOST_TAGS} tags, with names of 1 to {_TAG_NAME} characters other than <>%&\\?/ and values of at "
        f"most {_TAG_VALUE} characters"
    )
    lowered = [name.lower() for name in values]
    if len(values) > _MOST_TAGS:
        refuse(wrong=f"these are {len(values)} tags", allowed=allowed, fix=f"remove {len(values) - _MOST_TAGS} of them")
    for name, value in values.items():
        if not 0 < len(name) <= _TAG_NAME or re.search(r"[<>%&\\?/]", name):
            refuse(wrong=f"Azure refuses the tag name {name!r}", allowed=allowed, fix="write another name")
        if len(value) > _TAG_VALUE:
            refuse(wrong=f"the value of tag {name!r} has {len(value)} characters", allowed=allowed, fix="shorten it")
        if lowered.count(name.lower()) > 1:
            refuse(
                wrong=f"tag {name!r} stands here twice, for Azure does not tell cases apart",
                allowed=allowed,
                fix="remove one",
            )
    return values


def _ssh_public_key(value: str) -> str:
    """Return a public key, without blanks around it; refuses all that AKS does (Azure/AKS issues 1172 and 4431)."""
    # Only this target needs it, and every start of the program would pay for the import.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    allowed = f"a public RSA key of at least {LEAST_RSA_BITS} bits in one line, such as ssh-rsa AAAA... name"
    new = "`ssh-keygen -t rsa -b 4096 -f ~/.ssh/aks` makes a pair; put the content of ~/.ssh/aks.pub here"
    if "PRIVATE KEY" in value:
        refuse(
            wrong="this is a private key, which nobody but you may have: it now stands in the stack's configuration",
            allowed=allowed,
            fix="remove it, take a new pair of keys, and put the content of the file that ends with .pub here",
            secret=True,
        )
    key = value.strip()
    if "\n" in key:
        refuse(wrong="these are several lines", allowed=allowed, fix=new, secret=True)
    try:
        public = load_ssh_public_key(key.encode())
    except (ValueError, UnsupportedAlgorithm):
        refuse(wrong="this is no public key as OpenSSH writes them", allowed=allowed, fix=new, secret=True)
    if not isinstance(public, RSAPublicKey):
        refuse(wrong=f"AKS takes no keys of type {key.split()[0]}", allowed=allowed, fix=new)
    if public.key_size < LEAST_RSA_BITS:
        refuse(wrong=f"this key has {public.key_size} bits", allowed=allowed, fix=new)
    return key


def _gpu_size(value: str) -> str:
    if value not in GPU_SIZES:
        meant = nearest(value, GPU_SIZES)
        has_none = is_vm_size(value) and not family_of(value).startswith("N")
        refuse(
            wrong="this VM size has no GPU" if has_none else "the platform knows no such VM size with NVIDIA GPUs",
            allowed=listed(GPU_SIZES),
            fix=f"did you mean {meant}?" if meant and not has_none else "take one of those",
        )
    return value


def _system_size(value: str) -> str:
    allowed = f"a VM size of at least {LEAST_SYSTEM_VCPUS} vCPUs with neither GPUs (N...) nor bursts (B...)"
    fix = "for example Standard_D4s_v5"
    if not is_vm_size(value):
        refuse(wrong="this is no name of a VM size", allowed=allowed, fix=fix)
    if family_of(value).startswith("N"):
        refuse(wrong="this VM size has GPUs, which the cluster's own pods do not use", allowed=allowed, fix=fix)
    if family_of(value).startswith("B"):
        refuse(wrong="AKS takes no burstable VM size for system pools", allowed=allowed, fix=fix)
    vcpus = vcpus_of(value)
    if vcpus is not None and vcpus < LEAST_SYSTEM_VCPUS:
        refuse(
            wrong=f"{vcpus} vCPUs are too few for the cluster's own pods and the platform's controllers",
            allowed=allowed,
            fix=fix,
        )
    return value


def _kubernetes_version(value: str) -> str:
    if not _VERSION.fullmatch(value):
        refuse(
            wrong="this is no version of Kubernetes",
            allowed="a minor version such as 1.35, or one with a patch such as 1.35.7",
            fix=f'for example "{versions.DEFAULT}"',
        )
    return value


class RegistrySettings(Section):
    """The container registry.

    name: its first part of <name>.azurecr.io. sku: Basic holds 10 GiB, Standard 100 GiB, Premium 500 GiB.
    admin_user: one password, shared by all, that may push and pull. Gives up that pushes can be traced to somebody and
        that a leaver's access ends; nodes pull with their own identity and never need it.
    """

    name: RegistryName
    sku: Annotated[str, choice("registry SKU", REGISTRY_SKUS)] = "Standard"
    admin_user: bool = False


class NetworkSettings(Section):
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


class ApiServerSettings(Section):
    """Who reaches the API server: exactly one of the first three says so.

    authorized_ranges: public networks, yours and those from which the stack is deployed; AKS adds the nodes'.
    private: an address in the virtual network alone; the stack has to be deployed from there.
    public: everybody. Gives up that a stolen credential is of no use elsewhere, and exposes the API server's own flaws.
    run_command: `az aks command invoke` works. Gives up that the network alone decides: Azure's API then leads past it.
    """

    authorized_ranges: Annotated[tuple[Cidr, ...], AfterValidator(_ranges)] = ()
    private: bool = False
    public: bool = False
    run_command: bool = False


class AccessSettings(Section):
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


class UpgradeSettings(Section):
    """What AKS upgrades by itself; each drains nodes, one GPU node after the other.

    kubernetes: none, or the newest patch of the minor version (patch), or also minor versions (stable, rapid).
    node_os: NodeImage, weekly images. SecurityPatch, patches without an image where that can be. Unmanaged, what Ubuntu
        installs by itself, without restarts. None gives up security fixes until somebody upgrades the node image.
    drain_timeout_minutes: how long an upgrade waits for the pods of a GPU node to end before it fails.
    """

    kubernetes: Annotated[str, choice("upgrade channel", KUBERNETES_CHANNELS)] = "none"
    node_os: Annotated[str, choice("node OS channel", NODE_OS_CHANNELS)] = "NodeImage"
    drain_timeout_minutes: Annotated[int, Field(ge=1, le=1440)] = 30


class SystemPoolSettings(Section):
    """The nodes of the cluster's own pods and of the platform's controllers. Holds when the cluster is created.

    count: two, so that one may fail. zones: over which they are spread; [] in regions without zones.
    """

    name: PoolName = "system"
    count: Annotated[int, Field(ge=2, le=MOST_NODES)] = 2
    vm_size: Annotated[str, AfterValidator(_system_size)] = "Standard_D4s_v5"
    os_disk_gib: Annotated[int, Field(ge=30, le=2048)] = 128
    zones: Zones = ("1", "2", "3")


class AutoscaleSettings(Section):
    """Bounds between which the cluster's autoscaler sets the number of GPU nodes."""

    min: Annotated[int, Field(ge=0, le=MOST_NODES)] = 0
    max: Annotated[int, Field(ge=1, le=MOST_NODES)]


class GpuPoolSettings(Section):
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
    vm_size: Annotated[str, AfterValidator(_gpu_size)] = "Standard_ND96isr_H100_v5"
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


class BlobStorageSettings(Section):
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


class FeatureSettings(Section):
    """The subscription's feature AKSInfinibandSupport, which sizes with InfiniBand need; others are not asked for it.

    assume_registered: neither register nor wait, for deployments that may not touch the subscription. Gives up the
        check: without the feature the pool comes up with ports that reach no other node.
    timeout_seconds: how long to wait until Azure has registered it.
    """

    assume_registered: bool = False
    timeout_seconds: Annotated[int, Field(ge=60, le=7200)] = 1800


class AzureSettings(Section):
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
    kubernetes_version: Annotated[str, AfterValidator(_kubernetes_version)] = versions.DEFAULT
    support: Annotated[str, choice("support plan", tuple(SUPPORT_PLANS))] = "official"
    tier: Annotated[str, choice("tier", TIERS)] = "Standard"
    os_sku: Annotated[str, choice("OS SKU", OS_SKUS)] = OS_SKUS[0]
    admin_user: AdminName = "azureuser"
    ssh_public_key: Annotated[str, AfterValidator(_ssh_public_key)]
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
    tags: Annotated[Mapping[str, str], AfterValidator(_tags)] = Field(default_factory=dict)

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
