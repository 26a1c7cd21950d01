"""Checks options of target `aks` against each other, and against the features of the region and of AKS."""

from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from typing import Final

from components.azure import versions
from components.azure.aks import RETIRED_TAG, infiniband_deployment
from components.azure.sizes import GPU_SIZES, REGIONS_AS_OF, REGIONS_WITHOUT_PAIR, REGIONS_WITHOUT_ZONES
from stacks.config.errors import MISSING, ConfigError, Path, key, listed
from stacks.settings import cidr
from stacks.targets.aks.settings import support
from stacks.targets.aks.settings.options import AzureOptions
from stacks.targets.aks.settings.values import ANYBODY, LOCAL, LONG_TERM, MOST_TAGS, NODES_ONLY, STORAGE_SKUS

_SUBNET_RESERVED: Final = 5
"""Number of addresses that Azure reserves in each subnet."""
_PRIVATE: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
"""Private networks (RFC 1918)."""
_TAKEN: Final = (
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.30.0.0/16",
    "172.31.0.0/16",
    "192.0.2.0/24",
    "224.0.0.0/3",
)
"""Networks that are reserved for Azure and AKS (learn.microsoft.com/azure/virtual-network/
virtual-networks-faq; azure/aks/configure-azure-cni)."""
_LONGEST_DEPLOYMENT: Final = 64
_LONGEST_NODES_GROUP: Final = 80
_POD_PREFIX: Final = 24
"""Prefix length of each node's part of the pods' network."""


def check(azure: AzureOptions) -> Iterator[ConfigError]:
    """Yield errors between the values of section azure."""
    rules: tuple[Callable[[AzureOptions], Iterator[ConfigError]], ...] = (
        _version,
        _api_server,
        _access,
        _region,
        _zones,
        _autoscale,
        _reservations,
        _pools,
        _network,
        _grace,
        _reserved,
        _ranges,
        _groups,
        _names,
        _redundancy,
        _tags,
    )
    for rule in rules:
        yield from rule(azure)


def _version(azure: AzureOptions) -> Iterator[ConfigError]:
    version = azure.kubernetes_version
    if azure.support == LONG_TERM and azure.tier != "Premium":
        yield ConfigError(
            ("azure", "support"),
            f"long-term support needs tier Premium, and mlbatch:azure.tier is {azure.tier}",
            "set mlbatch:azure.tier to Premium, or remove the key",
        )
    if version.count(".") > 1 and azure.upgrades.kubernetes != "none":
        yield ConfigError(
            ("azure", "kubernetesVersion"),
            "this is a patch version, but mlbatch:azure.upgrades.kubernetes upgrades to newer ones, which each "
            "update of the stack would try to revert",
            f'set it to "{version.rpartition(".")[0]}", or remove mlbatch:azure.upgrades.kubernetes',
        )
    yield from support.check(azure)
    image = next(image for image in versions.NODE_IMAGES if image.os_sku == azure.os_sku)
    minor = int(version.split(".")[1])
    if image.last is not None and not image.first <= minor <= image.last:
        yield ConfigError(
            ("azure", "osSku"),
            f"AKS has this node image for Kubernetes 1.{image.first} to 1.{image.last}, not for {version}",
            "set it to Ubuntu, or mlbatch:azure.kubernetesVersion to an older version",
            expected=listed(
                other.os_sku for other in versions.NODE_IMAGES if other.last is None or minor <= other.last
            ),
        )


def _api_server(azure: AzureOptions) -> Iterator[ConfigError]:
    access, path = azure.api_server, ("azure", "apiServer")
    given = {"authorizedRanges": access.authorized_ranges, "private": access.private, "public": access.public}
    chosen = [name for name, value in given.items() if value]
    allowed = "exactly one of authorizedRanges, private: true and public: true"
    others = [text for text in access.authorized_ranges if text not in (ANYBODY, NODES_ONLY)]
    if ANYBODY not in access.authorized_ranges and (wide := cidr.too_wide(others)):
        yield ConfigError(
            (*path, "authorizedRanges"),
            f"together these are {wide[0]}, which contains almost all addresses",
            f"list your own networks, or, if that is intended, remove the key and set {key((*path, 'public'))} to true",
            expected=allowed,
        )
    for text in others:
        if cidr.within(text, cidr.NOT_PUBLIC):
            yield ConfigError(
                (*path, "authorizedRanges", access.authorized_ranges.index(text)),
                "this private network does not exist on the internet and cannot reach the API server's address",
                f"list the public addresses of your network, or remove the key and set {key((*path, 'private'))} "
                "to true",
            )
    if ANYBODY in access.authorized_ranges:
        yield ConfigError(
            (*path, "authorizedRanges", access.authorized_ranges.index(ANYBODY)),
            "this contains all addresses, so everyone could connect to the API server",
            f"list your own networks, or, if that is intended, remove the key and set {key((*path, 'public'))} to true",
            expected=allowed,
        )
    elif not chosen:
        yield ConfigError(
            (*path, "authorizedRanges"),
            "access to the API server is not restricted, so everyone could connect",
            f'list your networks, such as ["203.0.113.0/24"], or set {key((*path, "private"))} or '
            f"{key((*path, 'public'))} to true",
            expected=allowed,
        )
    elif len(chosen) > 1:
        yield ConfigError(
            path, f"{' and '.join(chosen)} exclude each other", "set only one of them", expected=allowed, value=MISSING
        )
    if NODES_ONLY in access.authorized_ranges and len(access.authorized_ranges) > 1:
        yield ConfigError(
            (*path, "authorizedRanges", access.authorized_ranges.index(NODES_ONLY)),
            "to AKS this means only the nodes, which contradicts the other networks",
            "remove it",
        )


