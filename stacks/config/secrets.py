"""Secrets of a stack: keys of their own, and never plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from stacks.config.errors import ConfigError, Path, key
from stacks.targets import registry

if TYPE_CHECKING:
    from stacks.targets.spec import TargetSpec

JUPYTER_TOKEN: Final = "jupyterToken"
GRAFANA_PASSWORD: Final = "grafanaPassword"
MLOPS_PASSWORD: Final = "mlopsPassword"
"""What the passwords of the OSS MLOps platform follow from, for data that another stack has made: where that can be."""
ALERT_ADDRESSES: Final[Mapping[str, str]] = {
    "slack": "alertSlackUrl",
    "teams": "alertTeamsUrl",
    "webhook": "alertWebhookUrl",
    "pagerduty": "alertPagerdutyKey",
}
"""Where each kind of receiver of alerts is told: whoever knows it can write there."""
BLOB_SAS_TOKEN: Final = "blobSasToken"
"""A shared access signature, of targets with blob storage."""
OBJECT_STORE_SECRET_KEY: Final = "objectStoreSecretKey"
"""By which an object store of the site's own lets the workbench in."""
COMMON: Final = (JUPYTER_TOKEN, GRAFANA_PASSWORD, *ALERT_ADDRESSES.values())
"""Keys whose values are secrets on every target; a target may have others (`TargetSpec.secrets`). Each is a key of its
own, because a secret inside of a section would make a secret of the whole section."""


class Concealed(Enum):
    """Stands for the value of a secret in everything that may be shown. No text is equal to it."""

    SECRET = "[secret]"
    EMPTY = "[empty secret]"
    NO_ADDRESS = "[secret that is no address]"
    NO_KEY = "[secret that is no integration key]"

    def __str__(self) -> str:
        return self.value


HIDDEN: Final = Concealed.SECRET
"""Stands for what is encrypted."""
EMPTY: Final = Concealed.EMPTY
"""Stands for a secret without a value."""

_ADDRESSES: Final = frozenset(name for kind, name in ALERT_ADDRESSES.items() if kind != "pagerduty")
_ADDRESS: Final = re.compile(
    r"https?://([^\s/?#@\[\]]*@)?(\[[0-9a-f:.]+\]|[^\s/?#@:\[\]%]+)(:\d*)?([/?#]([^\s%]|%[0-9a-f]{2})*)?", re.IGNORECASE
)

_KEY: Final = re.compile(r"[0-9A-Za-z]{32}")

_SIGNATURE: Final = re.compile(r"(?:^|[?&\s\"'])sig=[^&\s]+")
_SIGNED: Final = re.compile(r"(?:^|[?&\s\"'])(?:sv|se|sp|sr|ss|st|skoid)=[^&\s]+")
_NOT_SHOWN: Final = "(a SAS token, not shown)"


def concealed(name: str, value: str | None) -> Concealed:
    """Return what stands for the value of a secret: by its key, as much as has to be known of it."""
    text = (value or "").strip()
    if not text:
        return Concealed.EMPTY
    if name in _ADDRESSES and not is_address(text):
        return Concealed.NO_ADDRESS
    return Concealed.NO_KEY if name == ALERT_ADDRESSES["pagerduty"] and not is_key(text) else Concealed.SECRET


def is_address(text: str) -> bool:
    """Whether Alertmanager would send to this (prometheus/alertmanager, config/common/url.go).

    It reads the file only when there is something to tell, and then says in its log alone that it cannot.
    """
    return _ADDRESS.fullmatch(text) is not None


def is_key(text: str) -> bool:
    """Whether PagerDuty's Events API v2 may take this for the key of an integration.

    It refuses each event with another one ("Length of 'routing_key' is incorrect (should be 32 characters)",
    v2.developer.pagerduty.com/docs/send-an-event-events-api-v2), of which only Alertmanager's log tells.
    """
    return _KEY.fullmatch(text) is not None


def known() -> tuple[str, ...]:
    """Return the keys of every target's secrets."""
    return tuple(dict.fromkeys([*COMMON, *(name for target in registry.every() for name in target.secrets)]))


def of_target(target: TargetSpec[Any]) -> tuple[str, ...]:
    """Return the keys of a target's secrets."""
    return (*COMMON, *target.secrets)


def exposed(raw: Mapping[str, object]) -> Iterator[ConfigError]:
    """Yield secrets that are none: for everybody to read, or empty. Their values are not shown.

    raw: by key without the project's name, with HIDDEN for the values of what is encrypted, EMPTY where that is blank.
    """
    secrets, name_of_target = known(), raw.get("target")
    target = registry.find(str(name_of_target)) if name_of_target in registry.NAMES else None
    for name in secrets:
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
    yield from _plain_tokens({name: value for name, value in raw.items() if name not in secrets}, target)


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


def looks_like_sas(text: str) -> bool:
    """Whether a text is or contains a shared access signature: `sig=` beside another of its parameters."""
    return bool(_SIGNATURE.search(text) and _SIGNED.search(text))


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
