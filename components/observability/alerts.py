"""Alerts for administrators: broken GPUs, lost nodes, blocked queues, failing InfiniBand links.

Expressions use the label `node`, which monitors add for pods that run on each node (`BY_NODE` in prometheus.py). They
use no label that changes when an exporter or a job restarts. A new series starts at its current count, which `increase`
does not see, and a replaced series exists twice for five minutes. Each expression is therefore `max by` the labels of
its subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import names
from components.health import autopilot
from components.kubernetes.manifests import Document, Manifest
from components.observability import metrics
from components.observability.metrics import RECORDED
from components.tenancy import slack

_SEEN: Final = "and on () count(kube_node_info)"
"""Suffix of queries for missing objects. It requires metrics of kube-state-metrics, because without them all objects
seem to be missing."""
_XID: Final = (46, 48, 62, 63, 64, 74, 79, 94, 95, 109, 110, 119, 120, 136, 140, 143, 156, 158)
"""XID errors that require a reset of the GPU or a restart of the machine, for an H100 in NVIDIA's catalog. For 74,
NVIDIA's workflow says so. 63 and 94 leave a memory row to be replaced (docs.nvidia.com/deploy/xid-errors,
analyzing-xid-catalog). 13, 31, 43 and 45 are errors of an application, and 45 follows each of the others within a
minute."""
RULES_NAME: Final = "mlbatch-alerts"
OPERATORS: Final = ("kueue-controller-manager", "appwrapper-controller-manager")
"""Deployments in mlbatch-system that must run so that jobs are admitted and retried."""


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A condition that must hold for some time.

    expression: in PromQL. Each series of its result is a separate alert.
    lasting: how long it must hold, such as `5m`. Empty for no wait.
    severity: critical if capacity is lost now, or if losses are hidden. Otherwise warning.
    summary, action: one sentence each. They may use labels as `{{ $labels.node }}`.

    docs/runbooks.md has a section with its name.
    """

    name: str
    expression: str
    lasting: str
    severity: str
    summary: str
    action: str


@dataclass(frozen=True, kw_only=True)
class Watched:
    """The properties of a cluster that alerts need.

    gpu_resource: resource name under which nodes offer GPUs.
    has_gpu_metrics: Prometheus reads NVIDIA's exporter.
    gpus_per_node: number of GPUs of each GPU node. None if unknown.
    has_autoscaler: an autoscaler adds and removes nodes, so a missing node is normal.
    controllers: Deployments in mlbatch-system that must exist.
    """

    gpu_resource: str = names.GPU
    has_gpu_metrics: bool = True
    gpus_per_node: int | None = None
    has_autoscaler: bool = False
    controllers: Sequence[str] = (*OPERATORS, slack.CONTROLLER)

    @property
    def has_slack(self) -> bool:
        """True if the slack controller reports nodes and quotas."""
        return slack.CONTROLLER in self.controllers

    @property
    def offered(self) -> str:
        """PromQL of the GPUs that each node offers to pods, from kube-state-metrics."""
        return f'kube_node_status_allocatable{{resource="{metrics.resource_label(self.gpu_resource)}"}}'


def alerts(watched: Watched = Watched()) -> Sequence[Alert]:
    """Return the alerts of a cluster."""
    lent = _slack(watched) if watched.has_slack else ()
    queues = _queues(watched) if watched.controllers else ()
    gpus = _gpus(watched) if watched.has_gpu_metrics else ()
    return (*gpus, *_nodes(watched), *queues, *lent, *_platform(watched), *_HEALTH, *_INFINIBAND)


