"""Secrets of monitoring are private, and dashboards and alerts query only exported metrics."""

import asyncio
import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components import catalogue, names
from components.artifacts import ArtifactError, Mirror
from components.azure.aks import SYSTEM_NODES
from components.health.reporter import NCCL_GATE
from components.kubernetes.network import inward
from components.kubernetes.quantity import Quantity
from components.observability import dashboards, metrics, prometheus
from components.observability.alerts import OPERATORS, Watched, alerts, groups
from components.observability.dashboards import DASHBOARDS, Dashboard, Dashboards, DashboardsArgs
from components.observability.prometheus import (
    Monitoring,
    MonitoringArgs,
    grafana_access,
    monitoring_values,
    scrapers,
)
from components.observability.receivers import Receiver
from stacks.config import secrets
from stacks.config.errors import SettingsError
from stacks.config.exposure import exposed
from stacks.config.inputs import interpret
from stacks.layers import monitoring as layer
from stacks.layers import releases
from stacks.settings import PlatformSettings
from stacks.validation import rules
from tests.unit import whole_stacks
from tests.unit.configurations import aks, errors_of, partial_of
from tests.unit.harness import build, strings

RUNBOOKS = "https://git.example.org/platform/docs/runbooks.md"
ROOT = Path(__file__).resolve().parents[2]
_METRIC = re.compile(
    r"\b(?:DCGM_|kueue_|appwrapper_phase|node_infiniband_|kube_|kubelet_|apiserver_|autopilot_health|mlbatch[_:])\w+"
)


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


class TestMonitoring:
    def test_a_closed_namespace_has_a_policy_and_another_none(self) -> None:
        closed = build(lambda: Monitoring("monitoring", args(closed=True)))
        (policy,) = closed.of("NetworkPolicy")
        assert policy.inputs["metadata"]["namespace"] == "monitoring"
        assert policy.inputs["spec"] == inward("monitoring")["spec"]
        assert build(lambda: Monitoring("monitoring", args())).of("NetworkPolicy") == []

    def test_everything_is_in_the_namespace_of_the_settings(self) -> None:
        record = build(lambda: Monitoring("monitoring", args(namespace="prometheus", closed=True)))
        assert record.one("Namespace", "prometheus")
        assert "monitoring" not in set(strings([item.inputs for item in record.resources]))
        assert scrapers("prometheus").namespace == "prometheus"

    def test_grafana_is_reached_by_a_command_and_its_password_is_secret(self) -> None:
        access = grafana_access(args(namespace="prometheus"))
        assert access["command"] == (
            "kubectl --namespace prometheus port-forward service/kube-prometheus-stack-grafana 3000:80"
        )
        assert (access["address"], access["user"]) == ("http://localhost:3000", "admin")
        password = access["password"]
        assert isinstance(password, pulumi.Output)
        assert asyncio.get_event_loop().run_until_complete(password.is_secret())

    def test_the_password_is_in_one_secret_and_nowhere_else(self) -> None:
        record = build(lambda: Monitoring("monitoring", args()))
        secret = record.one("Secret", "grafana-admin", "monitoring")
        assert base64.b64decode(secret.inputs["data"]["admin-password"]) == b"hunter2"
        assert "data" in secret.secrets
        others = [item.inputs for item in record.resources if item is not secret]
        encoded = base64.b64encode(b"hunter2").decode()
        assert not [text for text in strings(others) if "hunter2" in text or encoded in text]
        (release,) = (item for item in record.resources if item.type == "kubernetes:helm.sh/v3:Release")
        assert secret.urn in record.closure(release)


