"""Rules between sections of target `aks`: volumes, namespaces, accounts and tokens, and checks of machines."""

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
"""The stack's storage classes for volumes that many nodes mount."""


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors between the target's sections and others."""
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
            message=f"there is no baseline for {pool.shape.instance_type}",
            expected=f"false, or nodes of {listed(BASELINES)}",
            hint="switch the check off, or use other machines",
        )


def _parts(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject a cluster without drivers, or without the node labels that the drivers' operators need.

    The pool's nodes have no driver (`components.azure.gpu_pool`), and both operators select nodes by the
    labels of Node Feature Discovery.
    """
    gpu = partial.section(AksGpuSettings)
    if gpu is None:
        return
    if not gpu.operator:
        yield ConfigError(
            path=("gpu", "operator"),
            value=False,
            message=f"the nodes have no driver and no device plugin of their own, and would not offer {names.GPU}",
            expected="true on nodes that the stack creates",
            hint="remove the key",
        )
    for name, brought in (("installDriver", gpu.install_driver), ("installToolkit", gpu.install_toolkit)):
        if not brought:
            yield ConfigError(
                path=("gpu", name),
                value=False,
                message="the nodes do not have it, and only the operator installs it",
                expected="true on nodes that the stack creates",
                hint="remove the key",
            )
    if not gpu.feature_discovery:
        yield ConfigError(
            path=("gpu", "featureDiscovery"),
            value=False,
            message="the drivers' operators select nodes by its labels, and the nodes have no such labels of their own",
            expected="true on nodes that the stack creates",
            hint="remove the key",
        )


def _network(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject NetworkPolicies without an engine that enforces them."""
    azure = partial.section(AzureSettings)
    if azure is not None and azure.network.policy == "none" and network.has_policies(partial):
        yield ConfigError(
            path=("azure", "network", "policy"),
            value=azure.network.policy,
            message="AKS would not enforce the NetworkPolicies that isolate the teams' pods",
            expected=f"{listed(NETWORK_POLICIES[:-1])}; or none with {key(('tenancy', 'network', 'enabled'))}: false, "
            "and any pod can reach any other",
            hint="remove the key",
        )


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield warnings about allowed settings that are probably unintended or will fail soon."""
    azure = partial.section(AzureSettings)
    if azure is not None:
        yield from support.warnings(azure)
    yield from _classes(partial)
    yield from _members(partial)


def _members(partial: PartialSettings) -> Iterator[str]:
    """Yield warnings about team members whose names Entra never presents.

    Source: learn.microsoft.com/azure/aks/azure-ad-rbac: users are bound by principal name, guests by object ID,
    and groups by object ID.
    """
    azure = partial.section(AzureSettings)
    if azure is None or not azure.access.admin_groups:
        return
    for index, team in enumerate(partial.known_teams):
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
                path=path,
                value=name,
                message=wrong,
                expected=f"{listed(good)}, or a class of your own",
                hint="use one of those, or remove the key",
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
                message="Azure does not have disks of this size",
                expected=f"at most {LARGEST_DISK}",
                hint="lower it",
            )


def _addresses(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject IPv6 networks: the cluster's network and load balancer have only IPv4."""
    workloads = partial.section(WorkloadsSettings)
    lab = workloads.jupyterlab if workloads is not None else None
    for index, text in enumerate(lab.source_ranges if lab is not None and lab.enabled else ()):
        if ":" in text:
            yield ConfigError(
                path=("workloads", "jupyterlab", "sourceRanges", index),
                value=text,
                message="the cluster's network does not support IPv6, so no client could connect from there",
                expected="IPv4 networks, such as 203.0.113.0/24",
                hint="remove it, or write the IPv4 network",
            )


def _autoscale(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject an empty pool that the autoscaler would never fill.

    The autoscaler derives a new node's resources from the VM's size and the scale set's tags, and a
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
            message=f"without nodes, the autoscaler does not know that a new one has {fabric.resource}: a job that "
            "requests it would stay pending",
            expected="1 or more with InfiniBand",
            hint=f"set it to 1, or {key(('gpu', 'fabric', 'enabled'))} to false for jobs on single nodes",
        )


def _namespaces(partial: PartialSettings, storage: StorageSettings) -> Iterator[ConfigError]:
    """Reject a namespace that the stack does not create: the claim could not be created."""
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
                message="the stack does not create this namespace",
                expected=f"{listed(known)} (that of the workloads, and the teams')",
                hint=f"did you mean {meant}?" if meant else f"set it to {known[0]}",
            )


