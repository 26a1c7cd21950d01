"""Grafana's dashboards from dashboards.yaml, the same on every target.

A dashboard is a list of panels with Prometheus queries. Grafana's sidecar loads each ConfigMap with the label `LABEL`.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import pulumi

from components import names
from components.kubernetes import objects
from components.kubernetes.manifests import Document, Manifest
from components.observability.metrics import knows_holders, resource_label
from components.tables import Table

LABEL: Final[Mapping[str, str]] = {"grafana_dashboard": "1"}
"""Label that the sidecar of kube-prometheus-stack selects (`grafana.sidecar.dashboards.label`)."""

_SOURCE: Final = {"type": "prometheus", "uid": "prometheus"}
"""The data source of kube-prometheus-stack (`grafana.sidecar.datasources.uid`)."""
_COLUMNS: Final = 24
_HEIGHT: Final = 8


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


class _Dashboards(Table):
    dashboards: tuple[Dashboard, ...]


DASHBOARDS: Final = _Dashboards.load(__name__).dashboards
GPUS, NODES, QUEUES, INFINIBAND, PLATFORM = DASHBOARDS
_TOLERATED: Final = f'key!="{names.GPU}"'
"""Selects taints that jobs do not tolerate. A placeholder for the taints of the cluster's GPU nodes."""
_HELD_BY: Final = 'exported_namespace!=""'
"""Selects metrics of GPUs that a pod has, by its namespace."""


@dataclass(frozen=True, kw_only=True)
class DashboardsArgs:
    """The arguments of the dashboards.

    namespace: Grafana's, which must exist.
    published: models of other dashboards by their uid.
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
    return objects.config_map(uid, namespace, {f"{uid}.json": json.dumps(found, indent=1)}, LABEL)


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
        "schemaVersion": 39,
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
