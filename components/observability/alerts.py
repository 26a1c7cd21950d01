"""Alerts for administrators, from alerts.yaml: broken GPUs, lost nodes, blocked queues, failing InfiniBand links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import Template
from typing import Any, Final, Literal

import pulumi

from components import names
from components.health import autopilot
from components.kubernetes.manifests import Document, Manifest
from components.observability import metrics
from components.observability.metrics import RECORDED
from components.queueing.running_kueue import KUEUE, RunningKueue
from components.tables import Table
from components.tenancy import slack

RULES_NAME: Final = "mlbatch-alerts"
OPERATORS: Final = (KUEUE, "appwrapper-controller-manager")
"""Deployments in mlbatch-system that must run so that jobs are admitted and retried."""


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A condition that must hold for some time.

    needs: the property of `Watched` that a cluster with this alert has. Empty for all clusters.
    expression: in PromQL. Each series of its result is a separate alert.
    lasting: how long it must hold, such as `5m`. Empty for no wait.
    severity: critical if capacity is lost now, or if losses are hidden. Otherwise warning.
    summary, action: one sentence each. They may use labels as `{{ $labels.node }}`.

    docs/runbooks.md has a section with its name.
    """

    name: str
    needs: str = ""
    expression: str
    lasting: str = ""
    severity: Literal["critical", "warning"]
    summary: str
    action: str


class _Alerts(Table):
    webhook_failures: str
    waiting: str
    pending: str
    alerts: tuple[Alert, ...]


_ALERTS: Final = _Alerts.load(__name__)


@dataclass(frozen=True, kw_only=True)
class Watched:
    """The properties of a cluster that alerts need.

    has_gpu_metrics: Prometheus reads NVIDIA's exporter.
    gpus_per_node: number of GPUs of each GPU node. None if unknown.
    has_autoscaler: an autoscaler adds and removes nodes, so a missing node is normal.
    controllers: Deployments in mlbatch-system that must exist.
    others_kueue: a Kueue that the stack did not install. Its Deployment must exist, too.
    """

    gpu_resource: str = names.GPU
    has_gpu_metrics: bool = True
    gpus_per_node: int | None = None
    has_autoscaler: bool = False
    controllers: Sequence[str] = (*OPERATORS, slack.CONTROLLER)
    others_kueue: RunningKueue | None = None

    @property
    def knows_gpu_holders(self) -> bool:
        """True if NVIDIA's exporter reports the pods that have a GPU."""
        return self.has_gpu_metrics and metrics.knows_holders(self.gpu_resource)

    @property
    def keeps_nodes(self) -> bool:
        """True if no autoscaler removes nodes."""
        return not self.has_autoscaler

    @property
    def has_queues(self) -> bool:
        """True if Kueue reports queues."""
        return bool(self.controllers)

    @property
    def has_slack(self) -> bool:
        """True if the slack controller reports nodes and quotas."""
        return slack.CONTROLLER in self.controllers


def alerts(watched: Watched = Watched()) -> Sequence[Alert]:
    """Return the alerts of a cluster."""
    values = {
        "gpu": watched.gpu_resource,
        "gpu_label": metrics.resource_label(watched.gpu_resource),
        "slack_queue": names.SLACK_QUEUE,
        "system": names.SYSTEM_NAMESPACE,
        "webhook_failures": _ALERTS.webhook_failures,
        "autopilot": autopilot.NAMESPACE,
        "or_fewer_than_specified": _or_fewer_than_specified(watched),
        "or_controller_missing": "".join(f" or {_missing(name)}" for name in watched.controllers),
        "or_others_kueue_down": _or_others_kueue_down(watched.others_kueue),
    }
    return [
        replace(alert, expression=Template(alert.expression).substitute(values))
        for alert in _ALERTS.alerts
        if not alert.needs or getattr(watched, alert.needs)
    ]


def _or_fewer_than_specified(watched: Watched) -> str:
    """Return the condition for nodes with fewer GPUs than their specification, if the cluster has one."""
    if watched.gpus_per_node is None:
        return ""
    offered, capacity = (
        f'kube_node_status_{what}{{resource="{metrics.resource_label(watched.gpu_resource)}"}}'
        for what in ("allocatable", "capacity")
    )
    had_gpus = f"max by (node) (max_over_time({capacity}[6h])) > 0"
    return f" or (max by (node) ({offered}) < {watched.gpus_per_node} and on (node) {had_gpus})"


def _or_others_kueue_down(kueue: RunningKueue | None) -> str:
    """Return the condition that a Kueue of others has no pod or no Deployment."""
    if kueue is None:
        return ""
    labels = f'namespace="{kueue.namespace}",deployment="{kueue.deployment}"'
    down = f"max by (namespace, deployment) (kube_deployment_status_replicas_available{{{labels}}}) == 0"
    return f" or {down} or {_missing(kueue.deployment, kueue.namespace)}"


def _missing(controller: str, namespace: str = names.SYSTEM_NAMESPACE) -> str:
    """Return the condition that a controller's Deployment does not exist."""
    labels = f'namespace="{namespace}",deployment="{controller}"'
    return f"(absent(kube_deployment_status_replicas_available{{{labels}}}) and on () count(kube_node_info))"


@dataclass(frozen=True, kw_only=True)
class AlertsArgs:
    """The arguments of the alerts.

    namespace: must exist.
    labels: labels that Prometheus selects its rules by.
    runbooks: URL of docs/runbooks.md for readers. None for alerts without a link.
    """

    namespace: pulumi.Input[str]
    labels: Mapping[str, str]
    watched: Watched = Watched()
    runbooks: str | None = None


class Alerts(pulumi.ComponentResource):
    """Declare alerts as a PrometheusRule, whose CRD must exist. Alertmanager's routes select the receivers."""

    def __init__(self, name: str, args: AlertsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:Alerts", name, None, opts)
        Manifest(f"{name}/{RULES_NAME}", prometheus_rule(args), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def prometheus_rule(args: AlertsArgs) -> Document:
    """Return the rules (prometheus-operator/prometheus-operator, Documentation/api-reference)."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": RULES_NAME, "namespace": args.namespace, "labels": dict(args.labels)},
        "spec": {"groups": groups(args.watched, args.runbooks)},
    }


def groups(watched: Watched = Watched(), runbooks: str | None = None) -> list[dict[str, Any]]:
    """Return the groups of rules (prometheus/prometheus, docs/configuration/recording_rules.md)."""
    recorded = {"record": RECORDED[0], "expr": Template(_ALERTS.pending).substitute(waiting=_ALERTS.waiting)}
    return [{"name": "mlbatch", "rules": [recorded, *(_rule(alert, runbooks) for alert in alerts(watched))]}]


def _rule(alert: Alert, runbooks: str | None) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        **({"for": alert.lasting} if alert.lasting else {}),
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.action,
            **({"runbook_url": f"{runbooks}#{alert.name.lower()}"} if runbooks is not None else {}),
        },
    }