def _accounts(partial: PartialSettings, storage: StorageSettings) -> Iterator[ConfigError]:
    """Reject a volume of the stack's own account if there is none, or if the volume names it explicitly."""
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
            message="this is the stack's own account, and with its name here the nodes get no rights on it",
            expected=f"the name of another account, or no key for {key(('azure', 'storage', 'account'))}",
            hint="remove the key",
        )


def _identities(partial: PartialSettings, storage: StorageSettings) -> Iterator[ConfigError]:
    """Reject a volume whose namespace's identity would have a name that is too long for Azure."""
    azure, workloads = partial.section(AzureSettings), partial.section(WorkloadsSettings)
    if azure is None:
        return
    for index, volume in enumerate(storage.volumes):
        name = namespace_identity(azure.cluster_name, volume.home(workloads))
        if volume.uses_namespace and len(name) > LONGEST_IDENTITY:
            yield ConfigError(
                path=("storage", "volumes", index, "access"),
                value=volume.access,
                message=f"the identity of its namespace would have the name {name}, with {len(name)} characters",
                expected=f"a name of at most {LONGEST_IDENTITY} characters",
                hint=f"shorten {key(('azure', 'clusterName'))} or the namespace",
            )


def _drain(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject upgrades that wait for a shorter time than a pod may take to end."""
    azure, tenancy = partial.section(AzureSettings), partial.section(TenancySettings)
    if azure is None or tenancy is None or not network.has_teams(partial):
        return
    minutes, grace = azure.upgrades.drain_timeout_minutes, tenancy.longest_grace_seconds
    if minutes * 60 < grace:
        yield ConfigError(
            path=("azure", "upgrades", "drainTimeoutMinutes"),
            value=minutes,
            message=f"teams' pods may take {grace} seconds to end ({key(('tenancy', 'longestGraceSeconds'))}), and "
            "the upgrade of a node would fail earlier",
            expected=f"at least {-(-grace // 60)}",
            hint=f"raise it, or lower {key(('tenancy', 'longestGraceSeconds'))}",
        )


def _disks(partial: PartialSettings) -> Iterator[ConfigError]:
    """Reject system nodes that cannot attach the premium disk that Prometheus requests."""
    azure, monitoring = partial.section(AzureSettings), partial.section(MonitoringSettings)
    if azure is None or monitoring is None or not monitoring.enabled:
        return
    size = azure.system_pool.vm_size
    if (monitoring.storage_class or BLOCK_CLASS) == BLOCK_CLASS and not takes_premium_disks(size):
        yield ConfigError(
            path=("azure", "systemPool", "vmSize"),
            value=size,
            message=f"this VM size cannot attach premium disks, and Prometheus requests one of class {BLOCK_CLASS}",
            expected="a VM size with an s after the number of its vCPUs, such as Standard_D4s_v5",
            hint=f"use such a size, or set {key(('monitoring', 'storageClass'))} to managed-csi",
        )


def _token(storage: StorageSettings, has_token: bool) -> Iterator[ConfigError]:
    users = [index for index, volume in enumerate(storage.volumes) if volume.uses_token]
    if has_token and not users:
        yield ConfigError(
            path=(BLOB_SAS_TOKEN,),
            message="no volume uses this SAS token",
            expected="a token only if a volume has access: sas",
            hint=f"run `pulumi config rm {key((BLOB_SAS_TOKEN,))}`, or set access of a volume to sas",
        )
    for index in [] if has_token else users:
        yield ConfigError(
            path=("storage", "volumes", index, "access"),
            value="sas",
            message="this volume needs a SAS token, and the stack has none",
            expected=f"managedIdentity, or sas together with the secret key {key((BLOB_SAS_TOKEN,))}",
            hint=f"run `pulumi config set --secret {key((BLOB_SAS_TOKEN,))}`, which asks for the token (read and list "
            "are enough), or remove the key access",
        )
