"""Secrets of a stack: keys of their own, and never plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stacks import targets
from stacks.errors import ConfigError, Path, key

if TYPE_CHECKING:
    from stacks.target import TargetSpec

JUPYTER_TOKEN: Final = "jupyterToken"
GRAFANA_PASSWORD: Final = "grafanaPassword"
BLOB_SAS_TOKEN: Final = "blobSasToken"
"""A shared access signature, of targets with blob storage."""
COMMON: Final = (JUPYTER_TOKEN, GRAFANA_PASSWORD)
"""Keys whose values are secrets on every target; a target may have others (`TargetSpec.secrets`). Each is a key of its
own, because a secret inside of a section would make a secret of the whole section."""

HIDDEN: Final = "[secret]"
"""Stands for the value of a secret in everything that may be shown."""
EMPTY: Final = "[empty secret]"
"""Stands for a secret without a value."""

_SIGNATURE: Final = re.compile(r"(?:^|[?&\s\"'])sig=[^&\s]+")
_SIGNED: Final = re.compile(r"(?:^|[?&\s\"'])(?:sv|se|sp|sr|ss|st|skoid)=[^&\s]+")
_NOT_SHOWN: Final = "(a SAS token, not shown)"


def known() -> tuple[str, ...]:
    """Return the keys of every target's secrets."""
    return tuple(dict.fromkeys([*COMMON, *(name for target in targets.every() for name in target.secrets)]))


def of_target(target: TargetSpec[Any]) -> tuple[str, ...]:
    """Return the keys of a target's secrets."""
    return (*COMMON, *target.secrets)


def exposed(raw: Mapping[str, object]) -> Iterator[ConfigError]:
    """Yield secrets that are none: for everybody to read, or empty. Their values are not shown.

    raw: by key without the project's name, with HIDDEN for the values of what is encrypted, EMPTY where that is blank.
    """
    secrets = known()
    for name in secrets:
        if raw.get(name) == EMPTY:
            yield ConfigError(
                path=(name,),
                message="this secret is empty, so that whoever knows nothing would be let in, or nobody",
                expected="a secret of the stack with something in it",
                hint=f"run `pulumi config set --secret {key((name,))}`, which asks for the value, or remove the key",
            )
        elif raw.get(name, HIDDEN) != HIDDEN:
            yield ConfigError(
                path=(name,),
                message="this is a secret, and it stands in plain text in the stack's configuration",
                expected="a secret of the stack",
                hint=f"run `pulumi config set --secret {key((name,))}`, which asks for the value, and replace the old "
                "one where it was issued: it has been readable",
            )
    yield from _plain_tokens({name: value for name, value in raw.items() if name not in secrets})


def looks_like_sas(text: str) -> bool:
    """Whether a text is or contains a shared access signature: `sig=` beside another of its parameters."""
    return bool(_SIGNATURE.search(text) and _SIGNED.search(text))


def _plain_tokens(raw: Mapping[str, object]) -> Iterator[ConfigError]:
    """Yield a problem for each SAS token in a configuration's plain values; the values themselves are not shown.

    raw: by key without the project's name, without secret keys.
    """
    for name, value in raw.items():
        for path in _tokens((name,), value):
            yield ConfigError(
                path=path,
                value=_NOT_SHOWN,
                message="a SAS token stands in plain text, where the repository and the state keep it for everybody",
                expected=f"no token in plain values; the secret key {key((BLOB_SAS_TOKEN,))} holds it",
                hint=f"remove it, take back the token, and run `pulumi config set --secret {key((BLOB_SAS_TOKEN,))}` "
                "with a new one, which asks for the value",
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
