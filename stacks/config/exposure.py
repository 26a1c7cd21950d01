"""Secrets in plain text, and empty secrets."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stacks.config.errors import ConfigError, key
from stacks.config.secrets import BLOB_SAS_TOKEN, Concealed, looks_like_sas, of_target
from stacks.config.sections import texts
from stacks.targets.registry import SECRET_KEYS, TARGETS
from stacks.targets.spec import TargetSpec

_NOT_SHOWN: Final = "(a SAS token, not shown)"
_WRONG: Final = {
    Concealed.EMPTY: (
        "this secret is empty: an empty secret either lets everyone in or locks everyone out",
        "a secret with a value",
        "the value, or remove the key",
    ),
    Concealed.NO_ADDRESS: (
        "this secret is not an address that Alertmanager can send to: no alert would arrive",
        "an address like https://host/path; the value is not shown",
        "the webhook's whole address",
    ),
    Concealed.NO_KEY: (
        "this secret is not a PagerDuty integration key: no alert would arrive",
        "32 letters and digits; the value is not shown",
        "it, with the key of an integration of type Events API V2, not a key of PagerDuty's REST API",
    ),
}
"""The message, the expected value, and what to enter, by the kind of an invalid secret."""


def exposed(raw: Mapping[str, object]) -> Iterator[ConfigError]:
    """Yield secrets that are empty, invalid or in plain text. Their values are not shown.

    raw: by key without the project's name. Encrypted values are Concealed.
    """
    target = TARGETS.get(str(raw.get("target")))
    for name in SECRET_KEYS:
        value = raw.get(name, Concealed.SECRET)
        if isinstance(value, Concealed) and value in _WRONG:
            message, expected, remedy = _WRONG[value]
            hint = f"run `pulumi config set --secret {key((name,))}`, which asks for {remedy}"
            yield ConfigError((name,), message, hint, expected=expected)
        elif value is not Concealed.SECRET:
            yield _readable(name, target)
    yield from _plain_tokens({name: value for name, value in raw.items() if name not in SECRET_KEYS}, target)


def _readable(name: str, target: TargetSpec[Any] | None) -> ConfigError:
    if target is None or name in of_target(target):
        expected = "a secret of the stack"
        remedy = f"`pulumi config set --secret {key((name,))}`, which asks for the value, and replace the old one"
    else:
        expected, remedy = f"no such key on target {target.name}", f"`pulumi config rm {key((name,))}`, and replace it"
    return ConfigError(
        (name,),
        "this secret is in plain text in the stack's configuration",
        f"run {remedy} where it was issued, because others could read it",
        expected=expected,
    )


def _plain_tokens(raw: Mapping[str, object], target: TargetSpec[Any] | None) -> Iterator[ConfigError]:
    """Yield a problem for each SAS token in a configuration's plain values; the values themselves are not shown.

    raw: by key without the project's name, without secret keys. target: None if it is unknown.
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
        for path in (path for path, text in texts((name,), value) if looks_like_sas(text)):
            yield ConfigError(
                path,
                "a SAS token is in plain text: the repository and the state show it to every reader",
                f"remove it, revoke the token{remedy}",
                expected=f"no token in plain values{allowed}",
                value=_NOT_SHOWN,
            )
