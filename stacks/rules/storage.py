"""Rules for volumes, and for tokens that stand where everybody can read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from components.compatibility import blobfuse_fault
from stacks.problems import Path, Problem, key, listed, nearest
from stacks.reading import Parts

TOKEN_KEY: Final = "blobSasToken"
"""The configuration's secret key with the SAS token."""

_SIGNATURE: Final = re.compile(r"(?:^|[?&\s\"'])sig=[^&\s]+")
_SIGNED: Final = re.compile(r"(?:^|[?&\s\"'])(?:sv|se|sp|sr|ss|st|skoid)=[^&\s]+")
_HIDDEN: Final = "(a SAS token, not shown)"


def check(parts: Parts) -> Iterator[Problem]:
    """Yield what is wrong with volumes."""
    if parts.storage is None:
        return
    yield from _driver(parts)
    yield from _names(parts)
    yield from _namespaces(parts)
    yield from _accounts(parts)
    yield from _token(parts, TOKEN_KEY in parts.secrets)


def looks_like_sas(text: str) -> bool:
    """Whether a text is or contains a shared access signature: `sig=` beside another of its parameters."""
    return bool(_SIGNATURE.search(text) and _SIGNED.search(text))


def plain_tokens(raw: Mapping[str, object]) -> Iterator[Problem]:
    """Yield a problem for each SAS token in a configuration's plain values; the values themselves are not shown.

    raw: by key without the project's name, without secret keys.
    """
    for name, value in raw.items():
        for path in _tokens((name,), value):
            yield Problem(
                path=path,
                value=_HIDDEN,
                wrong="a SAS token stands in plain text, where the repository and the state keep it for everybody",
                allowed=f"no token in plain values; the secret key {key((TOKEN_KEY,))} holds it",
                fix=f"remove it, take back the token, and run `pulumi config set --secret {key((TOKEN_KEY,))}` with a "
                "new one, which asks for the value",
            )


def _tokens(path: Path, value: object) -> Iterator[Path]:
    if isinstance(value, str):
        if looks_like_sas(value):
            yield path
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _tokens((*path, str(name)), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _tokens((*path, index), item)


def _driver(parts: Parts) -> Iterator[Problem]:
    assert parts.storage is not None
    driver = parts.storage.blob_driver
    if parts.storage.volumes and (fault := blobfuse_fault(driver.version, driver.blobfuse)) is not None:
        yield Problem(
            path=("storage", "blobDriver", "blobfuse"),
            value=driver.blobfuse,
            wrong=fault.reason,
            allowed=f"see {fault.source}",
            fix=fault.fix,
        )


def _names(parts: Parts) -> Iterator[Problem]:
    """Refuse a name that stands twice: workloads name their volume by it."""
    assert parts.storage is not None
    first: dict[str, int] = {}
    for index, volume in enumerate(parts.storage.volumes):
        other = first.setdefault(volume.name, index)
        if other != index:
            yield Problem(
                path=("storage", "volumes", index, "name"),
                value=volume.name,
                wrong=f"{key(('storage', 'volumes', other))} has this name already",
                allowed="one volume of each name",
                fix="rename one of them",
            )


def _namespaces(parts: Parts) -> Iterator[Problem]:
    """Refuse a namespace that the stack does not create: the claim would have no place."""
    assert parts.storage is not None
    if parts.workloads is None or None in parts.team_names:
        return
    known = [parts.workloads.namespace, *(str(name) for name in parts.team_names)]
    for index, volume in enumerate(parts.storage.volumes):
        if volume.namespace not in known:
            meant = nearest(volume.namespace, known)
            yield Problem(
                path=("storage", "volumes", index, "namespace"),
                value=volume.namespace,
                wrong="the stack has no such namespace",
                allowed=f"{listed(known)} (that of the workloads, and the teams')",
                fix=f"did you mean {meant}?" if meant else f"set it to {known[0]}",
            )


def _accounts(parts: Parts) -> Iterator[Problem]:
    """Refuse a volume of the stack's own account where the stack makes none."""
    assert parts.storage is not None
    if parts.azure is None or parts.azure.storage is not None:
        return
    for index, volume in enumerate(parts.storage.volumes):
        if volume.account is None:
            yield Problem(
                path=("storage", "volumes", index, "account"),
                wrong=f"the volume names no account, and without {key(('azure', 'storage'))} the stack has none itself",
                allowed="the name of a storage account",
                fix=f"set it, or set {key(('azure', 'storage'))}",
            )


def _token(parts: Parts, has_token: bool) -> Iterator[Problem]:
    assert parts.storage is not None
    users = [index for index, volume in enumerate(parts.storage.volumes) if volume.uses_token]
    if has_token and not users:
        yield Problem(
            path=(TOKEN_KEY,),
            wrong="there is a SAS token that no volume uses",
            allowed="a token only where a volume has access: sas",
            fix=f"run `pulumi config rm {key((TOKEN_KEY,))}`, or set access of a volume to sas",
        )
    for index in [] if has_token else users:
        yield Problem(
            path=("storage", "volumes", index, "access"),
            value="sas",
            wrong="the volume is to be reached with a SAS token, and the stack has none",
            allowed=f"managedIdentity, or sas together with the secret key {key((TOKEN_KEY,))}",
            fix=f"run `pulumi config set --secret {key((TOKEN_KEY,))}`, which asks for the token (read and list are "
            "enough), or remove the key access",
        )