def _gpus(watched: Watched) -> Sequence[Alert]:
    idle = Alert(
        name="MLBatchGpusIdle",
        expression="count by (exported_namespace) (max by (node, gpu, exported_namespace) "
        '(max_over_time(DCGM_FI_DEV_GPU_UTIL{exported_namespace!=""}[2h])) == 0 '
        'and max by (node, gpu, exported_namespace) (DCGM_FI_DEV_GPU_UTIL{exported_namespace!=""} offset 2h))',
        lasting="10m",
        severity="warning",
        summary="{{ $value }} GPUs that {{ $labels.exported_namespace }} has been given did nothing for two hours.",
        action="Ask the team: a job that hangs holds its GPUs until somebody ends it.",
    )
    return (
        Alert(
            name="MLBatchGpuXidError",
            # The exporter counts over five minutes. Fifteen minutes give an administrator time to see the alert.
            expression="max by (node, gpu, xid) "
            f'(max_over_time(DCGM_EXP_XID_ERRORS_COUNT{{xid=~"{"|".join(map(str, _XID))}"}}[15m])) > 0',
            lasting="",
            severity="critical",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} reported XID error {{ $labels.xid }}.",
            action="Cordon the node, check its health, and look the number up in NVIDIA's table of XID errors.",
        ),
        Alert(
            name="MLBatchGpuEccError",
            # Counts since the driver was loaded. The repair, a restart of the node or a reset of the GPU, resets it.
            expression="max by (node, gpu) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL) > 0",
            lasting="",
            severity="critical",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} had a memory error that could not be corrected.",
            action="The job on it has failed: cordon the node, and restart it once its other jobs have ended.",
        ),
        Alert(
            name="MLBatchGpuRowRemapFailure",
            expression="max by (node, gpu) (DCGM_FI_DEV_ROW_REMAP_FAILURE) > 0",
            lasting="",
            severity="critical",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} cannot replace broken memory rows any more.",
            action="Cordon the node and hand it back to the provider.",
        ),
        Alert(
            name="MLBatchGpuLost",
            expression="count by (node) (max by (node, gpu) (max_over_time(DCGM_FI_DEV_GPU_TEMP[6h]))) "
            "> on (node) count by (node) (max by (node, gpu) (DCGM_FI_DEV_GPU_TEMP))",
            lasting="5m",
            severity="critical",
            summary="Node {{ $labels.node }} had {{ $value }} GPUs within six hours, and shows fewer now.",
            action="One has fallen off the bus: cordon the node, restart it, and hand it back when the GPU stays away.",
        ),
        Alert(
            name="MLBatchGpusNotWatched",
            expression=f"count by (node) ({watched.offered} > 0) "
            "unless on (node) count by (node) (DCGM_FI_DEV_GPU_TEMP)",
            lasting="15m",
            severity="warning",
            summary="No metrics come of the GPUs of node {{ $labels.node }}.",
            action="See the pod nvidia-dcgm-exporter there: without it, no other alert on these GPUs can be raised.",
        ),
        Alert(
            name="MLBatchGpuThrottled",
            expression="max by (node, gpu, clock_event) "
            '(DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event=~"hw_slowdown|hw_thermal|hw_power_brake|sw_thermal"}) > 0',
            lasting="15m",
            severity="warning",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} runs slower: {{ $labels.clock_event }}.",
            action="A job is as slow as its slowest GPU: look at cooling and power of the node, or cordon it.",
        ),
        Alert(
            name="MLBatchNvlinkErrors",
            # The job on the GPU fails, and its series ends. The next series continues the count.
            expression="increase(max by (node, gpu) (DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL)[1h:1m]) > 0",
            lasting="",
            severity="warning",
            summary="A link of GPU {{ $labels.gpu }} of {{ $labels.node }} had to be set up anew within an hour.",
            action="When it happens again, cordon the node and run the NCCL check on it.",
        ),
        *((idle,) if metrics.knows_holders(watched.gpu_resource) else ()),
    )


def _nodes(watched: Watched) -> Sequence[Alert]:
    offered, capacity = watched.offered, watched.offered.replace("allocatable", "capacity")
    should = f"max by (node) (max_over_time({capacity}[6h]))"
    fewer = f"max by (node) ({offered}) < on (node) {should}"
    if watched.gpus_per_node is not None:
        fewer += f" or (max by (node) ({offered}) < {watched.gpus_per_node} and on (node) {should} > 0)"
    gone = Alert(
        name="MLBatchNodeGone",
        expression=f"max by (node) (max_over_time({capacity}[6h])) > 0 unless on (node) kube_node_info {_SEEN}",
        lasting="5m",
        severity="critical",
        summary="Node {{ $labels.node }} with {{ $value }} GPUs is not in the cluster any more.",
        action="Where nobody took it out, see the provider's events; the slack queue lends as much less.",
    )
    return (
        Alert(
            name="MLBatchNodeLost",
            expression='kube_node_status_condition{condition="Ready",status="true"} == 0',
            lasting="5m",
            severity="critical",
            summary="Node {{ $labels.node }} has not been ready for five minutes.",
            action="See `kubectl describe node`; the slack queue lends as much less as the node had.",
        ),
        *(() if watched.has_autoscaler else (gone,)),
        Alert(
            name="MLBatchNodeFewerGpus",
            expression=fewer,
            lasting="15m",
            severity="critical",
            summary="Node {{ $labels.node }} offers {{ $value }} GPUs, fewer than it should.",
            action="See the device plugin's pod there and the GPUs of the node; jobs over whole nodes avoid it.",
        ),
        Alert(
            name="MLBatchNodeUnusable",
            expression="max by (node, reason) (mlbatch_node_unusable) == 1",
            lasting="1h",
            severity="warning",
            summary="Node {{ $labels.node }} has counted for less than it has for an hour: {{ $labels.reason }}.",
            action="Bring it back, or take it out of the pool and its quotas.",
        ),
    )