class TestDashboards:
    @pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
    def test_it_asks_only_for_metrics_that_are_exported(self, dashboard: Dashboard) -> None:
        for expression in dashboards.expressions(dashboard):
            asked = set(_METRIC.findall(expression))
            assert asked
            assert asked <= metrics.KNOWN

    @pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
    def test_panels_have_queries_and_do_not_overlap(self, dashboard: Dashboard) -> None:
        model = dashboards.model(dashboard)
        assert all(panel["targets"] for panel in model["panels"])
        assert len({panel["id"] for panel in model["panels"]}) == len(model["panels"])
        places = [panel["gridPos"] for panel in model["panels"]]
        assert all(place["x"] + place["w"] <= 24 for place in places)
        cells = {(x, place["y"]) for place in places for x in range(place["x"], place["x"] + place["w"])}
        assert len(cells) == sum(place["w"] for place in places)

    def test_what_nobody_exports_is_not_asked_for(self) -> None:
        """A panel without its metrics looks like one of a cluster that is well, or like a fault."""

        def left(*lacking: str) -> dict[str, list[str]]:
            found = [dashboards.without(each, lacking) for each in DASHBOARDS]
            return {each.uid: [panel.title for panel in each.panels] for each in found if each is not None}

        whole = left()
        assert {uid: set(whole[uid]) - set(titles) for uid, titles in left(*metrics.AUTOPILOT_METRICS).items()} == {
            **{uid: set() for uid in whole},
            "mlbatch-nodes": {"Bandwidth to GPUs", "Checks that failed"},
        }
        slack = left(*metrics.SLACK_METRICS)
        assert set(whole["mlbatch-nodes"]) - set(slack["mlbatch-nodes"]) == {"GPUs that are lost"}
        assert set(whole["mlbatch-queues"]) - set(slack["mlbatch-queues"]) == {"GPUs that may be lent at most"}
        assert set(whole) - set(left(*metrics.KUEUE_METRICS)) == {"mlbatch-queues"}
        assert set(whole) - set(left(*(field.name for field in metrics.DCGM_FIELDS))) == {"mlbatch-gpus"}

    @pytest.mark.parametrize(
        ("off", "uids"),
        [
            ({}, {"mlbatch-gpus", "mlbatch-nodes", "mlbatch-queues", "mlbatch-infiniband", "mlbatch-platform"}),
            (
                {"gpu": {"operator": False}},
                {"mlbatch-nodes", "mlbatch-queues", "mlbatch-infiniband", "mlbatch-platform"},
            ),
            (
                {"queueing": {"enabled": False}},
                {"mlbatch-gpus", "mlbatch-nodes", "mlbatch-infiniband", "mlbatch-platform"},
            ),
        ],
    )
    def test_a_stack_has_the_dashboards_of_what_it_has(self, off: dict[str, Any], uids: set[str]) -> None:
        settings = PlatformSettings.model_validate({"target": "existing", **off})
        watched = Watched(
            has_gpu_metrics=settings.monitoring.has_gpu_metrics(settings.gpu),
            controllers=("kueue-controller-manager",) if settings.queueing.enabled else (),
        )
        found = (dashboards.without(each, set(layer._lacking(settings, watched))) for each in DASHBOARDS)
        assert {each.uid for each in found if each is not None} == uids

    def test_taints_that_jobs_tolerate_keep_no_job_away(self) -> None:
        """On a cluster whose GPU nodes have another taint than NVIDIA's, each node would appear for ever."""
        found = dashboards.counting(dashboards.NODES, "nvidia.com/gpu", ["lab.example/gpu", "team"])
        (panel,) = (each for each in found.panels if each.title == "Nodes that jobs are kept away from")
        (query,) = panel.queries.values()
        assert 'effect=~"NoSchedule|NoExecute",key!="lab.example/gpu",key!="team"})' in query


def exported(**changes: Any) -> str:
    """A dashboard as grafana.com serves it (IBM/autopilot, grafana/autopilot-dashboard.json)."""
    source = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
    inputs = [{"name": "DS_PROMETHEUS", "type": "datasource", "pluginId": "prometheus"}]
    panel = {"id": 67, "title": "Unhealthy nodes", "datasource": source, "targets": [{"datasource": source}]}
    whole = {"__inputs": inputs, "__requires": [{"id": "grafana"}], "id": 7, "title": "Autopilot", "panels": [panel]}
    return json.dumps({**whole, **changes})


