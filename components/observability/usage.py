"""Records of the GPUs that teams, users and jobs hold, from usage.yaml. `mlbatch usage` adds them up to GPU hours."""

from collections.abc import Mapping
from dataclasses import dataclass
from string import Template
from typing import Any, Final

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.tables import Table

RULES_NAME: Final = "mlbatch-usage"
INTERVAL: Final = 30
"""Seconds between two records: the chart's interval of scrapes."""


class _Usage(Table):
    held: str
    users: str
    quotas: str
    rules: Mapping[str, str]


_USAGE: Final = _Usage.load(__name__)


@dataclass(frozen=True, kw_only=True)
class UsageArgs:
    """The arguments of the records.

    namespace: must exist.
    labels: labels that Prometheus selects its rules by.
    """

    namespace: pulumi.Input[str]
    labels: Mapping[str, str]
    gpu_resource: str = names.GPU


class Usage(pulumi.ComponentResource):
    """Declare the records as a PrometheusRule, whose CRD must exist."""

    def __init__(self, name: str, args: UsageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:Usage", name, None, opts)
        body: Document = {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": RULES_NAME, "namespace": args.namespace, "labels": dict(args.labels)},
            "spec": {"groups": [group(args.gpu_resource)]},
        }
        Manifest(f"{name}/{RULES_NAME}", body, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def group(gpu_resource: str = names.GPU, interval: int = INTERVAL) -> dict[str, Any]:
    """Return the group of rules. interval: seconds between two records."""
    values = {
        "gpu": gpu_resource,
        "slack_queue": names.SLACK_QUEUE,
        "cluster_queue": names.cluster_queue("(.*)"),
        "interval": str(interval),
    }
    parts = {
        part: Template(text).substitute(values)
        for part, text in (("held", _USAGE.held), ("users", _USAGE.users), ("quotas", _USAGE.quotas))
    }
    return {
        "name": RULES_NAME,
        "interval": f"{interval}s",
        "rules": [
            {"record": name, "expr": Template(expression).substitute(values | parts)}
            for name, expression in _USAGE.rules.items()
        ],
    }
