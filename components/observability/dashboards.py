"""Grafana's dashboards as code, the same on every target.

A dashboard is a list of panels with Prometheus queries. Grafana's sidecar loads each ConfigMap with the label `LABEL`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.observability.metrics import knows_holders, resource_label

LABEL: Final[Mapping[str, str]] = {"grafana_dashboard": "1"}
"""Label that the sidecar of kube-prometheus-stack selects (`grafana.sidecar.dashboards.label`)."""

_SOURCE: Final = {"type": "prometheus", "uid": "prometheus"}
"""The data source of kube-prometheus-stack (`grafana.sidecar.datasources.uid`)."""
_COLUMNS: Final = 24
_HEIGHT: Final = 8
_SCHEMA: Final = 39


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A graph.

    queries: PromQL by legend. A legend may contain labels as `{{node}}`.
    unit: Grafana's name, such as `percent`, `celsius`, `watt`, `decmbytes`, `Bps`, `short`.
    """

    title: str
    queries: Mapping[str, str]
    unit: str = "short"
    width: int = 12
    stacked: bool = False
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """A dashboard.

    uid: its address, which stays the same when it is renamed.
    variables: filters for readers, as query by name.
    """

    uid: str
    title: str
    panels: Sequence[Panel]
    variables: Mapping[str, str]


_GPU_LEGEND: Final = "{{node}} GPU {{gpu}}"
_PORT_LEGEND: Final = "{{node}} {{device}}"
_QUEUE: Final = 'cluster_queue=~"$queue"'
_TOLERATED: Final = f'key!="{names.GPU}"'
"""Selects taints that jobs do not tolerate. A placeholder for the taints of the cluster's GPU nodes."""
_HELD_BY: Final = 'exported_namespace!=""'
"""Selects metrics of GPUs that a pod has, by its namespace."""


def _gpu(metric: str) -> str:
    """Return a metric of each GPU, as one series even when jobs end there."""
    return f'max by (node, gpu) ({metric}{{node=~"$node"}})'


def _given(name: str) -> str:
    """Return a metric of each GPU that a pod of a namespace has."""
    return f"max by (node, gpu, exported_namespace) ({name}{{{_HELD_BY}}})"


def _queue(metric: str) -> str:
    """Return the GPUs of each queue from a metric of Kueue, counted once even with several replicas."""
    selected = f'{metric}{{{_QUEUE},resource="nvidia.com/gpu"}}'
    return f"sum by (cluster_queue) (max by (cluster_queue, flavor) ({selected}))"


def _port(metric: str) -> str:
    """Return a metric of each InfiniBand port."""
    return f'max by (node, device, port) ({metric}{{node=~"$node"}})'


def _port_rate(metric: str) -> str:
    """Return the rate of a counter of each InfiniBand port."""
    return f'max by (node, device, port) (rate({metric}{{node=~"$node"}}[5m]))'


def _port_errors(metric: str) -> str:
    """Return the events of each InfiniBand port in an hour, even if its exporter was replaced."""
    return f"increase({_port(metric)}[1h:30s])"


def _in_an_hour(counter: str) -> str:
    """Return the events of each series of a counter in an hour.

    A series starts with its first event, which `increase` does not see. All events of a new series are therefore
    counted.
    """
    was_there = f"last_over_time({counter}[1h] offset 1h)"
    return f"(increase({counter}[1h]) and {was_there} or last_over_time({counter}[1h]) unless {was_there})"


def _wait(share: float) -> str:
    """Return the quantile of the wait times of admitted workloads. share: such as 0.5 for the median."""
    bucket = f"kueue_admission_wait_time_seconds_bucket{{{_QUEUE}}}"
    return f"histogram_quantile({share}, sum by (cluster_queue, le) ({_in_an_hour(bucket)}))"


_HELD: Final = _queue("kueue_cluster_queue_resource_reservation")
_QUOTA: Final = _queue("kueue_cluster_queue_nominal_quota")
_SENT: Final = _port_rate("node_infiniband_port_data_transmitted_bytes_total")

