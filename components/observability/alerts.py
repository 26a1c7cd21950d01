"""What somebody should look at: broken GPUs, lost nodes, queues that do not move, InfiniBand links that fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.health import autopilot
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
        name="MLBatchSlackSpent",
        expression=f'mlbatch_lending_limit{{queue="{names.SLACK_QUEUE}",resource="{names.GPU}"}} == 0',
        lasting="15m",
        severity="critical",
        summary="As many GPUs are lost as the slack queue has: with more, teams miss their own quota.",
        action="See which nodes count for nothing in mlbatch_node_unusable, and bring them back.",
    ),
    Alert(
        name="MLBatchNodeUnusable",
        expression="mlbatch_node_unusable == 1",
        lasting="1h",
        severity="warning",
        summary="Node {{ $labels.node }} has counted for nothing for an hour: {{ $labels.reason }}.",
        action="Bring it back, or take it out of the pool and its quotas.",
    ),
    Alert(
        name="MLBatchSlackControllerSilent",
        expression="time() - mlbatch_slack_last_reconcile_timestamp_seconds > 300",
        lasting="5m",
        severity="critical",
        summary="The slack controller has looked at no node for five minutes: limits stay as they are.",
        action="See its pod in mlbatch-system, and its log.",
    ),
    Alert(
        name="MLBatchNodeSick",
        expression='kube_node_labels{label_autopilot_ibm_com_gpuhealth=~"ERR|EVICT"} == 1',
        lasting="",
        severity="critical",
        summary="A health check marked node {{ $labels.node }} as {{ $labels.label_autopilot_ibm_com_gpuhealth }}.",
        action="Jobs stay away or are moved. Cordon the node before the next round marks it anew, and have it checked.",
    ),
    Alert(
        name="MLBatchNodeSuspect",
        expression='kube_node_labels{label_autopilot_ibm_com_gpuhealth="WARN"} == 1',
        lasting="5m",
        severity="warning",
        summary="A light check of Autopilot failed on node {{ $labels.node }}.",
        action="Ask Prometheus for autopilot_health_checks of that node, which has each check's result.",
    ),
    Alert(
        name="MLBatchDiagnosticsFailed",
        expression='autopilot_health_checks{health=~"dcgm|remapped|power-slowdown"} == 1',
        lasting="1m",
        severity="warning",
        summary="The check {{ $labels.health }} failed on node {{ $labels.node }}, GPU {{ $labels.deviceid }}.",
        action="Cordon the node, and have its GPUs looked at.",
    ),
    Alert(
        name="MLBatchDeepCheckFailed",
        expression=f'kube_job_status_failed{{namespace="{autopilot.NAMESPACE}",job_name=~"dcgm-.*"}} > 0',
        lasting="",
        severity="critical",
        summary="NVIDIA's long diagnostics found something: job {{ $labels.job_name }}.",
        action="Its pod names node and test, for half an hour. Cordon the node: the next round marks it as healthy.",
    ),
    Alert(
        name="MLBatchVolumeCheckFailed",
        expression='autopilot_health_checks{health="pvc"} == 1',
        lasting="5m",
        severity="critical",
        summary="A volume that Autopilot asked for on node {{ $labels.node }} was not there in time.",
        action="See the events of claims in the namespace autopilot, and the storage server.",
    ),
    Alert(
        name="MLBatchNodeUnreachable",
        expression='autopilot_health_checks{health="ping"} == 1',
        lasting="10m",
        severity="critical",
        summary="Node {{ $labels.node }} does not reach {{ $labels.deviceid }}.",
        action="Jobs over both hang: look at the network between them.",
    ),
    Alert(
        name="MLBatchNodeUnchecked",
        expression=f'kube_daemonset_status_number_unavailable{{namespace="{autopilot.NAMESPACE}"}} > 0',
        lasting="30m",
        severity="warning",
        summary="Autopilot does not run on {{ $value }} nodes.",
        action="See its pods: GPUs that do not answer keep them from starting.",
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
    """namespace: must exist. labels: those by which Prometheus finds its rules. alerts: which ones.

    gpu_resource: as which nodes offer GPUs.
    """

    namespace: pulumi.Input[str]
    labels: Mapping[str, str]
    alerts: Sequence[Alert] = ALERTS
    gpu_resource: str = names.GPU


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
            "expr": alert.expression.replace(f'resource="{names.GPU}"', f'resource="{args.gpu_resource}"'),
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
