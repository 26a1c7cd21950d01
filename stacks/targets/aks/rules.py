"""Rules between sections of target `aks`: volumes, namespaces, accounts and tokens, and checks of machines."""

from collections.abc import Iterator, Sequence
from typing import Final

from components import names
from components.azure.aks import BLOCK_CLASS, DISKS, LARGEST_DISK, LONGEST_IDENTITY, SHARES, namespace_identity
from components.azure.baselines import BASELINES
from components.azure.sizes import takes_premium_disks
from components.azure.storage_classes import FILES, FILES_NFS
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import Quantity
from stacks.config.errors import MISSING, ConfigError, Path, instead, key, listed
from stacks.config.secrets import BLOB_SAS_TOKEN
from stacks.derived.partial import PartialSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.tenancy import TenancySettings
from stacks.settings.workloads import WorkloadsSettings
from stacks.targets.aks.settings import AksGpuSettings, support
from stacks.targets.aks.settings.azure import AzureSettings
from stacks.targets.aks.settings.health import AksHealthSettings
from stacks.targets.aks.settings.options import NETWORK_POLICIES
from stacks.targets.aks.settings.storage import StorageSettings
from stacks.targets.aks.settings.values import GUID
from stacks.validation import network
from stacks.validation.names import usable_teams
from stacks.validation.walk import apply

_SHARES: Final = (FILES, FILES_NFS)
"""The stack's storage classes for volumes that many nodes mount."""


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors between the target's sections and others."""
    yield from apply(partial, _namespaces, _accounts, _identities, _token, _parts, _network, _autoscale, _drain, _disks)
    yield from apply(partial, _purposes, _addresses, _baseline)


def _baseline(partial: PartialSettings, health: AksHealthSettings, pool: NodePool) -> Iterator[ConfigError]:
    """Reject a check of machines whose expected results are unknown."""
    if health.node_check.enabled and pool.shape.instance_type not in BASELINES:
        yield ConfigError(
            ("health", "nodeCheck", "enabled"),
            f"there is no baseline for {pool.shape.instance_type}",
            "set it to false, or mlbatch:azure.gpuPool.vmSize to one of these",
            expected=f"false, or nodes of {listed(BASELINES)}",
        )


def _parts(partial: PartialSettings, gpu: AksGpuSettings) -> Iterator[ConfigError]:
    """Reject a cluster without drivers, or without the node labels that the drivers' operators need.

    The pool's nodes have no driver (`components.azure.gpu_pool`), and both operators select nodes by the
    labels of Node Feature Discovery.
    """
    brought = "the nodes do not have it, and only the operator installs it"
    labels = "the drivers' operators select nodes by its labels, and the nodes have no such labels of their own"
    devices = f"the nodes have no driver and no device plugin of their own, and would not offer {names.GPU}"
    wanted = (
        ("operator", gpu.operator, devices),
        ("installDriver", gpu.install_driver, brought),
        ("installToolkit", gpu.install_toolkit, brought),
        ("featureDiscovery", gpu.feature_discovery, labels),
    )
    for name, is_on, wrong in wanted:
        if not is_on:
            yield ConfigError(("gpu", name), wrong, "remove the key")