class TestPublishedDashboards:
    """Seed 000: import dashboards 23123 and 12239 by hand, and choose the data source."""

    def test_they_ask_the_platforms_prometheus(self) -> None:
        found = dashboards.published("grafana-dashboard-23123", exported())
        assert (found["uid"], found["id"], found["title"]) == ("grafana-dashboard-23123", None, "Autopilot")
        assert "__inputs" not in found
        (panel,) = found["panels"]
        assert panel["datasource"] == panel["targets"][0]["datasource"] == {"type": "prometheus", "uid": "prometheus"}

    @pytest.mark.parametrize(
        "text", ["", "<html>", "[]", "{}", exported(panels={}), exported(__inputs=[{"name": "x"}])]
    )
    def test_what_is_none_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="this is no dashboard of Grafana"):
            dashboards.published("grafana-dashboard-23123", text)

    def test_a_mirror_with_something_else_says_what_to_put_there(self, tmp_path: Path) -> None:
        artifact = replace(catalogue.DASHBOARDS[0], sha256=None)
        (tmp_path / artifact.file).write_text('{"title": "GPUs", "panels": {}}')
        with pytest.raises(ArtifactError) as error:
            releases._dashboards([artifact], Mirror(artifacts=str(tmp_path)))
        assert str(error.value) == (
            f"{tmp_path / artifact.file}: this is no dashboard of Grafana: its title or its panels are of another "
            f"form. Put {artifact.url} there."
        )

    def test_a_mirror_has_them_as_files(self, tmp_path: Path) -> None:
        for artifact in catalogue.DASHBOARDS:
            (tmp_path / artifact.file).write_text(exported())
        assert {path.name for path in tmp_path.iterdir()} == {
            "grafana-dashboard-23123-1.json",
            "grafana-dashboard-12239-2.json",
        }
        found = releases._dashboards(catalogue.DASHBOARDS, Mirror(artifacts=str(tmp_path)))
        built = build(lambda: Dashboards("dashboards", DashboardsArgs(namespace="x", dashboards=(), published=found)))
        assert {item.object_name for item in built.of("ConfigMap")} == {
            "grafana-dashboard-23123",
            "grafana-dashboard-12239",
        }
        assert {item.inputs["metadata"]["labels"]["grafana_dashboard"] for item in built.of("ConfigMap")} == {"1"}

    def test_a_mirror_that_lacks_them_is_told_before_anything_is_made(self, tmp_path: Path) -> None:
        raw = {
            **aks(),
            "mirror": {"artifacts": str(tmp_path), "verify": False},
            "monitoring": {"publishedDashboards": True},
        }
        with pytest.raises(SettingsError) as raised:
            interpret(raw, base=tmp_path, environment={})
        assert f"the folder {tmp_path} lacks grafana-dashboard-23123-1.json" in str(raised.value)


