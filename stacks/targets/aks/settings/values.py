"""Values of section azure: names, networks, keys, sizes, each with its rules.

Names follow Azure's rules (learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules). They are
checked here, because Azure reports an invalid name only in the middle of a deployment.
"""

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, NetmaskValueError, ip_network
from typing import Annotated, Final

from pydantic import AfterValidator, WithJsonSchema

from components.azure import versions
from components.azure.sizes import GPU_SIZES, family_of, is_vm_size, vcpus_of
from stacks.config.errors import another_name, instead, listed, shown
from stacks.settings import ssh_key
from stacks.settings.model import Rule, form, matching, reject

STORAGE_SKUS: Final = ("Standard_LRS", "Standard_ZRS", "Standard_GRS", "Standard_GZRS", "Standard_RAGRS")
OS_SKUS: Final = tuple(image.os_sku for image in versions.NODE_IMAGES)
LEAST_SYSTEM_VCPUS: Final = 4
"""Two NVIDIA operators, Kueue, AppWrapper, Volcano and Prometheus do not fit next to AKS' own pods on two."""
LEAST_RSA_BITS: Final = 2048
ANYBODY: Final = "0.0.0.0/0"
NODES_ONLY: Final = "0.0.0.0/32"
"""AKS' notation for an API server that only the cluster's own nodes reach."""
SSH_KEY: Final = r"\s*ssh-rsa[\s\S]*"
SSH_KEYS: Final = f"a public RSA key of at least {LEAST_RSA_BITS} bits in one line, such as ssh-rsa AAAA... name"
LONG_TERM: Final = "longTerm"
LOCAL: Final = "local"


_NO_ADMIN: Final = (
    "root|a|actuser|adm|admin[12]?|administrator|aspnet|backup|console|david|guest|john|owner|server|sql|support"
    "|support_388945a0|sys|test[1-3]?|user[1-5]?"
)
"""Names of administrators that Azure rejects (Microsoft.Compute, OSProfile.adminUsername)."""
_RESERVED_TAGS: Final = ("aks-managed", "azure", "microsoft", "windows")
"""How no tag's name begins (learn.microsoft.com/azure/azure-resource-manager/management/tag-resources, and
azure/aks/use-tags)."""
_NOBODY: Final = "00000000-0000-0000-0000-000000000000"
MOST_TAGS: Final = 50
_TAG_NAME: Final = 128
"""What storage accounts allow; other resources take 512."""
_TAG_VALUE: Final = 256
_MOST_RANGES: Final = 200
_ZONES: Final = ("1", "2", "3")
GUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_GUIDS: Final = "a GUID: 8, 4, 4, 4 and 12 hexadecimal digits with hyphens between them"
_NETWORKS: Final = "an IPv4 network, such as 10.128.0.0/20 or 203.0.113.0/24"