GPUS: Final = Dashboard(
    uid="mlbatch-gpus",
    title="MLBatch / GPUs",
    variables={"node": "label_values(DCGM_FI_DEV_GPU_UTIL, node)"},
    panels=(
        Panel(
            title="GPUs that teams hold, and those that work",
            description="What lies between the two lines of a team is waste.",
            queries={
                "{{namespace}} held": (
                    'sum by (namespace) (kube_pod_container_resource_requests{resource="nvidia_com_gpu"} '
                    'and on (namespace, pod) kube_pod_status_phase{phase="Running"} == 1)'
                ),
                "{{exported_namespace}} at work": (
                    f"sum by (exported_namespace) ({_given('DCGM_FI_DEV_GPU_UTIL')}) / 100"
                ),
            },
        ),
        Panel(
            title="GPUs that are held and idle",
            description="Without any work within a quarter of an hour.",
            stacked=True,
            queries={
                "{{exported_namespace}}": (
                    "sum by (exported_namespace) (max by (node, gpu, exported_namespace) "
                    f"(max_over_time(DCGM_FI_DEV_GPU_UTIL{{{_HELD_BY}}}[15m])) == bool 0)"
                )
            },
        ),
        Panel(title="Utilization", unit="percent", queries={_GPU_LEGEND: _gpu("DCGM_FI_DEV_GPU_UTIL")}),
        Panel(
            title="Tensor cores active",
            unit="percentunit",
            description="A busy GPU whose tensor cores idle waits for data or for its peers.",
            queries={_GPU_LEGEND: _gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE")},
        ),
        Panel(title="Memory used", unit="mbytes", queries={_GPU_LEGEND: _gpu("DCGM_FI_DEV_FB_USED")}),
        Panel(
            title="Power",
            unit="watt",
            stacked=True,
            queries={"{{node}}": f"sum by (node) ({_gpu('DCGM_FI_DEV_POWER_USAGE')})"},
        ),
        Panel(
            title="Temperature",
            unit="celsius",
            queries={
                "{{node}} hottest GPU": f"max by (node) ({_gpu('DCGM_FI_DEV_GPU_TEMP')})",
                "{{node}} hottest memory": f"max by (node) ({_gpu('DCGM_FI_DEV_MEMORY_TEMP')})",
            },
        ),
        Panel(
            title="Reasons for lower clocks",
            description="Counted over five minutes. Heat and power brakes are faults, a power cap is none.",
            queries={
                f"{_GPU_LEGEND} {{{{clock_event}}}}": (
                    'max by (node, gpu, clock_event) (DCGM_EXP_CLOCK_EVENTS_COUNT{node=~"$node"})'
                )
            },
        ),
        Panel(
            title="NVLink traffic",
            unit="Bps",
            queries={
                f"{_GPU_LEGEND} sent": _gpu("DCGM_FI_PROF_NVLINK_TX_BYTES"),
                f"{_GPU_LEGEND} received": _gpu("DCGM_FI_PROF_NVLINK_RX_BYTES"),
            },
        ),
        Panel(
            title="NVLink errors since the driver was loaded",
            queries={
                f"{_GPU_LEGEND} retries": _gpu("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
                f"{_GPU_LEGEND} recoveries": _gpu("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
            },
        ),
        Panel(
            title="Last XID error",
            description="0 is none; the numbers are in NVIDIA's table of XID errors.",
            queries={_GPU_LEGEND: _gpu("DCGM_FI_DEV_XID_ERRORS")},
        ),
        Panel(
            title="Memory errors",
            queries={
                f"{_GPU_LEGEND} double-bit": _gpu("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
                f"{_GPU_LEGEND} rows replaced": _gpu("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"),
                f"{_GPU_LEGEND} rows, correctable": _gpu("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"),
                f"{_GPU_LEGEND} no rows left": _gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE"),
            },
        ),
    ),
)

QUEUES: Final = Dashboard(
    uid="mlbatch-queues",
    title="MLBatch / Queues",
    variables={"queue": "label_values(kueue_pending_workloads, cluster_queue)"},
    panels=(
        Panel(
            title="Waiting workloads",
            stacked=True,
            queries={
                "{{cluster_queue}} {{status}}": (
                    f"max by (cluster_queue, status) (kueue_pending_workloads{{{_QUEUE}}})"
                )
            },
        ),
        Panel(
            title="Oldest workload that waits",
            unit="s",
            description="Of who waits still, since it was created or was last taken its quota from.",
            queries={"{{cluster_queue}}": f"max by (cluster_queue) (mlbatch:workload_pending_seconds{{{_QUEUE}}})"},
        ),
        Panel(
            title="Running workloads",
            stacked=True,
            queries={"{{cluster_queue}}": f"max by (cluster_queue) (kueue_admitted_active_workloads{{{_QUEUE}}})"},
        ),
        Panel(
            title="GPUs in use, and quota",
            description="Use above the quota is borrowed from the other queues.",
            queries={"{{cluster_queue}} used": _HELD, "{{cluster_queue}} quota": _QUOTA},
        ),
        Panel(
            title="GPUs that are borrowed",
            stacked=True,
            queries={"{{cluster_queue}}": f"clamp_min({_HELD} - {_QUOTA}, 0)"},
        ),
        Panel(
            title="GPUs of its quota that a queue leaves to others",
            description="What is borrowed in all comes of these.",
            stacked=True,
            queries={"{{cluster_queue}}": f"clamp_min({_QUOTA} - {_HELD}, 0)"},
        ),
        Panel(
            title="GPUs that may be lent at most",
            description="Less than the quota where nodes are lost, and where the settings say so.",
            queries={
                "{{queue}}": "sum by (queue) (max by (queue, flavor) "
                '(mlbatch_lending_limit{queue=~"$queue",resource="nvidia.com/gpu"}))'
            },
        ),
        Panel(
            title="Time until admission",
            unit="s",
            description="Of the admitted, and nothing above 11.4 hours (Kueue 0.15.2: 2.8): see the oldest that waits.",
            queries={"{{cluster_queue}} half": _wait(0.5), "{{cluster_queue}} nine of ten": _wait(0.9)},
        ),
        Panel(
            title="Preemptions in an hour, by who preempts",
            queries={
                "{{preempting_cluster_queue}} {{reason}}": (
                    "sum by (preempting_cluster_queue, reason) "
                    + _in_an_hour('kueue_preempted_workloads_total{preempting_cluster_queue=~"$queue"}')
                )
            },
        ),
        Panel(
            title="Evictions in an hour, by reason",
            queries={
                "{{cluster_queue}} {{reason}}": (
                    "sum by (cluster_queue, reason) " + _in_an_hour(f"kueue_evicted_workloads_total{{{_QUEUE}}}")
                )
            },
        ),
        Panel(
            title="Weighted share",
            description="Who is above takes longer to be admitted, and is preempted first.",
            queries={"{{cluster_queue}}": f"max by (cluster_queue) (kueue_cluster_queue_weighted_share{{{_QUEUE}}})"},
        ),
        Panel(
            title="AppWrappers by phase",
            stacked=True,
            queries={"{{phase}}": "sum by (phase) (mlbatch_appwrapper_phase)"},
        ),
        Panel(
            title="AppWrappers that were run anew, and that failed",
            queries={
                "{{namespace}} resets": "sum by (namespace) (mlbatch_appwrapper_retries)",
                "{{namespace}} failed": 'sum by (namespace) (mlbatch_appwrapper_phase{phase="Failed"})',
            },
        ),
        Panel(
            title="Phases that AppWrappers came to in an hour",
            description="Also of those that are deleted by now.",
            queries={
                "{{exported_namespace}} {{phase}}": (
                    "sum by (exported_namespace, phase) " + _in_an_hour("appwrapper_phase_total")
                )
            },
        ),
    ),
)

INFINIBAND: Final = Dashboard(
    uid="mlbatch-infiniband",
    title="MLBatch / InfiniBand",
    variables={"node": "label_values(node_infiniband_state_id, node)"},
    panels=(
        Panel(title="Sent", unit="Bps", queries={_PORT_LEGEND: _SENT}),
        Panel(
            title="Received",
            unit="Bps",
            queries={_PORT_LEGEND: _port_rate("node_infiniband_port_data_received_bytes_total")},
        ),
        Panel(
            title="Share of the line rate that is sent",
            unit="percentunit",
            queries={_PORT_LEGEND: f"{_SENT} / {_port('node_infiniband_rate_bytes_per_second')}"},
        ),
        Panel(
            title="Waiting for credits",
            description="Ticks in which a port had data and could not send: congestion.",
            queries={_PORT_LEGEND: _port_rate("node_infiniband_port_transmit_wait_total")},
        ),
        Panel(
            title="Ports that are active",
            queries={"{{node}}": f"sum by (node) ({_port('node_infiniband_state_id')} == bool 4)"},
        ),
        Panel(
            title="Link errors in an hour",
            queries={
                f"{_PORT_LEGEND} down": _port_errors("node_infiniband_link_downed_total"),
                f"{_PORT_LEGEND} symbol": _port_errors("node_infiniband_symbol_error_total"),
                f"{_PORT_LEGEND} received": _port_errors("node_infiniband_port_errors_received_total"),
            },
        ),
    ),
)

NODES: Final = Dashboard(
    uid="mlbatch-nodes",
    title="MLBatch / Node health",
    variables={"node": "label_values(kube_node_info, node)"},
    panels=(
        Panel(
            title="Nodes that are ready",
            queries={
                "ready": 'sum(kube_node_status_condition{condition="Ready",status="true"})',
                "all": "count(kube_node_info)",
            },
        ),
        Panel(
            title="GPUs that are lost",
            description="The slack queue lends as much less. The quotas' line counts nodes that are gone, too.",
            queries={
                "{{node}}: {{reason}}": (
                    'max by (node, reason) (mlbatch_node_lost{node=~"$node",resource="nvidia.com/gpu"})'
                ),
                "of the quotas": (
                    'sum(clamp_min(sum by (flavor) (max by (queue, flavor) (mlbatch_quota{resource="nvidia.com/gpu"})) '
                    '- max by (flavor) (mlbatch_usable{resource="nvidia.com/gpu"}), 0))'
                ),
            },
        ),
        Panel(
            title="Marks of health checks",
            description="Jobs stay away from ERR and TESTING, and are moved from EVICT.",
            queries={
                "{{node}} {{label_autopilot_ibm_com_gpuhealth}}": (
                    'kube_node_labels{node=~"$node",label_autopilot_ibm_com_gpuhealth!=""}'
                )
            },
        ),
        Panel(
            title="Nodes that jobs are kept away from",
            description="By a gate that found them sick, or by the cluster.",
            queries={
                "{{node}} {{key}}": (
                    'max by (node, key) (kube_node_spec_taint{node=~"$node",effect=~"NoSchedule|NoExecute",'
                    f"{_TOLERATED}}})"
                )
            },
        ),
        Panel(
            title="Bandwidth to GPUs",
            unit="GBs",
            queries={"{{node}} GPU {{deviceid}}": 'autopilot_health_checks{health="pciebw",node=~"$node"}'},
        ),
        Panel(
            title="Checks that failed",
            description="1 where a check failed when it ran last; pings of nodes that the cluster has.",
            queries={
                "{{node}} {{health}} {{deviceid}}": (
                    'autopilot_health_checks{health=~"dcgm|remapped|power-slowdown|pvc",node=~"$node"} '
                    'or autopilot_health_checks{health="ping",node=~"$node"} '
                    'and on (deviceid) label_replace(kube_node_info, "deviceid", "$1", "node", "(.*)")'
                )
            },
        ),
    ),
)

PLATFORM: Final = Dashboard(
    uid="mlbatch-platform",
    title="MLBatch / Platform",
    variables={"namespace": "label_values(kubelet_volume_stats_capacity_bytes, namespace)"},
    panels=(
        Panel(
            title="Pods of controllers that answer",
            description="A line at 0, or one that ends, is a controller that is down.",
            queries={
                "{{deployment}}": (
                    "max by (deployment) "
                    f'(kube_deployment_status_replicas_available{{namespace="{names.SYSTEM_NAMESPACE}"}})'
                )
            },
        ),
        Panel(
            title="Requests that were refused because a webhook did not answer",
            description="Since the API server started.",
            queries={
                "{{name}}": (
                    "sum by (name) "
                    '(apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error"}) or vector(0)'
                )
            },
        ),
        Panel(
            title="Since the limits were last brought up to date",
            unit="s",
            queries={"slack controller": "time() - max(mlbatch_slack_last_reconcile_timestamp_seconds)"},
        ),
        Panel(
            title="Volumes: what is used",
            unit="percentunit",
            queries={
                "{{namespace}} {{persistentvolumeclaim}}": (
                    "1 - min by (namespace, persistentvolumeclaim) "
                    '(kubelet_volume_stats_available_bytes{namespace=~"$namespace"} '
                    '/ kubelet_volume_stats_capacity_bytes{namespace=~"$namespace"})'
                )
            },
        ),
    ),
)

DASHBOARDS: Final = (GPUS, NODES, QUEUES, INFINIBAND, PLATFORM)


@dataclass(frozen=True, kw_only=True)
class DashboardsArgs:
    """The arguments of the dashboards.

    namespace: Grafana's, which must exist.
    dashboards: dashboards of the platform.
    published: models of other dashboards by their uid.
    gpu_resource: resource name under which nodes offer GPUs.
    tolerated: keys of the taints that jobs tolerate.
    lacking: metrics that no exporter has in this cluster.
    """

    namespace: pulumi.Input[str]
    gpu_resource: str = names.GPU
    tolerated: Sequence[str] = (names.GPU,)
    lacking: Collection[str] = ()
    dashboards: Sequence[Dashboard] = DASHBOARDS
    published: Mapping[str, Document] = field(default_factory=dict)


class Dashboards(pulumi.ComponentResource):
    """Create dashboards that Grafana's sidecar loads. They follow the code, and edits in Grafana are lost."""

    def __init__(self, name: str, args: DashboardsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:Dashboards", name, None, opts)
        shown = filter(None, (without(item, args.lacking) for item in args.dashboards))
        own = {item.uid: model(counting(item, args.gpu_resource, args.tolerated)) for item in shown}
        for uid, found in {**own, **args.published}.items():
            body = config_map(uid, found, args.namespace)
            Manifest(f"{name}/{uid}", body, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def without(dashboard: Dashboard, lacking: Collection[str]) -> Dashboard | None:
    """Return a dashboard without queries for missing metrics, or None if its variables need them."""

    def is_answered(query: str) -> bool:
        return set(re.findall(r"[\w:]+", query)).isdisjoint(lacking)

    if not all(map(is_answered, dashboard.variables.values())):
        return None
    panels = [
        replace(panel, queries={legend: query for legend, query in panel.queries.items() if is_answered(query)})
        for panel in dashboard.panels
    ]
    return replace(dashboard, panels=[panel for panel in panels if panel.queries])


def counting(dashboard: Dashboard, gpu_resource: str, tolerated: Sequence[str] = (names.GPU,)) -> Dashboard:
    """Return a dashboard that counts GPUs by the cluster's resource name, without queries for unknown data.

    tolerated: keys of the taints that jobs tolerate.
    """
    kept_away = ",".join(f'key!="{key}"' for key in tolerated)
    called = {names.GPU: gpu_resource, resource_label(names.GPU): resource_label(gpu_resource)}

    def asked(query: str) -> str:
        query = query.replace(_TOLERATED, kept_away)
        return re.sub(r'resource="([^"]+)"', lambda found: f'resource="{called.get(found[1], found[1])}"', query)

    known = [panel if knows_holders(gpu_resource) else _without_holders(panel) for panel in dashboard.panels]
    panels = [
        replace(panel, queries={legend: asked(query) for legend, query in panel.queries.items()})
        for panel in known
        if panel.queries
    ]
    return replace(dashboard, panels=panels)


def _without_holders(panel: Panel) -> Panel:
    """Return a panel without queries for the pods that have a GPU. It may have no queries left."""
    queries = {legend: query for legend, query in panel.queries.items() if _HELD_BY not in query}
    if queries == panel.queries:
        return panel
    told = "GPUs are shared, and NVIDIA's exporter does not know by whom: which of them work is not shown."
    return replace(panel, queries=queries, description=told)


def config_map(uid: str, found: Document, namespace: pulumi.Input[str]) -> Document:
    """Return the ConfigMap of a dashboard."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": uid, "namespace": namespace, "labels": dict(LABEL)},
        "data": {f"{uid}.json": json.dumps(found, indent=1)},
    }


def published(uid: str, text: str) -> Document:
    """Return a published dashboard with the platform's Prometheus. Raises ValueError if it is not a dashboard.

    In published dashboards, the data source is an input for the importing user. Panels contain its name in braces
    (grafana.com/docs/grafana, dashboards/share-dashboards-panels, "Export dashboards").
    """
    try:
        inputs = json.loads(text).get("__inputs", ())
        sources = [item["name"] for item in inputs if item["type"] == "datasource"]
        for source in sources:
            text = text.replace(f"${{{source}}}", _SOURCE["uid"])
        found: Document = {key: value for key, value in json.loads(text).items() if not key.startswith("__")}
        if not isinstance(found["title"], str) or not isinstance(found["panels"], list):
            raise ValueError("its title or its panels are of another form")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no dashboard of Grafana: {error}") from error
    return {**found, "id": None, "uid": uid}


def model(dashboard: Dashboard) -> Document:
    """Return a dashboard in Grafana's JSON model (grafana.com/docs/grafana, dashboards/build-dashboards)."""
    places = _places([panel.width for panel in dashboard.panels])
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["mlbatch"],
        "schemaVersion": _SCHEMA,
        "editable": False,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_variable(name, query) for name, query in dashboard.variables.items()]},
        "panels": [
            _panel(number, panel, place)
            for number, (panel, place) in enumerate(zip(dashboard.panels, places, strict=True), 1)
        ],
    }


def expressions(dashboard: Dashboard) -> list[str]:
    """Return all queries of a dashboard."""
    asked = [query for panel in dashboard.panels for query in panel.queries.values()]
    return [*asked, *dashboard.variables.values()]


def _places(widths: Sequence[int]) -> list[tuple[int, int]]:
    """Return column and row of each panel: left to right, with a new row when one does not fit."""
    places = [(0, 0)]
    for width, following in pairwise(widths):
        column, row = places[-1]
        fits = column + width + following <= _COLUMNS
        places.append((column + width, row) if fits else (0, row + _HEIGHT))
    return places[: len(widths)]


def _variable(name: str, query: str) -> Document:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(number: int, panel: Panel, place: tuple[int, int]) -> Document:
    column, row = place
    custom: dict[str, Any] = {"drawStyle": "line", "fillOpacity": 10, "spanNulls": False}
    if panel.stacked:
        custom["stacking"] = {"mode": "normal"}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": {"x": column, "y": row, "w": panel.width, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "table", "placement": "right"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": f"Q{index}", "datasource": _SOURCE, "expr": query, "legendFormat": legend}
            for index, (legend, query) in enumerate(panel.queries.items(), 1)
        ],
    }
