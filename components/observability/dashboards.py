"""Grafana's dashboards as code, the same on every target.

A dashboard is a list of panels, and a panel a question to Prometheus. Grafana's sidecar loads each ConfigMap that
carries the label of `LABEL`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import pulumi

from components.kubernetes.manifests import Document, Manifest

LABEL: Final[Mapping[str, str]] = {"grafana_dashboard": "1"}
"""What the sidecar of kube-prometheus-stack looks for (`grafana.sidecar.dashboards.label`)."""

_SOURCE: Final = {"type": "prometheus", "uid": "prometheus"}
"""The data source that kube-prometheus-stack sets up (`grafana.sidecar.datasources.uid`)."""
_COLUMNS: Final = 24
_HEIGHT: Final = 8
_SCHEMA: Final = 39


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A graph.

    queries: expression by legend; a legend may name labels as `{{node}}`.
    unit: as Grafana names it, such as `percent`, `celsius`, `watt`, `decmbytes`, `Bps`, `short`.
    """

    title: str
    queries: Mapping[str, str]
    unit: str = "short"
    width: int = 12
    stacked: bool = False
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """uid: its address, stable over renames. variables: what a reader can narrow it to, as query by name."""

    uid: str
    title: str
    panels: Sequence[Panel]
    variables: Mapping[str, str]


