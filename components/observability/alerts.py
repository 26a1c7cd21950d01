"""What somebody should look at: broken GPUs, lost nodes, queues that do not move, InfiniBand links that fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest

RULES_NAME: Final = "mlbatch-alerts"


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A condition that has to hold for a while.

    expression: Prometheus's; each series that it yields is an alert of its own.
    lasting: how long it has to hold first, such as `5m`; an empty text for none at all.
    severity: critical for what takes capacity away now, warning for the rest.
    summary, action: one sentence each; may name labels as `{{ $labels.node }}`.
    """

    name: str
    expression: str
    lasting: str
    severity: str
    summary: str
    action: str


ALERTS: Final = (
    Alert(
        name="MLBatchGpuXidError",
        # Of the XID errors, those after which NVIDIA's guide has the application or the GPU restarted, or the board
        # replaced: 48, 63, 64, 74, 79, 94, 95, 119, 120. 13, 31, 43 and 45 are errors of an application.
        expression="DCGM_FI_DEV_XID_ERRORS == 48 or DCGM_FI_DEV_XID_ERRORS == 63 or DCGM_FI_DEV_XID_ERRORS == 64"
        " or DCGM_FI_DEV_XID_ERRORS == 74 or DCGM_FI_DEV_XID_ERRORS == 79 or DCGM_FI_DEV_XID_ERRORS == 94"
        " or DCGM_FI_DEV_XID_ERRORS == 95 or DCGM_FI_DEV_XID_ERRORS == 119 or DCGM_FI_DEV_XID_ERRORS == 120",
        lasting="1m",
        severity="critical",
        summary="GPU {{ $labels.gpu }} of {{ $labels.Hostname }} reports XID error {{ $value }}.",
        action="Cordon the node, run the health check on it, and look the number up in NVIDIA's table of XID errors.",
    ),
    Alert(
        name="MLBatchGpuEccError",
        expression="increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[1h]) > 0",
        lasting="",
        severity="critical",
        summary="GPU {{ $labels.gpu }} of {{ $labels.Hostname }} had a memory error that could not be corrected.",
        action="The job on it has failed or computes nonsense: cordon the node and have the GPU reset.",
    ),
    Alert(
        name="MLBatchGpuRowRemapFailure",
        expression="DCGM_FI_DEV_ROW_REMAP_FAILURE > 0",
        lasting="",
        severity="critical",
        summary="GPU {{ $labels.gpu }} of {{ $labels.Hostname }} cannot replace broken memory rows any more.",
        action="Cordon the node and hand it back to the provider.",
    ),
    Alert(
        name="MLBatchNodeLost",
        expression='kube_node_status_condition{condition="Ready",status="true"} == 0',
        lasting="5m",
        severity="critical",
        summary="Node {{ $labels.node }} has not been ready for five minutes.",
        action="See `kubectl describe node`; the slack queue lends as much less as the node had.",
    ),
    Alert(
        name="MLBatchQueueStuck",
        expression="sum by (cluster_queue) (kueue_pending_workloads) > 0 unless on (cluster_queue) "
        "sum by (cluster_queue) (increase(kueue_admitted_workloads_total[2h])) > 0",
        lasting="30m",
        severity="warning",
        summary="{{ $value }} workloads wait in {{ $labels.cluster_queue }}, and none was admitted for two hours.",
        action="See `kubectl describe workload` in the team's namespace: the quota may be less than the job asks for.",
    ),
    Alert(
        name="MLBatchInfiniBandPortDown",
        expression="node_infiniband_state_id != 4",
        lasting="5m",
        severity="warning",
        summary="Port {{ $labels.device }} of {{ $labels.instance }} is not active.",
        action="Jobs over several nodes fail or crawl there: cordon the node and hand it back to the provider.",
    ),
    Alert(
        name="MLBatchInfiniBandLinkFlaps",
        expression="increase(node_infiniband_link_downed_total[1h]) > 0",
        lasting="",
        severity="warning",
        summary="Port {{ $labels.device }} of {{ $labels.instance }} lost its link within the last hour.",
        action="When it happens again, cordon the node and run the NCCL check on it.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class AlertsArgs:
    """namespace: must exist. labels: those by which Prometheus finds its rules. alerts: which ones."""

    namespace: pulumi.Input[str]
    labels: Mapping[str, str]
    alerts: Sequence[Alert] = ALERTS


class Alerts(pulumi.ComponentResource):
    """Declare alerts as a PrometheusRule, whose kind must exist. Whom they reach is up to Alertmanager's routes."""

    def __init__(self, name: str, args: AlertsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:Alerts", name, None, opts)
        Manifest(f"{name}/{RULES_NAME}", prometheus_rule(args), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def prometheus_rule(args: AlertsArgs) -> Document:
    """Return the rules (prometheus-operator/prometheus-operator, Documentation/api-reference)."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            **({"for": alert.lasting} if alert.lasting else {}),
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "description": alert.action},
        }
        for alert in args.alerts
    ]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": RULES_NAME, "namespace": args.namespace, "labels": dict(args.labels)},
        "spec": {"groups": [{"name": "mlbatch", "rules": rules}]},
    }