def _access(azure: AzureOptions) -> Iterator[ConfigError]:
    access = azure.access
    if not access.local_accounts and not access.admin_groups:
        yield ConfigError(
            ("azure", "access", "adminGroups"),
            "local accounts are off and there is no administrator group, so no user could sign in",
            "add a group (`az ad group show --group NAME --query id`), or set mlbatch:azure.access.localAccounts to "
            "true and mlbatch:azure.access.login to local",
            expected="object IDs of Entra groups, including a group of the account that deploys the stack",
        )
    if access.login == LOCAL and not access.local_accounts:
        yield ConfigError(
            ("azure", "access", "login"),
            "local accounts are off, so the cluster has no certificate to sign in with",
            "set it to azurecli, or mlbatch:azure.access.localAccounts to true",
            expected="azurecli, workloadidentity, spn or msi; local only with localAccounts: true",
        )
    if access.login != LOCAL and access.local_accounts and not access.admin_groups:
        yield ConfigError(
            ("azure", "access", "login"),
            "there is no administrator group, so no user can sign in with Entra",
            "set it to local, or add a group to mlbatch:azure.access.adminGroups",
        )


def _region(azure: AzureOptions) -> Iterator[ConfigError]:
    others = [other.name for other in GPU_SIZES.values() if other.regions and azure.location in other.regions]
    for path, pool in azure.gpu_pools.items():
        size = pool.size
        if pool.any_region or size.regions is None or azure.location in size.regions:
            continue
        yield ConfigError(
            ("azure", "location"),
            f"this region does not offer {size.name}, as of {REGIONS_AS_OF}",
            f"use one of those, or a size that {azure.location} has ({listed(others)}); if it now has this one, "
            f"set {key((*path, 'anyRegion'))} to true",
            expected=listed(sorted(size.regions)),
        )


def _zones(azure: AzureOptions) -> Iterator[ConfigError]:
    system: Path = ("azure", "systemPool")
    pools = {path: pool.zones for path, pool in azure.gpu_pools.items()}
    for path, zones in {system: azure.system_pool.zones, **pools}.items():
        if zones and azure.location in REGIONS_WITHOUT_ZONES:
            yield ConfigError(
                (*path, "zones"),
                f"region {azure.location} has no availability zones",
                "set it to [], or mlbatch:azure.location to another region",
            )
    for path, pool in azure.gpu_pools.items():
        if pool.proximity_placement_group and len(pool.zones) > 1:
            yield ConfigError(
                (*path, "proximityPlacementGroup"),
                f"the placement group is in one data centre, but the nodes are in {len(pool.zones)} zones",
                f"set it to false, or list only one zone in {key((*path, 'zones'))}",
            )


def _autoscale(azure: AzureOptions) -> Iterator[ConfigError]:
    for path, pool in azure.gpu_pools.items():
        scaling = pool.autoscale
        if scaling is None:
            continue
        if scaling.min > scaling.max:
            yield ConfigError(
                (*path, "autoscale", "min"),
                f"this is more than max, which is {scaling.max}",
                f"lower it, or raise {key((*path, 'autoscale', 'max'))}",
            )
        elif not scaling.min <= pool.count <= scaling.max:
            side = "above the autoscaler's maximum" if pool.count > scaling.max else "below the autoscaler's minimum"
            yield ConfigError(
                (*path, "count"),
                f"this is {side}",
                f"set it to a number in that range, or change {key((*path, 'autoscale'))}",
                expected=f"a whole number from {scaling.min} to {scaling.max}",
            )