def _queues(watched: Watched) -> Sequence[Alert]:
    gpu = watched.gpu_resource
    held = "sum by (cluster_queue) (max by (cluster_queue, flavor) (kueue_cluster_queue_resource_reservation"
    nominal = "sum by (cluster_queue) (max by (cluster_queue, flavor) (kueue_cluster_queue_nominal_quota"
    return (
        Alert(
            name="MLBatchQueueStuck",
            # Both metrics are gauges, so a restart of Kueue or an idle time does not affect them. A workload behind a
            # full quota waits for other jobs, which is not a fault.
            expression="sum by (cluster_queue) (max by (cluster_queue, status) (kueue_pending_workloads)) > 0 "
            f'and on (cluster_queue) {held}{{resource="{gpu}"}})) '
            f'< on (cluster_queue) {nominal}{{resource="{gpu}"}}))',
            lasting="30m",
            severity="warning",
            summary="{{ $value }} workloads wait in {{ $labels.cluster_queue }}, which holds less than its quota.",
            action="See `kubectl describe workload` in the team's namespace: a job may ask for more than the quota.",
        ),
        Alert(
            name="MLBatchQueueInactive",
            expression='max by (cluster_queue) (kueue_cluster_queue_status{status!="active"}) == 1',
            lasting="5m",
            severity="critical",
            summary="Kueue admits nothing from {{ $labels.cluster_queue }}.",
            action="See the conditions of the ClusterQueue: its flavor may be gone, or somebody has stopped it.",
        ),
        Alert(
            name="MLBatchWorkloadWaits",
            expression=f"max by (namespace, cluster_queue) ({RECORDED[0]}) > 86400",
            lasting="15m",
            severity="warning",
            summary="A workload in {{ $labels.namespace }} has waited for {{ $value | humanizeDuration }}.",
            action="Compare what it asks for with the quota of its queue, and with what one node has.",
        ),
    )


def _slack(watched: Watched) -> Sequence[Alert]:
    gpu = watched.gpu_resource
    quotas = f'mlbatch_quota{{resource="{gpu}"}}'
    slack_quota = f'mlbatch_quota{{queue="{names.SLACK_QUEUE}",resource="{gpu}"}}'
    usable = f'mlbatch_usable{{resource="{gpu}"}}'
    return (
        Alert(
            name="MLBatchSlackSpent",
            expression=f"sum by (flavor) (max by (queue, flavor) ({quotas})) - max by (flavor) ({usable}) "
            f">= max by (flavor) ({slack_quota}) > 0",
            lasting="15m",
            severity="critical",
            summary="As many GPUs of {{ $labels.flavor }} are lost as the slack queue has: with more, teams miss their "
            "own quota.",
            action="See which nodes lack what in mlbatch_node_lost, and bring them back.",
        ),
        Alert(
            name="MLBatchSlackControllerSilent",
            expression="time() - max(mlbatch_slack_last_reconcile_timestamp_seconds) > 300 "
            "or absent(mlbatch_slack_last_reconcile_timestamp_seconds)",
            lasting="5m",
            severity="critical",
            summary="The slack controller has brought no limit up to date for five minutes: they stay as they are.",
            action="See its pod in mlbatch-system, and its log.",
        ),
    )


_AVAILABLE: Final = "kube_deployment_status_replicas_available"
_UNREACHED: Final = (
    'apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",'
    'name=~".*(\\\\.kb\\\\.io|kueue|codeflare|kubeflow|mlbatch).*"}'
)
"""Webhooks of the platform's operators. A webhook's name differs from its configuration's. Projects that use
kubebuilder, such as Kueue and AppWrapper, use names such as `mworkload.kb.io`."""