def _network(partial: PartialSettings, azure: AzureSettings) -> Iterator[ConfigError]:
    """Reject NetworkPolicies without an engine that enforces them."""
    if azure.network.policy == "none" and network.has_policies(partial):
        yield ConfigError(
            ("azure", "network", "policy"),
            "AKS would not enforce the NetworkPolicies that isolate the teams' pods",
            "remove the key",
            expected=f"{listed(NETWORK_POLICIES[:-1])}; or none with mlbatch:tenancy.network.enabled: false, "
            "and any pod can reach any other",
        )


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield warnings about allowed settings that are probably unintended or will fail soon."""
    yield from apply(partial, _support, _classes, _members)


def _support(partial: PartialSettings, azure: AzureSettings) -> Iterator[str]:
    yield from support.warnings(azure)


def _members(partial: PartialSettings, azure: AzureSettings) -> Iterator[str]:
    """Yield warnings about team members whose names Entra never presents.

    Source: learn.microsoft.com/azure/aks/azure-ad-rbac: users are bound by principal name, guests by object ID,
    and groups by object ID.
    """
    if not azure.access.admin_groups:
        return
    for index, team in partial.numbered_teams:
        for field, unknown, presented in (
            (
                "users",
                [name for name in team.users if "@" not in name and not GUID.fullmatch(name)],
                "principal names, such as ada@example.org, or guests' object IDs",
            ),
            ("groups", [name for name in team.groups if not GUID.fullmatch(name)], "object IDs"),
        ):
            if unknown:
                yield (
                    f"{key(('teams', index, field))}: Entra presents {field} by {presented}, so {listed(unknown)} will "
                    "never match; members also need Azure Kubernetes Service Cluster User Role on the cluster"
                )


def _classes(partial: PartialSettings) -> Iterator[str]:
    """Yield warnings about storage classes that neither AKS nor the stack creates: claims would stay pending."""
    for path, name, good in _claimed(partial):
        if name not in (*DISKS, *_SHARES, *SHARES):
            yield (
                f"{key(path)}: neither AKS nor the stack creates the storage class {name}, and the volume stays "
                f"pending until it exists. Create it, or use one of {listed(good)}"
            )


def _claimed(partial: PartialSettings) -> Iterator[tuple[Path, str, Sequence[str]]]:
    """Yield the storage classes that the settings name for the stack's own claims, with the suitable classes."""
    monitoring, workloads = partial.section(MonitoringSettings), partial.section(WorkloadsSettings)
    wanted: list[tuple[Path, str | None, Sequence[str]]] = []
    if monitoring is not None and monitoring.enabled:
        wanted.append((("monitoring", "storageClass"), monitoring.storage_class, DISKS))
    if workloads is not None and workloads.jupyterlab.enabled:
        wanted.append((("workloads", "jupyterlab", "storageClass"), workloads.jupyterlab.storage_class, _SHARES))
    if workloads is not None and workloads.logs_needed():
        wanted.append((("workloads", "logs", "storageClass"), workloads.logs.storage_class, _SHARES))
    yield from ((path, name, good) for path, name, good in wanted if name is not None)