def _reservations(azure: AzureOptions) -> Iterator[ConfigError]:
    """Reject what capacity reservations exclude: the update would delete the pool and fail to create the new one.

    Source: learn.microsoft.com/azure/virtual-machines/capacity-reservation-overview, limitations.
    """
    for path, pool in azure.gpu_pools.items():
        if pool.capacity_reservation_group_id is None:
            continue
        at = (*path, "capacityReservationGroupId")
        if not pool.size.reservable:
            yield ConfigError(
                at,
                f"Azure has no capacity reservations of {pool.vm_size}",
                f"remove the key, or set {key((*path, 'vmSize'))} to one of those",
                expected=listed(size.name for size in GPU_SIZES.values() if size.reservable),
                value=MISSING,
            )
        for name, is_set in (("spot", pool.is_spot), ("proximityPlacementGroup", pool.proximity_placement_group)):
            if is_set:
                fix = f"remove one of the two keys; the other is {key((*path, name))}"
                yield ConfigError(at, f"{name} excludes a capacity reservation", fix, value=MISSING)


def _pools(azure: AzureOptions) -> Iterator[ConfigError]:
    taken = {azure.system_pool.name: "the system pool"}
    for path, pool in azure.gpu_pools.items():
        if pool.name in taken:
            yield ConfigError(
                (*path, "name"), f"{taken[pool.name]} already has this name", "give one of the two another name"
            )
        taken.setdefault(pool.name, key(path))


def _network(azure: AzureOptions) -> Iterator[ConfigError]:
    net = azure.network
    found = {
        "vnetCidr": IPv4Network(net.vnet_cidr),
        "nodeCidr": IPv4Network(net.node_cidr),
        "podCidr": IPv4Network(net.pod_cidr),
        "serviceCidr": IPv4Network(net.service_cidr),
    }
    if not found["nodeCidr"].subnet_of(found["vnetCidr"]):
        yield _bad_network(
            "nodeCidr",
            "the nodes' subnet is not in the virtual network",
            f"a network in {net.vnet_cidr}",
            "use a part of it, or widen vnetCidr",
        )
    told = {error.path[-1] for error in _reserved(azure)}
    for first, second in (("podCidr", "vnetCidr"), ("serviceCidr", "vnetCidr"), ("serviceCidr", "podCidr")):
        if found[first].overlaps(found[second]) and not told & {first, second}:
            told.add(first)
            yield _bad_network(
                first,
                f"it overlaps with {second}, {found[second]}, so some addresses would be ambiguous",
                f"a network that does not overlap with {found[second]}",
            )
    if found["serviceCidr"].prefixlen <= 12 or found["serviceCidr"].prefixlen > 28:
        yield _bad_network(
            "serviceCidr",
            "AKS does not accept a network of this size for Services",
            "a prefix length from 13 to 28",
            "use a /16, the default of AKS",
        )
    yield from _room(azure, found["nodeCidr"], found["podCidr"])


def _room(azure: AzureOptions, nodes_network: IPv4Network, pods_network: IPv4Network) -> Iterator[ConfigError]:
    """Require addresses for all nodes, and for one more, which an upgrade of the system pool adds temporarily."""
    nodes = azure.system_pool.count + sum(pool.most_nodes for pool in azure.gpu_pools.values())
    room = nodes_network.num_addresses - _SUBNET_RESERVED
    if room < nodes + 1:
        prefix = 32 - (nodes + _SUBNET_RESERVED).bit_length()
        fix = f"use a /{prefix} or larger, and a virtual network (vnetCidr) that contains it"
        yield _small_network("nodeCidr", nodes, room, "an address each, and five of Azure's", fix)
    room = pods_network.num_addresses // 2 ** (32 - _POD_PREFIX)
    if room < nodes + 1:
        fix = f"use a /{_POD_PREFIX - nodes.bit_length()} or larger"
        yield _small_network("podCidr", nodes, room, f"a /{_POD_PREFIX} each", fix)


def _small_network(name: str, nodes: int, room: int, share: str, fix: str) -> ConfigError:
    return _bad_network(
        name,
        f"it has addresses for {max(0, room)} nodes ({share}); required: {nodes}, and one more in an upgrade",
        f"a network for {nodes + 1} nodes",
        fix,
    )


def _bad_network(name: str, wrong: str, allowed: str, fix: str = "use another network of the same size") -> ConfigError:
    return ConfigError(("azure", "network", name), wrong, fix, expected=allowed)


def _grace(azure: AzureOptions) -> Iterator[ConfigError]:
    """Check what GB200 and GB300 need (Azure/ai-infrastructure-on-azure, infrastructure_references/aks/README.md)."""
    size = next((pool.size for pool in azure.gpu_pools.values() if pool.size.refuses_infiniband_feature), None)
    if size is None:
        return
    if azure.feature.assume_registered:
        yield ConfigError(
            ("azure", "feature", "assumeRegistered"),
            f"InfiniBand of {size.name} works only if the subscription does not have AKSInfinibandSupport",
            "remove it, and run `az feature unregister --namespace Microsoft.ContainerService --name "
            "AKSInfinibandSupport` if the feature is registered",
        )
    if azure.os_sku == "Ubuntu2204" or int(azure.kubernetes_version.split(".")[1]) < 35:
        yield ConfigError(
            ("azure", "osSku"),
            f"{size.name} needs Ubuntu 24.04",
            "set it to Ubuntu, and mlbatch:azure.kubernetesVersion to 1.35 or later",
        )