GPUS: Final = Dashboard(
    uid="mlbatch-gpus",
    title="MLBatch / GPUs",
    variables={"node": "label_values(DCGM_FI_DEV_GPU_UTIL, Hostname)"},
    panels=(
        Panel(
            title="Utilization",
            unit="percent",
            queries={"{{Hostname}} GPU {{gpu}}": 'DCGM_FI_DEV_GPU_UTIL{Hostname=~"$node"}'},
        ),
        Panel(
            title="Tensor cores active",
            unit="percentunit",
            description="A busy GPU whose tensor cores idle waits for data or for its peers.",
            queries={"{{Hostname}} GPU {{gpu}}": 'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{Hostname=~"$node"}'},
        ),
        Panel(
            title="Memory used",
            unit="mbytes",
            queries={"{{Hostname}} GPU {{gpu}}": 'DCGM_FI_DEV_FB_USED{Hostname=~"$node"}'},
        ),
        Panel(
            title="Power",
            unit="watt",
            stacked=True,
            queries={"{{Hostname}}": 'sum by (Hostname) (DCGM_FI_DEV_POWER_USAGE{Hostname=~"$node"})'},
        ),
        Panel(
            title="Temperature",
            unit="celsius",
            queries={
                "{{Hostname}} hottest GPU": 'max by (Hostname) (DCGM_FI_DEV_GPU_TEMP{Hostname=~"$node"})',
                "{{Hostname}} hottest memory": 'max by (Hostname) (DCGM_FI_DEV_MEMORY_TEMP{Hostname=~"$node"})',
            },
        ),
        Panel(
            title="NVLink traffic",
            description="Change of DCGM's counter over all lanes; compare GPUs with each other.",
            queries={
                "{{Hostname}} GPU {{gpu}}": 'rate(DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{Hostname=~"$node"}[5m])',
            },
        ),
        Panel(
            title="Last XID error",
            description="0 is none; the numbers are in NVIDIA's table of XID errors.",
            queries={"{{Hostname}} GPU {{gpu}}": 'DCGM_FI_DEV_XID_ERRORS{Hostname=~"$node"}'},
        ),
        Panel(
            title="Memory errors that could not be corrected",
            queries={
                "{{Hostname}} GPU {{gpu}} double-bit": 'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{Hostname=~"$node"}',
                "{{Hostname}} GPU {{gpu}} rows": 'DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{Hostname=~"$node"}',
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
                    'sum by (cluster_queue, status) (kueue_pending_workloads{cluster_queue=~"$queue"})'
                )
            },
        ),
        Panel(
            title="Running workloads",
            stacked=True,
            queries={"{{cluster_queue}}": 'kueue_admitted_active_workloads{cluster_queue=~"$queue"}'},
        ),
        Panel(
            title="GPUs in use, and quota",
            description="Use above the quota is borrowed from the other queues.",
            queries={
                "{{cluster_queue}} used": (
                    'sum by (cluster_queue) (kueue_cluster_queue_resource_usage{cluster_queue=~"$queue",'
                    'resource="nvidia.com/gpu"})'
                ),
                "{{cluster_queue}} quota": (
                    'sum by (cluster_queue) (kueue_cluster_queue_nominal_quota{cluster_queue=~"$queue",'
                    'resource="nvidia.com/gpu"})'
                ),
            },
        ),
        Panel(
            title="GPUs that are borrowed",
            stacked=True,
            queries={
                "{{cluster_queue}}": (
                    'clamp_min(sum by (cluster_queue) (kueue_cluster_queue_resource_usage{cluster_queue=~"$queue",'
                    'resource="nvidia.com/gpu"}) - sum by (cluster_queue) (kueue_cluster_queue_nominal_quota'
                    '{cluster_queue=~"$queue",resource="nvidia.com/gpu"}), 0)'
                )
            },
        ),
        Panel(
            title="GPUs that may be lent at most",
            description="Of queues whose loans the slack controller limits, because nodes are lost.",
            queries={"{{queue}}": 'mlbatch_lending_limit{queue=~"$queue",resource="nvidia.com/gpu"}'},
        ),
        Panel(
            title="Time until admission",
            unit="s",
            queries={
                "{{cluster_queue}} half": (
                    "histogram_quantile(0.5, sum by (cluster_queue, le) "
                    '(rate(kueue_admission_wait_time_seconds_bucket{cluster_queue=~"$queue"}[1h])))'
                ),
                "{{cluster_queue}} nine of ten": (
                    "histogram_quantile(0.9, sum by (cluster_queue, le) "
                    '(rate(kueue_admission_wait_time_seconds_bucket{cluster_queue=~"$queue"}[1h])))'
                ),
            },
        ),
        Panel(
            title="Evictions by reason",
            queries={
                "{{cluster_queue}} {{reason}}": (
                    'sum by (cluster_queue, reason) (increase(kueue_evicted_workloads_total{cluster_queue=~"$queue"}'
                    "[1h]))"
                )
            },
        ),
        Panel(
            title="Weighted share",
            description="Who is above takes longer to be admitted, and is preempted first.",
            queries={"{{cluster_queue}}": 'kueue_cluster_queue_weighted_share{cluster_queue=~"$queue"}'},
        ),
        Panel(
            title="Nodes that are ready",
            queries={"ready": 'sum(kube_node_status_condition{condition="Ready",status="true"})'},
        ),
    ),
)

INFINIBAND: Final = Dashboard(
    uid="mlbatch-infiniband",
    title="MLBatch / InfiniBand",
    variables={"node": "label_values(node_infiniband_state_id, instance)"},
    panels=(
        Panel(
            title="Sent",
            unit="Bps",
            queries={
                "{{instance}} {{device}}": (
                    'rate(node_infiniband_port_data_transmitted_bytes_total{instance=~"$node"}[5m])'
                )
            },
        ),
        Panel(
            title="Received",
            unit="Bps",
            queries={
                "{{instance}} {{device}}": 'rate(node_infiniband_port_data_received_bytes_total{instance=~"$node"}[5m])'
            },
        ),
        Panel(
            title="Share of the line rate that is sent",
            unit="percentunit",
            queries={
                "{{instance}} {{device}}": (
                    'rate(node_infiniband_port_data_transmitted_bytes_total{instance=~"$node"}[5m])'
                    " / on (instance, device, port) node_infiniband_rate_bytes_per_second"
                )
            },
        ),
        Panel(
            title="Waiting for credits",
            description="Ticks in which a port had data and could not send: congestion.",
            queries={
                "{{instance}} {{device}}": 'rate(node_infiniband_port_transmit_wait_total{instance=~"$node"}[5m])'
            },
        ),
        Panel(
            title="Ports that are active",
            queries={"{{instance}}": 'count by (instance) (node_infiniband_state_id{instance=~"$node"} == 4)'},
        ),
        Panel(
            title="Link errors in an hour",
            queries={
                "{{instance}} {{device}} down": ('increase(node_infiniband_link_downed_total{instance=~"$node"}[1h])'),
                "{{instance}} {{device}} symbol": (
                    'increase(node_infiniband_symbol_error_total{instance=~"$node"}[1h])'
                ),
                "{{instance}} {{device}} received": (
                    'increase(node_infiniband_port_errors_received_total{instance=~"$node"}[1h])'
                ),
            },
        ),
    ),
)

