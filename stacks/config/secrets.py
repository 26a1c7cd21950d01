"""Secrets of a stack: each has a separate key and is encrypted."""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

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
"""Addresses and keys for alerts, by kind of receiver. Anyone who has one can send there."""
BLOB_SAS_TOKEN: Final = "blobSasToken"
"""A shared access signature, of targets with blob storage."""
OBJECT_STORE_SECRET_KEY: Final = "objectStoreSecretKey"
"""The secret key of an external object store of the workbench."""
COMMON: Final = (JUPYTER_TOKEN, GRAFANA_PASSWORD, *ALERT_ADDRESSES.values())
"""Keys whose values are secrets on every target. A target may have others (`TargetSpec.secrets`). Each is a separate
key, because a secret inside a section makes the whole section a secret."""


class Concealed(Enum):
    """Replaces the value of a secret in everything that may be shown. No text is equal to it."""

    SECRET = "[secret]"
    EMPTY = "[empty secret]"
    NO_ADDRESS = "[secret that is not an address]"
    NO_KEY = "[secret that is not an integration key]"

    def __str__(self) -> str:
        return self.value


_ADDRESSES: Final = frozenset(name for kind, name in ALERT_ADDRESSES.items() if kind != "pagerduty")
_ADDRESS: Final = re.compile(
    r"https?://([^\s/?#@\[\]]*@)?(\[[0-9a-f:.]+\]|[^\s/?#@:\[\]%]+)(:\d*)?([/?#]([^\s%]|%[0-9a-f]{2})*)?", re.IGNORECASE
)

_KEY: Final = re.compile(r"[0-9A-Za-z]{32}")

_SIGNATURE: Final = re.compile(r"(?:^|[?&\s\"'])sig=[^&\s]+")
_SIGNED: Final = re.compile(r"(?:^|[?&\s\"'])(?:sv|se|sp|sr|ss|st|skoid)=[^&\s]+")


def concealed(name: str, value: str | None) -> Concealed:
    """Return the placeholder of a secret's value, which tells whether the value is valid for its key."""
    text = (value or "").strip()
    if not text:
        return Concealed.EMPTY
    if name in _ADDRESSES and not is_address(text):
        return Concealed.NO_ADDRESS
    return Concealed.NO_KEY if name == ALERT_ADDRESSES["pagerduty"] and not is_key(text) else Concealed.SECRET


def is_address(text: str) -> bool:
    """Whether Alertmanager would send to this (prometheus/alertmanager, config/common/url.go).

    Alertmanager reads the file only when it sends an alert, and reports an error only in its log.
    """
    return _ADDRESS.fullmatch(text) is not None


def is_key(text: str) -> bool:
    """Whether PagerDuty's Events API v2 may take this for the key of an integration.

    PagerDuty rejects events with any other key ("Length of 'routing_key' is incorrect (should be 32 characters)",
    v2.developer.pagerduty.com/docs/send-an-event-events-api-v2). Only Alertmanager's log shows that error.
    """
    return _KEY.fullmatch(text) is not None


def of_target(target: TargetSpec[Any]) -> tuple[str, ...]:
    """Return the keys of a target's secrets."""
    return (*COMMON, *target.secrets)


def looks_like_sas(text: str) -> bool:
    """Whether a text is or contains a shared access signature: `sig=` and another of its parameters."""
    return bool(_SIGNATURE.search(text) and _SIGNED.search(text))
