"""What spans sections of target `aks`: volumes against namespaces, accounts and tokens, checks against machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from components import names
from components.azure.aks import BLOCK_CLASS, DISKS, LARGEST_DISK, LONGEST_IDENTITY, SHARES, namespace_identity
from components.azure.baselines import BASELINES
from components.azure.sizes import takes_premium_disks
from components.azure.storage_classes import FILES, FILES_NFS
from components.kubernetes.quantity import Quantity
from stacks.config.errors import ConfigError, Path, key, listed, nearest
from stacks.config.secrets import BLOB_SAS_TOKEN
from stacks.derived.partial import PartialSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.tenancy import TenancySettings
from stacks.settings.workloads import WorkloadsSettings
from stacks.targets.aks.settings import AksGpuSettings, support
from stacks.targets.aks.settings.azure import AzureSettings
from stacks.targets.aks.settings.health import AksHealthSettings
from stacks.targets.aks.settings.options import NETWORK_POLICIES, BlobStorageSettings
from stacks.targets.aks.settings.storage import StorageSettings, VolumeSettings
from stacks.targets.aks.settings.values import GUID
from stacks.validation import network

_SHARES: Final = (FILES, FILES_NFS)
"""Storage classes of the stack whose volumes many nodes mount."""


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield what is wrong between the target's sections and others."""
    storage, health, pool = partial.section(StorageSettings), partial.section(AksHealthSettings), partial.pool
    if storage is not None:
        yield from _namespaces(partial, storage)
        yield from _accounts(partial, storage)
        yield from _identities(partial, storage)
        yield from _token(storage, BLOB_SAS_TOKEN in partial.secrets)
    yield from _parts(partial)
    yield from _network(partial)
    yield from _autoscale(partial)
    yield from _drain(partial)
    yield from _disks(partial)
    yield from _purposes(partial)
    yield from _addresses(partial)
    checked = health is not None and health.node_check.enabled
    if checked and pool is not None and pool.shape.instance_type not in BASELINES:
        yield ConfigError(
            path=("health", "nodeCheck", "enabled"),
            value=True,
            message=f"nobody has said what a healthy {pool.shape.instance_type} is",
            expected=f"false, or nodes of {listed(BASELINES)}",
            hint="turn the check off, or take other machines",
        )


def _parts(partial: PartialSettings) -> Iterator[ConfigError]:
    """Refuse to leave out what a new cluster has from nobody else: drivers, and the labels of nodes to install them on.

    The pool's nodes come without a driver (`components.azure.gpu_pool`), and both operators look for nodes by the
    labels of Node Feature Discovery.
    """
    gpu = partial.section(AksGpuSettings)
    if gpu is None:
        return
    if not gpu.operator:
        yield ConfigError(
            path=("gpu", "operator"),
            value=False,
            message=f"the nodes come without a driver and a device plugin, and nobody else would offer {names.GPU}",
            expected="true on nodes that the stack makes",
            hint="remove the key",
        )
    for name, brought in (("installDriver", gpu.install_driver), ("installToolkit", gpu.install_toolkit)):
        if not brought:
            yield ConfigError(
                path=("gpu", name),
                value=False,
                message="the nodes come without it, and nobody else would bring it",
                expected="true on nodes that the stack makes",
                hint="remove the key",
            )
    if not gpu.feature_discovery:
        yield ConfigError(
            path=("gpu", "featureDiscovery"),
            value=False,
            message="the operators of drivers go to the nodes that it labels, and nobody else would label any",
            expected="true on nodes that the stack makes",
            hint="remove the key",
        )