def _platform(watched: Watched) -> Sequence[Alert]:
    return (
        Alert(
            name="MLBatchNoObjectState",
            expression="absent(kube_node_info)",
            lasting="10m",
            severity="critical",
            summary="Nothing comes of kube-state-metrics: no alert on nodes, controllers and marks can be raised.",
            action="See its pod in the namespace of the monitoring, and its target in Prometheus.",
        ),
        Alert(
            name="MLBatchControllerDown",
            expression=" or ".join(
                [
                    f'max by (deployment) ({_AVAILABLE}{{namespace="{names.SYSTEM_NAMESPACE}"}}) == 0',
                    *(
                        f'(absent({_AVAILABLE}{{namespace="{names.SYSTEM_NAMESPACE}",deployment="{name}"}}) {_SEEN})'
                        for name in watched.controllers
                    ),
                ]
            ),
            lasting="5m",
            severity="critical",
            summary="No pod of {{ $labels.deployment }} runs: jobs are not admitted, or not looked after.",
            action="See the Deployment in mlbatch-system, its pods and their logs.",
        ),
        Alert(
            name="MLBatchWebhookFails",
            # A webhook's first failure creates a new series, which no rate shows. For an API server that was not
            # monitored ten minutes ago, all series are new, even for old failures.
            expression=f"sum by (name) (increase({_UNREACHED}[10m])) > 0 or sum by (name) ({_UNREACHED} "
            f'unless {_UNREACHED} offset 10m and on (instance) up{{job="apiserver"}} offset 10m == 1) > 0',
            lasting="",
            severity="critical",
            summary="The API server did not reach the webhook {{ $labels.name }}, and refused what came.",
            action="See the controller that answers it, its Service, and the policies of mlbatch-system.",
        ),
        Alert(
            name="MLBatchStoreFull",
            # etcd's default quota, if the cluster does not report its own. A full store accepts only deletions.
            expression="max(apiserver_storage_size_bytes) "
            "> 0.75 * (max(etcd_server_quota_backend_bytes) or vector(2 ^ 31))",
            lasting="5m",
            severity="critical",
            summary="The API server's store has {{ $value | humanize1024 }}B, three quarters of its quota or more.",
            action="Find who writes large or many objects, delete them, and defragment etcd.",
        ),
        Alert(
            name="MLBatchVolumeFull",
            expression="min by (namespace, persistentvolumeclaim) "
            "(kubelet_volume_stats_available_bytes / kubelet_volume_stats_capacity_bytes) < 0.05",
            lasting="10m",
            severity="warning",
            summary="Volume {{ $labels.persistentvolumeclaim }} of {{ $labels.namespace }} is nearly full.",
            action="Jobs that write there will fail: have the team clear it, or enlarge it.",
        ),
    )


_HEALTH: Final = (
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
        summary="NVIDIA's long diagnostics found something, or could not run: job {{ $labels.job_name }}.",
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
        # Autopilot keeps the result of a node that has left the cluster.
        expression='autopilot_health_checks{health="ping"} == 1 '
        'and on (deviceid) label_replace(kube_node_info, "deviceid", "$1", "node", "(.*)")',
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
)
_INFINIBAND: Final = (
    Alert(
        name="MLBatchInfiniBandPortDown",
        # A port that was never active has no cable. 4 is active, and 5 is active again after an error of the link.
        expression="max by (node, device, port) (node_infiniband_state_id) != 4 and on (node, device, port) "
        "max by (node, device, port) (max_over_time(node_infiniband_state_id[7d])) >= 4",
        lasting="5m",
        severity="warning",
        summary="Port {{ $labels.device }} of {{ $labels.node }} is not active.",
        action="Jobs over several nodes fail or crawl there: cordon the node and hand it back to the provider.",
    ),
    Alert(
        name="MLBatchInfiniBandLinkFlaps",
        # By port, not by series: a new exporter pod starts a new series at the port's current count.
        expression="increase(max by (node, device, port) (node_infiniband_link_downed_total)[1h:1m]) > 0",
        lasting="",
        severity="warning",
        summary="Port {{ $labels.device }} of {{ $labels.node }} lost its link within the last hour.",
        action="When it happens again, cordon the node and run the NCCL check on it.",
    ),
)
_NO_QUOTA: Final = 'mlbatch_workload_condition{condition="QuotaReserved"} == 0'
_WAITING: Final = (
    "(time() - max by (namespace, name, queue) (("
    f'(mlbatch_workload_condition_since{{condition="QuotaReserved"}} and on (namespace, name) {_NO_QUOTA}) '
    "or on (namespace, name) mlbatch_workload_created) "
    'unless on (namespace, name) mlbatch_workload_condition{condition=~"QuotaReserved|Finished"} == 1 '
    "unless on (namespace, name) mlbatch_workload_active == 0))"
)
_PENDING: Final = (
    f"{_WAITING} * on (namespace, queue) group_left (cluster_queue) "
    "max by (namespace, queue, cluster_queue) (mlbatch_localqueue_info) "
    f"or on (namespace, name) {_WAITING}"
)
"""Seconds that each workload has waited since its creation or the last loss of its quota. It has the label of its
ClusterQueue, unless its LocalQueue does not exist. Such a workload is waiting too."""


@dataclass(frozen=True, kw_only=True)
class AlertsArgs:
    """The arguments of the alerts.

    namespace: must exist.
    labels: labels that Prometheus selects its rules by.
    watched: properties of the cluster.
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
    recorded = {"record": RECORDED[0], "expr": _PENDING}
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