NODES: Final = Dashboard(
    uid="mlbatch-nodes",
    title="MLBatch / Node health",
    variables={"node": "label_values(kube_node_labels, node)"},
    panels=(
        Panel(
            title="Marks of health checks",
            description="Jobs stay away from ERR and TESTING, and are moved from EVICT.",
            queries={
                "{{node}} {{label_autopilot_ibm_com_gpuhealth}}": (
                    'kube_node_labels{node=~"$node",label_autopilot_ibm_com_gpuhealth=~"WARN|ERR|TESTING|EVICT"}'
                )
            },
        ),
        Panel(
            title="Nodes that count for nothing",
            queries={"{{node}}: {{reason}}": 'mlbatch_node_unusable{node=~"$node"}'},
        ),
        Panel(
            title="Bandwidth to GPUs",
            unit="GBs",
            queries={"{{node}} GPU {{deviceid}}": 'autopilot_health_checks{health="pciebw",node=~"$node"}'},
        ),
        Panel(
            title="Checks that failed",
            queries={
                "{{node}} {{health}} {{deviceid}}": (
                    'autopilot_health_checks{health=~"dcgm|remapped|power-slowdown|ping|pvc",node=~"$node"} == 1'
                )
            },
        ),
    ),
)

DASHBOARDS: Final = (GPUS, NODES, QUEUES, INFINIBAND)


@dataclass(frozen=True, kw_only=True)
class DashboardsArgs:
    """namespace: Grafana's, which must exist. dashboards: which ones. published: models of others', by their uid."""

    namespace: pulumi.Input[str]
    dashboards: Sequence[Dashboard] = DASHBOARDS
    published: Mapping[str, Document] = field(default_factory=dict)


class Dashboards(pulumi.ComponentResource):
    """Put dashboards where Grafana's sidecar finds them; they follow the code, and edits in Grafana are not kept."""

    def __init__(self, name: str, args: DashboardsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:observability:Dashboards", name, None, opts)
        for uid, found in {**{item.uid: model(item) for item in args.dashboards}, **args.published}.items():
            body = config_map(uid, found, args.namespace)
            Manifest(f"{name}/{uid}", body, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


def config_map(uid: str, found: Document, namespace: pulumi.Input[str]) -> Document:
    """Return the ConfigMap of a dashboard, by its uid and model."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": uid, "namespace": namespace, "labels": dict(LABEL)},
        "data": {f"{uid}.json": json.dumps(found, indent=1)},
    }


def published(uid: str, text: str) -> Document:
    """Return a dashboard as it is published, bound to the platform's Prometheus; raises ValueError where it is none.

    Published ones leave the data source to whoever imports them, as an input that their panels name in braces
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
    """Return everything that a dashboard asks Prometheus."""
    asked = [query for panel in dashboard.panels for query in panel.queries.values()]
    return [*asked, *dashboard.variables.values()]


def _places(widths: Sequence[int]) -> list[tuple[int, int]]:
    """Return column and row of each panel: left to right, a new row where one does not fit."""
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