def _network(partial: PartialSettings) -> Iterator[ConfigError]:
    """Refuse NetworkPolicies that nothing enforces."""
    azure = partial.section(AzureSettings)
    if azure is not None and azure.network.policy == "none" and network.has_policies(partial):
        yield ConfigError(
            path=("azure", "network", "policy"),
            value=azure.network.policy,
            message="nothing would enforce the NetworkPolicies that keep the teams' pods apart",
            expected=f"{listed(NETWORK_POLICIES[:-1])}; none with {key(('tenancy', 'network', 'enabled'))}: false, by "
            "which any pod reaches any other",
            hint="remove the key",
        )


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield what is allowed and most likely not meant, or will not do for long."""
    azure = partial.section(AzureSettings)
    if azure is not None:
        yield from support.warnings(azure)
    yield from _classes(partial)
    yield from _members(partial)


def _members(partial: PartialSettings) -> Iterator[str]:
    """Yield members of teams as Entra presents nobody.

    Source: learn.microsoft.com/azure/aks/azure-ad-rbac, which binds users by principal name or, guests, by object id,
    and groups by object id.
    """
    azure = partial.section(AzureSettings)
    if azure is None or not azure.access.admin_groups:
        return
    for index, team in enumerate(partial.known_teams):
        for field, unknown, presented in (
            (
                "users",
                [name for name in team.users if "@" not in name and not GUID.fullmatch(name)],
                "principal names, such as ada@example.org, or guests' object ids",
            ),
            ("groups", [name for name in team.groups if not GUID.fullmatch(name)], "object ids"),
        ):
            if unknown:
                yield (
                    f"{key(('teams', index, field))}: Entra presents {field} by {presented}, so that {listed(unknown)} "
                    "will be nobody; members also need Azure Kubernetes Service Cluster User Role on the cluster"
                )


def _classes(partial: PartialSettings) -> Iterator[str]:
    """Yield storage classes that neither AKS nor the stack makes: a claim would wait for somebody to make them."""
    for path, name, good in _claimed(partial):
        if name not in (*DISKS, *_SHARES, *SHARES):
            yield (
                f"{key(path)}: neither AKS nor the stack makes a storage class {name}, and the volume waits until "
                f"somebody does; there are {listed(good)}"
            )


def _claimed(partial: PartialSettings) -> Iterator[tuple[Path, str, Sequence[str]]]:
    """Yield the storage classes that the settings name for the stack's own claims, with those that can do it."""
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
    """Refuse disks for what several nodes mount, shares for metrics, AKS's own shares, and a disk that is too large.

    With AKS's own classes for shares, the driver stores the account's key in the claim's namespace. Prometheus supports
    neither file systems that are not POSIX's nor NFS (prometheus.io/docs/prometheus/latest/storage).
    """
    for path, name, good in _claimed(partial):
        if name in (*DISKS, *_SHARES, *SHARES) and name not in good:
            if name in DISKS:
                wrong = "volumes of this class are disks, which one node mounts, and several nodes mount this one"
            elif good is DISKS:
                wrong = "volumes of this class are shares, on which Prometheus loses what it records"
            else:
                wrong = "with this class, the team's pods can read the key of a storage account that teams share"
            yield ConfigError(
                path=path,
                value=name,
                message=wrong,
                expected=f"{listed(good)}, or a class of your own",
                hint="take one of those, or remove the key",
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
                path=("monitoring", name),
                value=str(size),
                message="Azure makes no disk of this size",
                expected=f"at most {LARGEST_DISK}",
                hint="lower it",
            )


def _addresses(partial: PartialSettings) -> Iterator[ConfigError]:
    """Refuse IPv6 where the load balancer has none: the cluster's network is of IPv4 alone."""
    workloads = partial.section(WorkloadsSettings)
    lab = workloads.jupyterlab if workloads is not None else None
    for index, text in enumerate(lab.source_ranges if lab is not None and lab.enabled else ()):
        if ":" in text:
            yield ConfigError(
                path=("workloads", "jupyterlab", "sourceRanges", index),
                value=text,
                message="the cluster's network has no IPv6, so that nobody comes from there",
                expected="IPv4 networks, such as 203.0.113.0/24",
                hint="remove it, or write the IPv4 network",
            )


def _autoscale(partial: PartialSettings) -> Iterator[ConfigError]:
    """Refuse an empty pool that nothing would ever fill.

    What the autoscaler knows of a node that is yet to be comes from the VM's size and the scale set's tags, and a
    size's InfiniBand ports are not in it (kubernetes/autoscaler, cloudprovider/azure/azure_template.go).
    """
    azure = partial.section(AzureSettings)
    if azure is None:
        return
    for each, (path, pool) in zip(partial.every_pool, azure.gpu_pools.items(), strict=False):
        fabric = each.fabric
        if pool.autoscale is None or pool.autoscale.min > 0 or fabric is None or fabric.resource is None:
            continue
        yield ConfigError(
            path=(*path, "autoscale", "min"),
            value=pool.autoscale.min,
            message=f"without a node the autoscaler does not know that one would have {fabric.resource}, so that a job "
            "which asks for it waits for ever",
            expected="1 or more with InfiniBand",
            hint=f"set it to 1, or {key(('gpu', 'fabric', 'enabled'))} to false for jobs on single nodes",
        )


def _namespaces(partial: PartialSettings, storage: StorageSettings) -> Iterator[ConfigError]:
    """Refuse a namespace that the stack does not create: the claim would have no place."""
    workloads = partial.section(WorkloadsSettings)
    if workloads is None or None in partial.team_names:
        return
    known = [workloads.namespace, *(str(name) for name in partial.team_names)]
    for index, volume in enumerate(storage.volumes):
        if volume.namespace is not None and volume.namespace not in known:
            meant = nearest(volume.namespace, known)
            yield ConfigError(
                path=("storage", "volumes", index, "namespace"),
                value=volume.namespace,
                message="the stack has no such namespace",
                expected=f"{listed(known)} (that of the workloads, and the teams')",
                hint=f"did you mean {meant}?" if meant else f"set it to {known[0]}",
            )


