"""What spans sections of target `aks`: volumes against namespaces, accounts and tokens, checks against machines."""

from __future__ import annotations

from collections.abc import Iterator

from components.azure.baselines import BASELINES
from stacks.aks.settings.azure import AzureSettings
from stacks.aks.settings.health import AksHealthSettings
from stacks.aks.settings.storage import StorageSettings
from stacks.errors import ConfigError, key, listed, nearest
from stacks.partial import PartialSettings
from stacks.secrets import BLOB_SAS_TOKEN
from stacks.settings.workloads import WorkloadsSettings


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield what is wrong between the target's sections and others."""
    storage, health, pool = partial.section(StorageSettings), partial.section(AksHealthSettings), partial.pool
    if storage is not None:
        yield from _namespaces(partial, storage)
        yield from _accounts(partial, storage)
        yield from _token(storage, BLOB_SAS_TOKEN in partial.secrets)
    checked = health is not None and health.node_check.enabled
    if checked and pool is not None and pool.shape.instance_type not in BASELINES:
        yield ConfigError(
            path=("health", "nodeCheck", "enabled"),
            value=True,
            message=f"nobody has said what a healthy {pool.shape.instance_type} is",
            expected=f"false, or nodes of {listed(BASELINES)}",
            hint="turn the check off, or take other machines",
        )


def _namespaces(partial: PartialSettings, storage: StorageSettings) -> Iterator[ConfigError]:
    """Refuse a namespace that the stack does not create: the claim would have no place."""
    workloads = partial.section(WorkloadsSettings)
    if workloads is None or None in partial.team_names:
        return
    known = [workloads.namespace, *(str(name) for name in partial.team_names)]
    for index, volume in enumerate(storage.volumes):
        if volume.namespace not in known:
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