class TestAlerts:
    @pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
    def test_it_asks_only_for_metrics_that_are_exported(self, alert: Any) -> None:
        asked = set(_METRIC.findall(alert.expression))
        assert asked
        assert asked <= metrics.KNOWN

    def test_each_links_to_its_section(self) -> None:
        (group,) = groups(runbooks=RUNBOOKS)
        rules = [rule for rule in group["rules"] if "alert" in rule]
        assert {rule["annotations"]["runbook_url"] for rule in rules} == {
            f"{RUNBOOKS}#{rule['alert'].lower()}" for rule in rules
        }

    def test_none_links_to_a_page_that_nobody_named(self) -> None:
        (group,) = groups()
        assert not [rule["alert"] for rule in group["rules"] if "runbook_url" in rule.get("annotations", {})]

    def test_each_has_a_section_of_the_runbooks_and_each_section_an_alert(self) -> None:
        text = (ROOT / "docs" / "runbooks.md").read_text()
        assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == [alert.name for alert in alerts()]

    def test_the_runbook_of_a_node_that_is_gone_names_each_targets_own_key(self) -> None:
        text = (ROOT / "docs" / "runbooks.md").read_text()
        section = text.partition("## MLBatchNodeGone")[2].partition("\n## ")[0]
        assert set(re.findall(r"`mlbatch:([\w.]+)`", section)) == {
            "azure.gpuPool.count",
            "cluster.pool.count",
            "nodes.count",
        }

    def test_nodes_that_an_autoscaler_removes_are_no_news(self) -> None:
        names = {alert.name for alert in alerts(Watched(has_autoscaler=True))}
        assert {alert.name for alert in alerts()} - names == {"MLBatchNodeGone"}

    def test_what_a_stack_does_not_have_is_not_missed(self) -> None:
        """Without queues, their metrics do not exist, and an alert for their absence would never end."""
        asked = [alert.expression for alert in alerts(Watched(controllers=()))]
        assert [expression for expression in asked if "absent" in expression] == ["absent(kube_node_info)"]
        without_teams = alerts(Watched(controllers=OPERATORS))
        assert "MLBatchSlackControllerSilent" not in {alert.name for alert in without_teams}
        (down,) = (alert for alert in without_teams if alert.name == "MLBatchControllerDown")
        assert 'deployment="kueue-controller-manager"' in down.expression
        assert "slack-controller" not in down.expression

    def test_without_metrics_of_gpus_nothing_waits_for_them(self) -> None:
        found = alerts(Watched(has_gpu_metrics=False))
        assert not [alert.name for alert in found if "DCGM_" in alert.expression]
        assert {alert.name for alert in alerts()} - {alert.name for alert in found} == {
            "MLBatchGpuXidError",
            "MLBatchGpuEccError",
            "MLBatchGpuRowRemapFailure",
            "MLBatchGpuLost",
            "MLBatchGpusNotWatched",
            "MLBatchGpuThrottled",
            "MLBatchNvlinkErrors",
            "MLBatchGpusIdle",
        }


def test_what_is_made_of_objects_is_what_panels_and_alerts_may_ask_for() -> None:
    resources = prometheus.OBJECT_STATE["customResourceState"]["config"]["spec"]["resources"]
    read = [kind["groupVersionKind"] for kind in resources]
    assert {f"{kind['group']}/{kind['version']}" for kind in read} == {names.KUEUE_API, names.APPWRAPPER_API}
    made = [f"{kind['metricNamePrefix']}_{metric['name']}" for kind in resources for metric in kind["metrics"]]
    assert made == list(metrics.OBJECT_METRICS)


GPU_EXPORTERS = {
    "existing-everything": "gpu-operator",
    "openshift-certified": "ClusterPolicy",
    "aks-everything": "gpu-operator",
    "cpouta-everything": "gpu-operator",
}
"""What installs NVIDIA's exporter, by stack."""


@pytest.mark.parametrize(("stack", "installer"), GPU_EXPORTERS.items())
def test_exporters_stay_where_a_check_has_failed(stack: str, installer: str) -> None:
    """A gate's taint may end what does not tolerate it, and the node would vanish from every panel and alert."""
    record = whole_stacks.registered(stack)
    values = {item.inputs["name"]: item.inputs["values"] for item in record.resources if "values" in item.inputs}
    found = {name: values[name]["daemonsets"]["tolerations"] for name in {"gpu-operator"} & values.keys()}
    for policy in record.of("ClusterPolicy"):
        found["ClusterPolicy"] = policy.inputs["spec"]["daemonsets"]["tolerations"]
    assert list(found) == [installer]
    if "kube-prometheus-stack" in values:
        found["node exporter"] = values["kube-prometheus-stack"]["prometheus-node-exporter"]["tolerations"]
    gates = {NCCL_GATE.taint} | ({"aznhc"} if stack.startswith("aks") else set())
    for tolerations in found.values():
        everywhere = [each.get("key") for each in tolerations if each["operator"] == "Exists" and "effect" not in each]
        assert None in everywhere or gates <= set(everywhere)


