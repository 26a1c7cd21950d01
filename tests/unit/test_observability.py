"""Monitoring is private and bounded, and dashboards and alerts ask only for metrics that somebody exports."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components import catalogue
from components.artifacts import Mirror, Release
from components.azure.aks import SYSTEM_NODES
from components.kubernetes.manifests import edited, identity
from components.kubernetes.network import inward
from components.kubernetes.quantity import Quantity
from components.observability import dashboards, metrics
from components.observability.alerts import ALERTS, Alerts, AlertsArgs
from components.observability.dashboards import DASHBOARDS, Dashboard, Dashboards, DashboardsArgs
from components.observability.prometheus import (
    MONITOR_LABELS,
    KueueMonitor,
    Monitoring,
    MonitoringArgs,
    monitoring_values,
)
from components.queueing import kueue
from components.queueing.kueue import KueueArgs
from tests.unit.harness import Record, build, strings

_METRIC = re.compile(r"\b(?:DCGM_FI_|kueue_|node_infiniband_|kube_node_)\w+")


def args(**changes: Any) -> MonitoringArgs:
    values = {
        "chart": Mirror().chart(catalogue.find_chart("kube-prometheus-stack")),
        "grafana_password": pulumi.Output.secret("hunter2"),
        "storage": Quantity.parse("100Gi"),
        "storage_class": "managed-csi-premium",
        "retention_days": 15,
        "nodes": SYSTEM_NODES,
    }
    return MonitoringArgs(**{**values, **changes})


@pytest.fixture(scope="module")
def record() -> Record:
    def program() -> None:
        monitoring = Monitoring("monitoring", args())
        after = pulumi.ResourceOptions(depends_on=monitoring.ready)
        Dashboards("dashboards", DashboardsArgs(namespace=monitoring.namespace))
        Alerts("alerts", AlertsArgs(namespace=monitoring.namespace, labels=MONITOR_LABELS), after)
        KueueMonitor("kueue-metrics", after)

    return build(program)


class TestMonitoring:
    @pytest.fixture
    def values(self) -> Mapping[str, Any]:
        return monitoring_values(args())

    def test_metrics_are_kept_on_a_volume_and_fit_it(self, values: Mapping[str, Any]) -> None:
        spec = values["prometheus"]["prometheusSpec"]
        assert spec["storageSpec"] == {
            "volumeClaimTemplate": {
                "spec": {
                    "storageClassName": "managed-csi-premium",
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "100Gi"}},
                }
            }
        }
        assert (spec["retention"], spec["retentionSize"]) == ("15d", "92160MB")

    def test_nothing_is_reachable_from_outside(self, values: Mapping[str, Any]) -> None:
        for part in ("prometheus", "alertmanager", "grafana"):
            assert values[part]["service"] == {"type": "ClusterIP"}
        assert values["grafana"]["ingress"] == {"enabled": False}
        assert values["grafana"]["grafana.ini"]["auth.anonymous"] == {"enabled": False}
        assert not {"LoadBalancer", "NodePort"} & set(strings(values))

    def test_grafana_reads_no_secrets_of_other_namespaces(self, values: Mapping[str, Any]) -> None:
        assert values["grafana"]["rbac"] == {"namespaced": True}
        assert values["grafana"]["sidecar"]["dashboards"] == {"searchNamespace": "monitoring"}

    def test_what_aks_hides_is_not_reported_as_down(self, values: Mapping[str, Any]) -> None:
        for part in ("kubeControllerManager", "kubeScheduler", "kubeEtcd", "kubeProxy"):
            assert values[part] == {"enabled": False}

    def test_a_closed_namespace_has_a_policy_and_another_none(self) -> None:
        closed = build(lambda: Monitoring("monitoring", args(closed=True)))
        (policy,) = closed.of("NetworkPolicy")
        assert policy.inputs["metadata"]["namespace"] == "monitoring"
        assert policy.inputs["spec"] == inward("monitoring")["spec"]
        assert build(lambda: Monitoring("monitoring", args())).of("NetworkPolicy") == []

    def test_every_part_has_bounds(self, values: Mapping[str, Any]) -> None:
        grafana = values["grafana"]
        for resources in (
            values["prometheus"]["prometheusSpec"]["resources"],
            values["alertmanager"]["alertmanagerSpec"]["resources"],
            values["prometheusOperator"]["resources"],
            grafana["resources"],
            grafana["sidecar"]["resources"],
            values["kube-state-metrics"]["resources"],
            values["prometheus-node-exporter"]["resources"],
        ):
            assert set(resources["limits"]) == {"cpu", "memory"}

    def test_node_exporter_runs_on_tainted_nodes_too(self, values: Mapping[str, Any]) -> None:
        assert values["prometheus-node-exporter"]["tolerations"] == [{"operator": "Exists"}]

    def test_the_password_is_in_one_secret_and_nowhere_else(self, record: Record) -> None:
        secret = record.one("Secret", "grafana-admin", "monitoring")
        assert base64.b64decode(secret.inputs["data"]["admin-password"]) == b"hunter2"
        assert "data" in secret.secrets
        others = [item.inputs for item in record.resources if item is not secret]
        encoded = base64.b64encode(b"hunter2").decode()
        assert not [text for text in strings(others) if "hunter2" in text or encoded in text]
        (release,) = (item for item in record.resources if item.type == "kubernetes:helm.sh/v3:Release")
        assert release.inputs["values"]["grafana"]["admin"] == {
            "existingSecret": "grafana-admin",
            "userKey": "admin-user",
            "passwordKey": "admin-password",
        }
        assert secret.urn in record.closure(release)

    def test_rules_and_monitors_come_after_their_kinds(self, record: Record) -> None:
        (release,) = (item for item in record.resources if item.type == "kubernetes:helm.sh/v3:Release")
        for item in (*record.of("PrometheusRule"), *record.of("ServiceMonitor")):
            assert release.urn in record.closure(item)
            assert item.inputs["metadata"]["labels"]["release"] == release.inputs["name"]


class TestKueueMonitor:
    def test_it_selects_the_one_service_with_kueues_metrics(self, record: Record, kueue_release: Release) -> None:
        settings = KueueArgs(release=kueue_release)
        documents = edited(kueue_release.manifest, lambda document: kueue.edit(document, settings))
        services = {identity(item): item for item in documents if item["kind"] == "Service"}
        monitor = record.one("ServiceMonitor", "kueue-metrics").inputs
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        selected = [name for name, item in services.items() if wanted <= item["metadata"].get("labels", {}).items()]
        assert selected == ["Service/mlbatch-system/kueue-controller-manager-metrics-service"]
        (port,) = services[selected[0]]["spec"]["ports"]
        assert port["name"] == monitor["spec"]["endpoints"][0]["port"]
        assert monitor["metadata"]["namespace"] == "mlbatch-system"

    def test_kueue_is_told_to_export_what_the_dashboards_ask_for(self) -> None:
        assert kueue.configuration()["metrics"]["enableClusterQueueResources"] is True


class TestDashboards:
    @pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
    def test_it_asks_only_for_metrics_that_are_exported(self, dashboard: Dashboard) -> None:
        for expression in dashboards.expressions(dashboard):
            asked = set(_METRIC.findall(expression))
            assert asked
            assert asked <= metrics.KNOWN

    @pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
    def test_panels_stand_beside_each_other_and_never_on_top(self, dashboard: Dashboard) -> None:
        model = dashboards.model(dashboard)
        places = [panel["gridPos"] for panel in model["panels"]]
        assert all(place["x"] + place["w"] <= 24 for place in places)
        cells = {(x, place["y"]) for place in places for x in range(place["x"], place["x"] + place["w"])}
        assert len(cells) == sum(place["w"] for place in places)

    def test_grafana_finds_each_as_valid_json(self, record: Record) -> None:
        found = record.of("ConfigMap")
        assert {item.object_name for item in found} == {"mlbatch-gpus", "mlbatch-queues", "mlbatch-infiniband"}
        for item in found:
            assert item.inputs["metadata"]["labels"] == {"grafana_dashboard": "1"}
            (text,) = item.inputs["data"].values()
            model = json.loads(text)
            assert model["uid"] == item.object_name
            assert len({panel["id"] for panel in model["panels"]}) == len(model["panels"])
            assert all(panel["targets"] for panel in model["panels"])


class TestAlerts:
    @pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
    def test_it_asks_only_for_metrics_that_are_exported(self, alert: Any) -> None:
        asked = set(_METRIC.findall(alert.expression))
        assert asked
        assert asked <= metrics.KNOWN

    def test_rules(self, record: Record) -> None:
        (group,) = record.one("PrometheusRule", "mlbatch-alerts", "monitoring").inputs["spec"]["groups"]
        by_name = {rule["alert"]: rule for rule in group["rules"]}
        assert by_name["MLBatchNodeLost"] == {
            "alert": "MLBatchNodeLost",
            "expr": 'kube_node_status_condition{condition="Ready",status="true"} == 0',
            "for": "5m",
            "labels": {"severity": "critical"},
            "annotations": {
                "summary": "Node {{ $labels.node }} has not been ready for five minutes.",
                "description": "See `kubectl describe node`; the slack queue lends as much less as the node had.",
            },
        }
        assert "for" not in by_name["MLBatchGpuEccError"]
        assert {rule["labels"]["severity"] for rule in group["rules"]} == {"critical", "warning"}