def _named(what: str, pattern: str, allowed: str, suggest: Callable[[str], str]) -> Rule:
    """Return a validator of a name. suggest: returns a similar valid name for a rejected one."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            better = suggest(value)
            is_good = re.fullmatch(pattern, better) is not None
            reject(
                message=f"Azure would reject this name of a {what}",
                expected=allowed,
                hint=another_name(value, better if is_good else ""),
                secret=":" in value,  # as in user:password
            )
        return value

    return matching(check, pattern, allowed)


def _host(value: str) -> str:
    """Return the first label of a host name, such as that of a registry."""
    return value.partition(".")[0]


def _letters_and_digits(value: str) -> str:
    return re.sub(r"[^a-z0-9]", "", value.lower())


def _hyphenated(value: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")


ResourceGroupName = Annotated[
    str,
    _named(
        "resource group",
        r"[A-Za-z0-9_().-]{0,89}[A-Za-z0-9_()-]",
        "1 to 90 of a-z, A-Z, 0-9, _, -, . and parentheses, not with a . at the end",
        lambda value: _hyphenated(value)[:90].strip("-"),
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
        lambda value: _letters_and_digits(_host(value)).ljust(5, "0")[:50],
    ),
]
AccountName = Annotated[
    str,
    _named(
        "storage account",
        r"[a-z0-9]{3,24}",
        "3 to 24 lower-case letters and digits, unique in all of Azure",
        lambda value: _letters_and_digits(_host(value)).ljust(3, "0")[:24],
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
        rf"(?!(?:{_NO_ADMIN})$)[a-z_][a-z0-9_-]{{0,31}}",
        "1 to 32 lower-case letters, digits, _ and -, with a letter or _ first; not a name that attackers try, such "
        "as root, admin, user or test",
        lambda value: "azureuser",
    ),
]


def _guid(value: str) -> str:
    if not GUID.fullmatch(value) or value == _NOBODY:
        reject(
            "the all-zero ID is invalid" if value == _NOBODY else "this is not an ID of Azure or Entra",
            "`az account show --query id` prints a subscription's, `az ad group show --query id` a group's",
            expected=_GUIDS,
        )
    return value.lower()


TimeOfDay = Annotated[
    str,
    form(
        "([01][0-9]|2[0-3]):[0-5][0-9]",
        "hours and minutes, 00:00 to 23:59",
        "this is not a time of day",
        'write it in quotes, such as "02:00"',
    ),
]
UtcOffset = Annotated[
    str,
    form(
        "[+-](0[0-9]|1[0-4]):[0-5][0-9]",
        "a sign, hours and minutes, such as +00:00",
        "this is not a UTC offset",
        'for example "+01:00", or "+00:00" for UTC',
    ),
]
KubernetesVersion = Annotated[
    str,
    form(
        r"[0-9]+\.[0-9]+(\.[0-9]+)?",
        "a minor version such as 1.35, or one with a patch such as 1.35.7",
        "this is not a version of Kubernetes",
        f'for example "{versions.DEFAULT}"',
    ),
]
Guid = Annotated[str, matching(_guid, GUID.pattern, _GUIDS)]


def _resource_id(kind: str, command: str) -> Rule:
    """Return a validator of resource IDs. kind: with its provider. command: prints such an ID."""
    path = rf"/subscriptions/{GUID.pattern}/resource[gG]roups/[\w().-]{{1,90}}/providers/{kind}/[\w.-]{{1,80}}"
    allowed = f"/subscriptions/<id>/resourceGroups/<group>/providers/{kind}/<name>"
    return form(path, allowed, "this is not such a resource ID", f"`{command}` prints it")


WorkspaceId = Annotated[
    str,
    _resource_id(
        "Microsoft.OperationalInsights/workspaces",
        "az monitor log-analytics workspace show --resource-group GROUP --workspace-name NAME --query id",
    ),
]
ReservationGroupId = Annotated[
    str,
    _resource_id(
        "Microsoft.Compute/capacityReservationGroups",
        "az capacity reservation group show --resource-group GROUP --capacity-reservation-group NAME --query id",
    ),
]


def _network(value: str) -> str:
    """Return an IPv4 network. Rejects other texts, and addresses of machines in a network."""
    allowed = _NETWORKS
    try:
        loose = ip_network(value, strict=False)
    except (NetmaskValueError, ValueError):
        reject("this is not a network", "write an address, a slash and the prefix length", expected=allowed)
    if not isinstance(loose, IPv4Network):
        reject("this is an IPv6 network", "write an IPv4 network", expected=allowed)
    if str(loose.network_address) != value.split("/")[0]:
        reject("this is a machine's address in a network", f"did you mean {loose}?", expected=allowed)
    return str(loose)


Cidr = Annotated[str, matching(_network, r"[0-9.]+(/[0-9.]+)?", _NETWORKS)]


def ranges(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return networks that may connect to the API server. AKS limits their number."""
    if len(values) > _MOST_RANGES:
        reject(
            f"these are {len(values)} networks",
            "merge adjacent networks",
            expected=f"at most {_MOST_RANGES}, AKS' limit",
        )
    return values


def _zones(values: tuple[str, ...]) -> tuple[str, ...]:
    bad = [value for value in values if value not in _ZONES]
    if bad or len(set(values)) < len(values):
        reject(
            f"there is no zone {shown(bad[0])}" if bad else "duplicate zone",
            'for example ["1"]',
            expected='any of "1", "2" and "3", each once; [] for any zone with capacity',
        )
    return values


