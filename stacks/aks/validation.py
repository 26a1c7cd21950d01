"""What spans sections of target `aks`: volumes against namespaces, accounts and tokens, checks against machines."""

from __future__ import annotations

from collections.abc import Iterator

from components.azure.baselines import BASELINES
from stacks.aks.settings.azure import NETWORK_POLICIES, AzureSettings
from stacks.aks.settings.health import AksHealthSettings
from stacks.aks.settings.storage import StorageSettings
from stacks.aks.settings.values import GUID
from stacks.errors import ConfigError, key, listed, nearest
from stacks.partial import PartialSettings
from stacks.secrets import BLOB_SAS_TOKEN
from stacks.settings.workloads import WorkloadsSettings
from stacks.validation import network


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield what is wrong between the target's sections and others."""
    storage, health, pool = partial.section(StorageSettings), partial.section(AksHealthSettings), partial.pool
    if storage is not None:
        yield from _namespaces(partial, storage)
        yield from _accounts(partial, storage)
        yield from _token(storage, BLOB_SAS_TOKEN in partial.secrets)
    yield from _network(partial)
    yield from _autoscale(partial)
    checked = health is not None and health.node_check.enabled
    if checked and pool is not None and pool.shape.instance_type not in BASELINES:
        yield ConfigError(
            path=("health", "nodeCheck", "enabled"),
            value=True,
            message=f"nobody has said what a healthy {pool.shape.instance_type} is",
            expected=f"false, or nodes of {listed(BASELINES)}",
            hint="turn the check off, or take other machines",
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
    """Yield what is allowed and most likely not meant: members of teams as Entra presents nobody.

    Source: learn.microsoft.com/azure/aks/azure-ad-rbac, which binds users by principal name or, guests, by object id,
    and groups by object id.
    """
    azure = partial.section(AzureSettings)
    if azure is None or not azure.access.admin_groups:
        return
    for index, team in enumerate(partial.teams):
        if team is None:
            continue
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


def _autoscale(partial: PartialSettings) -> Iterator[ConfigError]:
    """Refuse an empty pool that nothing would ever fill.

    What the autoscaler knows of a node that is yet to be comes from the VM's size and the scale set's tags, and a
    size's InfiniBand ports are not in it (kubernetes/autoscaler, cloudprovider/azure/azure_template.go).
    """
    azure, fabric = partial.section(AzureSettings), partial.fabric
    scaling = azure.gpu_pool.autoscale if azure is not None else None
    if scaling is None or scaling.min > 0 or fabric is None or fabric.resource is None:
        return
    yield ConfigError(
        path=("azure", "gpuPool", "autoscale", "min"),
        value=scaling.min,
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
    """Refuse a volume of the stack's own account where the stack makes none."""
    azure = partial.section(AzureSettings)
    if azure is None or azure.storage is not None:
        return
    for index, volume in enumerate(storage.volumes):
        if volume.account is None:
            yield ConfigError(
                path=("storage", "volumes", index, "account"),
                message=f"the volume names no account, and without {key(('azure', 'storage'))} the stack has none "
                "itself",
                expected="the name of a storage account",
                hint=f"set it, or set {key(('azure', 'storage'))}",
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