class TestReceivers:
    URL = "https://hooks.example.org/T0/B0/secret"

    def receivers(self) -> list[Receiver]:
        return [
            Receiver(kind="slack", address=pulumi.Output.secret(self.URL)),
            Receiver(kind="pagerduty", address=pulumi.Output.secret("integration-key"), least="critical"),
        ]

    def test_each_is_told_what_it_is_to_know(self) -> None:
        found = monitoring_values(args(receivers=self.receivers()))["alertmanager"]
        config = found["config"]
        assert [(route["receiver"], route["matchers"]) for route in config["route"]["routes"]] == [
            ("null", ['alertname =~ "InfoInhibitor|Watchdog"']),
            ("slack", ['severity =~ "warning|critical"']),
            ("pagerduty", ['severity =~ "critical"']),
        ]
        null, slack, pagerduty = config["receivers"]
        assert null == {"name": "null"}
        folder = "/etc/alertmanager/secrets/alert-receivers"
        assert slack["slack_configs"][0]["api_url_file"] == f"{folder}/slack"
        assert "runbook_url" in slack["slack_configs"][0]["text"]
        assert pagerduty["pagerduty_configs"][0]["routing_key_file"] == f"{folder}/pagerduty"
        assert found["alertmanagerSpec"]["secrets"] == ["alert-receivers"]

    def test_addresses_are_in_one_secret_and_nowhere_else(self) -> None:
        record = build(lambda: Monitoring("monitoring", args(receivers=self.receivers())))
        secret = record.one("Secret", "alert-receivers", "monitoring")
        assert base64.b64decode(secret.inputs["data"]["slack"]).decode() == self.URL
        assert "data" in secret.secrets
        others = [item.inputs for item in record.resources if item is not secret]
        assert not [text for text in strings(others) if "hooks.example.org" in text or "integration-key" in text]

    def test_without_any_the_chart_keeps_its_own(self) -> None:
        found = monitoring_values(args())["alertmanager"]
        assert "config" not in found
        assert "secrets" not in found["alertmanagerSpec"]

    def test_a_secret_that_nobody_is_told_by_is_warned_of(self) -> None:
        one = {"receivers": [{"kind": "slack"}]}
        (warning,) = rules.warnings(partial_of(aks(), "alertSlackUrl"))
        assert warning.startswith("mlbatch:alertSlackUrl is set but unused")
        assert errors_of(aks(monitoring=one), "alertSlackUrl") == []
        assert rules.warnings(partial_of(aks(monitoring=one), "alertSlackUrl")) == []
        (warning,) = rules.warnings(partial_of(aks(monitoring=one), "alertSlackUrl", "alertPagerdutyKey"))
        assert "mlbatch:monitoring.receivers has no receiver of kind pagerduty" in warning
        assert rules.warnings(partial_of(aks(monitoring={"enabled": False}), "alertSlackUrl")) == []

    def test_receivers_of_the_charts_alerts_alone_are_warned_of(self) -> None:
        off = {"alerts": False, "receivers": [{"kind": "slack"}]}
        (warning,) = rules.warnings(partial_of(aks(monitoring=off), "alertSlackUrl"))
        assert "mlbatch:monitoring.alerts is false" in warning
        assert "alerts of the chart kube-prometheus-stack, and none about GPUs" in warning
        assert rules.warnings(partial_of(aks(monitoring={"alerts": False}))) == []

    @pytest.mark.parametrize(
        ("name", "value", "is_refused"),
        [
            ("alertSlackUrl", "https://hooks.example.org/T0/B0/secret\n", False),
            ("alertSlackUrl", "hooks.example.org/T0/B0/secret", True),
            ("alertWebhookUrl", "https:///T0/B0", True),
            ("alertTeamsUrl", "T0/B0/secret", True),
            ("alertPagerdutyKey", "0123456789abcdef0123456789ABCDEF\n", False),
            ("alertPagerdutyKey", "0123456789abcdef", True),
            ("alertPagerdutyKey", "https://events.pagerduty.com/v2/", True),
        ],
    )
    def test_a_secret_that_reaches_nobody_is_told_and_not_shown(self, name: str, value: str, is_refused: bool) -> None:
        found = list(exposed({**aks(), name: secrets.concealed(name, value)}))
        assert [error.path for error in found] == ([(name,)] if is_refused else [])
        assert not any(value.strip() in str(error) for error in found)

    def test_an_address_in_plain_text_is_told(self) -> None:
        (error,) = exposed({**aks(), "alertSlackUrl": self.URL})
        assert "plain text" in error.message
        assert self.URL not in str(error)