def _ranges(azure: AzureOptions) -> Iterator[ConfigError]:
    if azure.storage is None:
        return
    for index, text in enumerate(azure.storage.allowed_ranges):
        network = IPv4Network(text)
        path: Path = ("azure", "storage", "allowedRanges", index)
        if network.prefixlen in (0, 31):
            yield ConfigError(
                path,
                "Azure does not accept this network" if network.prefixlen else "this contains all addresses",
                "write single addresses, or a larger network" if network.prefixlen else "list your own networks",
                expected="public networks with a prefix length from 1 to 30, or of one address (/32)",
            )
        elif cidr.within(text, cidr.NOT_PUBLIC) or cidr.overlapping(network, _PRIVATE):
            yield ConfigError(
                path,
                "a storage account's firewall accepts only public networks",
                "remove it, or write the network's public address; the nodes' subnet always has access",
            )


def _reserved(azure: AzureOptions) -> Iterator[ConfigError]:
    """Reject networks that overlap with reserved networks of Azure and AKS."""
    for name, value in (
        ("vnetCidr", azure.network.vnet_cidr),
        ("podCidr", azure.network.pod_cidr),
        ("serviceCidr", azure.network.service_cidr),
    ):
        if (found := cidr.overlapping(IPv4Network(value), _TAKEN)) is not None:
            yield _bad_network(
                name,
                f"it overlaps with {found}, which Azure and AKS reserve",
                f"a network without {listed(_TAKEN)}",
            )


def _names(azure: AzureOptions) -> Iterator[ConfigError]:
    """Check the lengths of derived names."""
    longest = _LONGEST_DEPLOYMENT - len(infiniband_deployment(""))
    if azure.registers_feature and len(azure.cluster_name) > longest:
        yield ConfigError(
            ("azure", "clusterName"),
            f"the deployment that registers InfiniBand would be named "
            f"{infiniband_deployment(azure.cluster_name)}, which is longer than {_LONGEST_DEPLOYMENT} characters",
            "write a shorter name",
            expected=f"at most {longest} characters",
        )
    if len(azure.nodes_group) > _LONGEST_NODES_GROUP:
        given = azure.node_resource_group is not None
        yield ConfigError(
            ("azure", "nodeResourceGroup" if given else "resourceGroup"),
            f"AKS' own group would be {azure.nodes_group}, longer than {_LONGEST_NODES_GROUP} characters",
            "write a shorter name",
            expected=f"at most {_LONGEST_NODES_GROUP - (0 if given else 4)} characters"
            + ("" if given else ", or a separate name in mlbatch:azure.nodeResourceGroup"),
        )


def _redundancy(azure: AzureOptions) -> Iterator[ConfigError]:
    """Reject copies in zones, or in a paired region, that the region does not have."""
    if azure.storage is not None and (lacks := _lacking(azure.storage.sku, azure.location)):
        yield ConfigError(
            ("azure", "storage", "sku"),
            "; ".join(f"{where}, and region {azure.location} has none" for where in lacks),
            "set it to one of these, or mlbatch:azure.location to another region",
            expected=listed(sku for sku in STORAGE_SKUS if not _lacking(sku, azure.location)),
        )


def _lacking(sku: str, region: str) -> list[str]:
    """Return where an SKU keeps copies and the region cannot."""
    found = []
    if "ZRS" in sku and region in REGIONS_WITHOUT_ZONES:
        found.append("it keeps copies in several zones")
    if sku.endswith(("GRS", "GZRS")) and region in REGIONS_WITHOUT_PAIR:
        found.append("it keeps copies in the region's pair")
    return found


def _tags(azure: AzureOptions) -> Iterator[ConfigError]:
    """Check the number of tags, including those that the platform adds."""
    own = [RETIRED_TAG] if any(pool.skip_gpu_driver_install_tag for pool in azure.gpu_pools.values()) else []
    if len(azure.tags) + len(own) > MOST_TAGS:
        yield ConfigError(
            ("azure", "tags"),
            f"with {listed(own)}, which mlbatch:azure.gpuPool.skipGpuDriverInstallTag adds, these are "
            f"{len(azure.tags) + len(own)} tags",
            f"remove {len(azure.tags) + len(own) - MOST_TAGS} of them",
        )


def _groups(azure: AzureOptions) -> Iterator[ConfigError]:
    if azure.nodes_group.lower() == azure.resource_group.lower():
        yield ConfigError(
            ("azure", "nodeResourceGroup"),
            "AKS creates this group itself, but the stack creates one with the same name",
            "remove the key, or write another name",
        )