_Zone = Annotated[str, WithJsonSchema({"type": "string", "enum": list(_ZONES)})]
Zones = Annotated[tuple[_Zone, ...], AfterValidator(_zones)]


def tags(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return tags as Azure Resource Manager takes them."""
    allowed = (
        f"at most {MOST_TAGS} tags, with names of 1 to {_TAG_NAME} characters other than <>%&\\?/ and values of at "
        f"most {_TAG_VALUE} characters"
    )
    lowered = [name.lower() for name in values]
    if len(values) > MOST_TAGS:
        reject(f"these are {len(values)} tags", f"remove {len(values) - MOST_TAGS} of them", expected=allowed)
    for name, value in values.items():
        if not 0 < len(name) <= _TAG_NAME or re.search(r"[<>%&\\?/]", name):
            reject(f"Azure would reject the tag name {name!r}", "write another name", expected=allowed)
        if name.lower().startswith(_RESERVED_TAGS):
            reject(
                f"Azure reserves names like {name!r}",
                "write another name",
                expected=f"names that do not start with {listed(_RESERVED_TAGS)}; {allowed}",
            )
        if len(value) > _TAG_VALUE:
            reject(f"the value of tag {name!r} has {len(value)} characters", "shorten it", expected=allowed)
        if lowered.count(name.lower()) > 1:
            reject(f"duplicate tag {name!r}: Azure ignores the case of tag names", "remove one", expected=allowed)
    return values


def ssh_public_key(value: str) -> str:
    """Return a public key, without spaces around it. Rejects keys as AKS does (Azure/AKS issues 1172 and 4431)."""
    # Imported here, because only this target needs it.
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    allowed = SSH_KEYS
    new = "run `ssh-keygen -t rsa -b 4096 -f ~/.ssh/aks` and write the content of ~/.ssh/aks.pub here"
    key, public = ssh_key.load(value, allowed=allowed, new=new)
    if not isinstance(public, RSAPublicKey):
        reject(f"AKS does not accept keys of type {key.split()[0]}", new, expected=allowed)
    if public.key_size < LEAST_RSA_BITS:
        reject(f"this key has {public.key_size} bits", new, expected=allowed)
    return key


def gpu_size(value: str) -> str:
    """Return a VM size of the GPU pool."""
    if value not in GPU_SIZES:
        has_none = is_vm_size(value) and not family_of(value).startswith("N")
        reject(
            "this VM size has no GPU" if has_none else "the program does not support this VM size",
            "use one of those" if has_none else instead(value, GPU_SIZES, "use one of those", likeness=0.9),
            expected=listed(GPU_SIZES),
        )
    return value


def os_sku(value: str) -> str:
    """Return an operating system of the nodes."""
    if value not in OS_SKUS:
        fix = f"set it to {OS_SKUS[0]}, which is Ubuntu 24.04 from Kubernetes 1.35 on"
        reject("the program does not support this OS SKU", fix, expected=listed(OS_SKUS))
    return value


def system_size(value: str) -> str:
    """Return a VM size of the system pool that meets AKS' requirements."""
    allowed = f"a VM size of at least {LEAST_SYSTEM_VCPUS} vCPUs with neither GPUs (N...) nor bursts (B...)"
    fix = "for example Standard_D4s_v5"
    if not is_vm_size(value):
        reject("this is not the name of a VM size", fix, expected=allowed)
    if family_of(value).startswith("N"):
        reject("this VM size has GPUs, which the cluster's own pods do not use", fix, expected=allowed)
    if family_of(value).startswith("B"):
        reject("AKS does not accept burstable VM sizes for system pools", fix, expected=allowed)
    vcpus = vcpus_of(value)
    if vcpus is None or vcpus < LEAST_SYSTEM_VCPUS:
        reject(
            "the number of vCPUs of this old VM size is unknown"
            if vcpus is None
            else f"{vcpus} vCPUs are too few for the cluster's own pods and the platform's controllers",
            fix,
            expected=allowed,
        )
    return value
