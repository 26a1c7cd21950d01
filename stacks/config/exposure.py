"""Secrets that stand in plain text, or are empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stacks.config.errors import ConfigError, Path, key
from stacks.config.secrets import BLOB_SAS_TOKEN, EMPTY, HIDDEN, Concealed, looks_like_sas, of_target
from stacks.targets.registry import SECRET_KEYS, TARGETS
from stacks.targets.spec import TargetSpec

_NOT_SHOWN: Final = "(a SAS token, not shown)"


def exposed(raw: Mapping[str, object]) -> Iterator[ConfigError]:
    """Yield secrets that are none: for everybody to read, or empty. Their values are not shown.

    raw: by key without the project's name, with HIDDEN for the values of what is encrypted, EMPTY where that is blank.
    """
    target = TARGETS.get(str(raw.get("target")))
    for name in SECRET_KEYS:
        if raw.get(name) is EMPTY:
            yield ConfigError(
                path=(name,),
                message="this secret is empty, so that whoever knows nothing would be let in, or nobody",
                expected="a secret of the stack with something in it",
                hint=f"run `pulumi config set --secret {key((name,))}`, which asks for the value, or remove the key",
            )
        elif raw.get(name) is Concealed.NO_ADDRESS:
            yield ConfigError(
                path=(name,),
                message="this secret is no address that Alertmanager sends to, so that nobody would be told",
                expected="an address like https://host/path; the value is not shown",
                hint=f"run `pulumi config set --secret {key((name,))}`, which asks for the webhook's whole address",
            )
        elif raw.get(name) is Concealed.NO_KEY:
            yield ConfigError(
                path=(name,),
                message="this secret is no key of an integration that PagerDuty has, so that nobody would be told",
                expected="32 letters and digits; the value is not shown",
                hint=f"run `pulumi config set --secret {key((name,))}`, which asks for it, with the key of an "
                "integration of the kind Events API V2; a key of PagerDuty's REST API is another thing",
            )
        elif raw.get(name, HIDDEN) is not HIDDEN:
            yield _readable(name, target)
    yield from _plain_tokens({name: value for name, value in raw.items() if name not in SECRET_KEYS}, target)


def _readable(name: str, target: TargetSpec[Any] | None) -> ConfigError:
    if target is None or name in of_target(target):
        expected = "a secret of the stack"
        remedy = f"`pulumi config set --secret {key((name,))}`, which asks for the value, and replace the old one"
    else:
        expected, remedy = f"no such key on target {target.name}", f"`pulumi config rm {key((name,))}`, and replace it"
    return ConfigError(
        path=(name,),
        message="this is a secret, and it stands in plain text in the stack's configuration",
        expected=expected,
        hint=f"run {remedy} where it was issued: it has been readable",
    )


def _plain_tokens(raw: Mapping[str, object], target: TargetSpec[Any] | None) -> Iterator[ConfigError]:
    """Yield a problem for each SAS token in a configuration's plain values; the values themselves are not shown.

    raw: by key without the project's name, without secret keys. target: None for one that is not known.
    """
    secret = key((BLOB_SAS_TOKEN,))
    for name, value in raw.items():
        if name == "mirror":
            allowed, remedy = "", ", and copy the files to a folder"
        elif target is not None and BLOB_SAS_TOKEN not in target.secrets:
            allowed, remedy = "", ""
        else:
            allowed = f"; the secret key {secret} holds it"
            remedy = f", and run `pulumi config set --secret {secret}` with a new one, which asks for the value"
        for path in _tokens((name,), value):
            yield ConfigError(
                path=path,
                value=_NOT_SHOWN,
                message="a SAS token stands in plain text, where the repository and the state keep it for everybody",
                expected=f"no token in plain values{allowed}",
                hint=f"remove it, take back the token{remedy}",
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
