"""Alertmanager's receivers. Their addresses are secrets, which it reads from files.

Source: prometheus/alertmanager, docs/configuration.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.kubernetes import objects
from components.kubernetes.manifests import Document

SECRET: Final = "alert-receivers"
_FOLDER: Final = f"/etc/alertmanager/secrets/{SECRET}"
"""Where the operator mounts it (prometheus-operator/prometheus-operator, `spec.secrets` of an Alertmanager)."""

_TITLE: Final = "[{{ .Status | toUpper }}] {{ .CommonLabels.alertname }}"
_TEXT: Final = (
    "{{ range .Alerts }}{{ .Annotations.summary }} {{ .Annotations.description }} {{ .Annotations.runbook_url }}\n"
    "{{ end }}"
)
_SUMMARY: Final = (
    "{{ .CommonLabels.alertname }}: {{ (index .Alerts 0).Annotations.summary }}"
    "{{ if gt (len .Alerts) 1 }} (and {{ len .Alerts }} in all){{ end }}"
)
"""One line for a group of alerts. Alerts of several nodes have no common summary, and PagerDuty rejects an empty one
(its Events API v2, `payload.summary`)."""
KINDS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "slack": ("slack_configs", {"api_url_file": "", "title": _TITLE, "text": _TEXT}),
    "teams": ("msteamsv2_configs", {"webhook_url_file": "", "title": _TITLE, "text": _TEXT}),
    "webhook": ("webhook_configs", {"url_file": ""}),
    "pagerduty": ("pagerduty_configs", {"routing_key_file": "", "description": _SUMMARY}),
}
"""Alertmanager's section and its fields by kind. The empty text is the file with the address or key."""

SEVERITIES: Final = ("warning", "critical")
"""In ascending order."""


@dataclass(frozen=True, kw_only=True)
class Receiver:
    """A receiver of alerts.

    kind: one of KINDS.
    address: its URL or the key of an integration. A secret.
    least: the lowest severity that it receives.
    """

    kind: str
    address: pulumi.Input[str]
    least: str = "warning"


def secret(receivers: Sequence[Receiver], namespace: pulumi.Input[str]) -> Document:
    """Return the Secret with the receivers' addresses and keys, one file for each."""
    return objects.secret(SECRET, namespace, {receiver.kind: receiver.address for receiver in receivers})


def configuration(receivers: Sequence[Receiver]) -> Mapping[str, Any]:
    """Return Alertmanager's configuration besides the chart's inhibition rules. Each receiver has its own route."""
    return {
        "route": {
            "group_by": ["alertname", "namespace"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "12h",
            "receiver": "null",
            "routes": [
                {"receiver": "null", "matchers": ['alertname =~ "InfoInhibitor|Watchdog"']},
                *(
                    {
                        "receiver": receiver.kind,
                        "matchers": [f'severity =~ "{"|".join(SEVERITIES[SEVERITIES.index(receiver.least) :])}"'],
                        "continue": True,
                    }
                    for receiver in receivers
                ),
            ],
        },
        "receivers": [{"name": "null"}, *(_receiver(receiver) for receiver in receivers)],
    }


def _receiver(receiver: Receiver) -> Mapping[str, Any]:
    section, body = KINDS[receiver.kind]
    filled = {name: value or f"{_FOLDER}/{receiver.kind}" for name, value in body.items()}
    return {"name": receiver.kind, section: [{"send_resolved": True, **filled}]}