def _purposes(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject disks for volumes that several nodes mount, shares for metrics, AKS's own shares, and too large disks.

    With AKS's own classes for shares, the driver stores the account's key in the claim's namespace. Prometheus supports
    neither NFS nor file systems that are not POSIX-compliant (prometheus.io/docs/prometheus/latest/storage).
    """
    for path, name, good in _claimed(partial):
        if name in (*DISKS, *_SHARES, *SHARES) and name not in good:
            if name in DISKS:
                wrong = "volumes of this class are disks for one node, but several nodes mount this volume"
            elif good is DISKS:
                wrong = "volumes of this class are shares, on which Prometheus loses data"
            else:
                wrong = "with this class, the team's pods can read the key of a storage account that all teams use"
            yield ConfigError(
                path, wrong, "use one of those, or remove the key", expected=f"{listed(good)}, or a class of your own"
            )
    monitoring = partial.section(MonitoringSettings)
    if monitoring is None or not monitoring.enabled or (monitoring.storage_class or BLOCK_CLASS) not in DISKS:
        return
    for name, size in (
        ("storage", monitoring.storage),
        ("alertmanagerStorage", monitoring.alertmanager_storage),
        ("grafanaStorage", monitoring.grafana_storage),
    ):
        if size is not None and size > Quantity.parse(LARGEST_DISK):
            yield ConfigError(
                ("monitoring", name),
                "Azure does not have disks of this size",
                "lower it",
                expected=f"at most {LARGEST_DISK}",
            )


def _addresses(partial: PartialSettings, workloads: WorkloadsSettings) -> Iterator[ConfigError]:
    """Reject IPv6 networks: the cluster's network and load balancer have only IPv4."""
    lab = workloads.jupyterlab
    for index, text in enumerate(lab.source_ranges if lab.enabled else ()):
        if ":" in text:
            yield ConfigError(
                ("workloads", "jupyterlab", "sourceRanges", index),
                "the cluster's network does not support IPv6, so no client could connect from there",
                "remove it, or write the IPv4 network",
                expected="IPv4 networks, such as 203.0.113.0/24",
            )


def _autoscale(partial: PartialSettings, azure: AzureSettings) -> Iterator[ConfigError]:
    """Reject an empty pool that the autoscaler would never fill.

    The autoscaler derives a new node's resources from the VM's size and the scale set's tags, and a
    size's InfiniBand ports are not in it (kubernetes/autoscaler, cloudprovider/azure/azure_template.go).
    """
    for each, (path, pool) in zip(partial.every_pool, azure.gpu_pools.items(), strict=False):
        fabric = each.fabric
        if pool.autoscale is None or pool.autoscale.min > 0 or fabric is None or fabric.resource is None:
            continue
        yield ConfigError(
            (*path, "autoscale", "min"),
            f"without nodes, the autoscaler does not know that a new one has {fabric.resource}: a job that "
            "requests it would stay pending",
            "set it to 1, or mlbatch:gpu.fabric.enabled to false for jobs on single nodes",
        )


def _namespaces(
    partial: PartialSettings, storage: StorageSettings, workloads: WorkloadsSettings
) -> Iterator[ConfigError]:
    """Reject a namespace that the stack does not create: the claim could not be created."""
    if None in partial.team_names:
        return
    known = [workloads.namespace, *usable_teams(partial)]
    for index, volume in enumerate(storage.volumes):
        if volume.namespace is not None and volume.namespace not in known:
            yield ConfigError(
                ("storage", "volumes", index, "namespace"),
                "the stack does not create this namespace",
                instead(volume.namespace, known, f"set it to {known[0]}, or add the team to mlbatch:teams"),
                expected=f"{listed(known)}: the namespace of mlbatch:workloads or the name of a team",
            )


def _accounts(partial: PartialSettings, storage: StorageSettings, azure: AzureSettings) -> Iterator[ConfigError]:
    """Reject a volume of the stack's own account if there is none, or if the volume names it explicitly."""
    for index, volume in enumerate(storage.volumes):
        where: Path = ("storage", "volumes", index, "account")
        if azure.storage is None and volume.account is None:
            yield ConfigError(
                where,
                "the volume names no account, and without mlbatch:azure.storage the stack has none itself",
                "set it, or set mlbatch:azure.storage",
            )
        elif azure.storage is not None and volume.account == azure.storage.account:
            yield ConfigError(
                where,
                "this is the stack's own account, and with its name here the nodes get no rights on it",
                "remove the key",
            )


def _identities(partial: PartialSettings, storage: StorageSettings, azure: AzureSettings) -> Iterator[ConfigError]:
    """Reject a volume whose namespace's identity would have a name that is too long for Azure."""
    workloads = partial.section(WorkloadsSettings)
    for index, volume in enumerate(storage.volumes):
        name = namespace_identity(azure.cluster_name, volume.home(workloads))
        if volume.uses_namespace and len(name) > LONGEST_IDENTITY:
            yield ConfigError(
                ("storage", "volumes", index, "access"),
                f"the identity of its namespace would have the name {name}, with {len(name)} characters",
                "shorten mlbatch:azure.clusterName or the namespace",
                expected=f"a name of at most {LONGEST_IDENTITY} characters",
            )


def _drain(partial: PartialSettings, azure: AzureSettings, tenancy: TenancySettings) -> Iterator[ConfigError]:
    """Reject upgrades that wait for a shorter time than a pod may take to end."""
    if not network.has_teams(partial):
        return
    minutes, grace = azure.upgrades.drain_timeout_minutes, tenancy.longest_grace_seconds
    if minutes * 60 < grace:
        yield ConfigError(
            ("azure", "upgrades", "drainTimeoutMinutes"),
            f"teams' pods may take {grace} seconds to end (mlbatch:tenancy.longestGraceSeconds), and "
            "the upgrade of a node would fail earlier",
            "raise it, or lower mlbatch:tenancy.longestGraceSeconds",
            expected=f"at least {-(-grace // 60)}",
        )


def _disks(partial: PartialSettings, azure: AzureSettings, monitoring: MonitoringSettings) -> Iterator[ConfigError]:
    """Reject system nodes that cannot attach the premium disk that Prometheus requests."""
    if not monitoring.enabled:
        return
    size = azure.system_pool.vm_size
    if (monitoring.storage_class or BLOCK_CLASS) == BLOCK_CLASS and not takes_premium_disks(size):
        yield ConfigError(
            ("azure", "systemPool", "vmSize"),
            f"this VM size cannot attach premium disks, and Prometheus requests one of class {BLOCK_CLASS}",
            "set it to such a size, or set mlbatch:monitoring.storageClass to managed-csi",
            expected="a VM size with an s after the number of its vCPUs, such as Standard_D4s_v5",
        )


def _token(partial: PartialSettings, storage: StorageSettings) -> Iterator[ConfigError]:
    has_token = BLOB_SAS_TOKEN in partial.secrets
    users = [index for index, volume in enumerate(storage.volumes) if volume.uses_token]
    if has_token and not users:
        yield ConfigError(
            (BLOB_SAS_TOKEN,),
            "no volume uses this SAS token",
            f"run `pulumi config rm {key((BLOB_SAS_TOKEN,))}`, or set `access: sas` for a volume in "
            f"{key(('storage', 'volumes'))}",
            value=MISSING,
        )
    for index in [] if has_token else users:
        yield ConfigError(
            ("storage", "volumes", index, "access"),
            "this volume needs a SAS token, and the stack has none",
            f"run `pulumi config set --secret {key((BLOB_SAS_TOKEN,))}`, which asks for the token (read and list "
            "are enough), or remove the key; the default is managedIdentity",
        )