def _accounts(partial: PartialSettings, storage: StorageSettings) -> Iterator[ConfigError]:
    """Refuse a volume of the stack's own account where the stack makes none, or under that account's name."""
    azure = partial.section(AzureSettings)
    if azure is None:
        return
    for index, volume in enumerate(storage.volumes):
        if azure.storage is not None:
            yield from _own_account(index, volume, azure.storage)
        elif volume.account is None:
            yield ConfigError(
                path=("storage", "volumes", index, "account"),
                message=f"the volume names no account, and without {key(('azure', 'storage'))} the stack has none "
                "itself",
                expected="the name of a storage account",
                hint=f"set it, or set {key(('azure', 'storage'))}",
            )


def _own_account(index: int, volume: VolumeSettings, own: BlobStorageSettings) -> Iterator[ConfigError]:
    path = ("storage", "volumes", index)
    if volume.account == own.account:
        yield ConfigError(
            path=(*path, "account"),
            value=volume.account,
            message="this is the stack's own account, and as another's the nodes get no rights on it",
            expected=f"the name of another account, or nothing for {key(('azure', 'storage', 'account'))}",
            hint="remove the key",
        )


def _identities(partial: PartialSettings, storage: StorageSettings) -> Iterator[ConfigError]:
    """Refuse a volume whose namespace's identity would have a longer name than Azure takes."""
    azure, workloads = partial.section(AzureSettings), partial.section(WorkloadsSettings)
    if azure is None:
        return
    for index, volume in enumerate(storage.volumes):
        name = namespace_identity(azure.cluster_name, volume.home(workloads))
        if volume.uses_namespace and len(name) > LONGEST_IDENTITY:
            yield ConfigError(
                path=("storage", "volumes", index, "access"),
                value=volume.access,
                message=f"the identity of its namespace would be called {name}, which is {len(name)} characters long",
                expected=f"a name of at most {LONGEST_IDENTITY} characters",
                hint=f"shorten {key(('azure', 'clusterName'))} or the namespace",
            )


def _drain(partial: PartialSettings) -> Iterator[ConfigError]:
    """Refuse upgrades that wait less than a pod may take to end."""
    azure, tenancy = partial.section(AzureSettings), partial.section(TenancySettings)
    if azure is None or tenancy is None or not network.has_teams(partial):
        return
    minutes, grace = azure.upgrades.drain_timeout_minutes, tenancy.longest_grace_seconds
    if minutes * 60 < grace:
        yield ConfigError(
            path=("azure", "upgrades", "drainTimeoutMinutes"),
            value=minutes,
            message=f"pods of teams may take {grace} seconds to end ({key(('tenancy', 'longestGraceSeconds'))}), and "
            "the upgrade of a node would fail before",
            expected=f"at least {-(-grace // 60)}",
            hint=f"raise it, or lower {key(('tenancy', 'longestGraceSeconds'))}",
        )


def _disks(partial: PartialSettings) -> Iterator[ConfigError]:
    """Refuse system nodes that cannot attach the premium disk that Prometheus asks for."""
    azure, monitoring = partial.section(AzureSettings), partial.section(MonitoringSettings)
    if azure is None or monitoring is None or not monitoring.enabled:
        return
    size = azure.system_pool.vm_size
    if (monitoring.storage_class or BLOCK_CLASS) == BLOCK_CLASS and not takes_premium_disks(size):
        yield ConfigError(
            path=("azure", "systemPool", "vmSize"),
            value=size,
            message=f"it cannot attach premium disks, and Prometheus asks for one of class {BLOCK_CLASS}",
            expected="a VM size with an s behind the number of its vCPUs, such as Standard_D4s_v5",
            hint=f"take such a size, or set {key(('monitoring', 'storageClass'))} to managed-csi",
        )


def _token(storage: StorageSettings, has_token: bool) -> Iterator[ConfigError]:
    users = [index for index, volume in enumerate(storage.volumes) if volume.uses_token]
    if has_token and not users:
        yield ConfigError(
            path=(BLOB_SAS_TOKEN,),
            message="there is a SAS token that no volume uses",
            expected="a token only where a volume has access: sas",
            hint=f"run `pulumi config rm {key((BLOB_SAS_TOKEN,))}`, or set access of a volume to sas",
        )
    for index in [] if has_token else users:
        yield ConfigError(
            path=("storage", "volumes", index, "access"),
            value="sas",
            message="the volume is to be reached with a SAS token, and the stack has none",
            expected=f"managedIdentity, or sas together with the secret key {key((BLOB_SAS_TOKEN,))}",
            hint=f"run `pulumi config set --secret {key((BLOB_SAS_TOKEN,))}`, which asks for the token (read and list "
            "are enough), or remove the key access",
        )
