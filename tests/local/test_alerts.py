"""Alerts fire exactly when they should: promtool evaluates the rules over series of hours.

Needs no cluster, only the tools from `make build`.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.observability import alerts
from components.observability.alerts import Watched
from components.observability.dashboards import DASHBOARDS
from components.queueing import training_operator
from components.queueing.running_kueue import RunningKueue
from components.tables import Table
from emulator.paths import Paths
from emulator.toolchain import PROMETHEUS, Toolchain
from tests.unit.releases import FOLDER

Labels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Case:
    """Events minute by minute, and the alerts at one time. test_alerts.yaml describes the fields."""

    alert: str
    what: str = ""
    series: Mapping[str, str]
    minute: int
    raised: Sequence[Labels] = ()
    gpus_per_node: int | None = None
    others_kueue: RunningKueue | None = None

    @property
    def name(self) -> str:
        return f"MLBatch{self.alert}"

    @property
    def watched(self) -> Watched:
        return Watched(gpus_per_node=self.gpus_per_node, others_kueue=self.others_kueue)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The values of a panel. test_alerts.yaml describes the fields."""

    panel: str
    what: str
    series: Mapping[str, str]
    minute: int
    values: Sequence[tuple[Labels, float]]


class _Cases(Table):
    alerts: tuple[Case, ...]
    panels: tuple[Shown, ...]


def _series(metric: str, **labels: str) -> str:
    return metric + "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def webhooks() -> Sequence[str]:
    """Return the names of the operators' webhooks, which are the label `name` of the API server's metric."""
    found = {training_operator.webhooks()["webhooks"][0]["name"]}
    for file in (*FOLDER.glob("kueue-*.yaml"), *FOLDER.glob("appwrapper-*.yaml")):
        for document in yaml.load_all(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if document["kind"].endswith("WebhookConfiguration"):
                found |= {webhook["name"] for webhook in document["webhooks"]}
    return sorted(found)


def of_every_webhook() -> Case:
    found, api_server = webhooks(), {"instance": "10.0.0.1:6443"}
    failures = "apiserver_admission_webhook_rejection_count"
    labels = {"error_type": "calling_webhook_error", **api_server}
    series = {_series(failures, name=name, **labels): "_x20 1x60" for name in found}
    return Case(
        alert="WebhookFails",
        what="each for the first time",
        series={_series("up", job="apiserver", **api_server): "1x60", **series},
        minute=22,
        raised=[{"name": name} for name in found],
    )


def of_controllers() -> Iterator[Case]:
    """Yield the cases of an alert whose series are those of all controllers."""
    metric, namespace = "kube_deployment_status_replicas_available", "mlbatch-system"
    others = {_series("kube_node_info", node="n9"): "1x60"}
    up = {_series(metric, namespace=namespace, deployment=name): "1x60" for name in Watched().controllers} | others

    def case(what: str, series: Mapping[str, str], *raised: Labels) -> Case:
        return Case(alert="ControllerDown", what=what, series=series, minute=20, raised=raised)

    slack = _series(metric, namespace=namespace, deployment="slack-controller")
    yield case("restarts", {**up, slack: "1x5 0x55"}, {"deployment": "slack-controller"})
    without = {series: values for series, values in up.items() if "kueue" not in series}
    yield case("is gone", without, {"deployment": "kueue-controller-manager", "namespace": namespace})
    yield case("none", up)
    kueue = RunningKueue(version="0.18.4", account="", namespace="openshift-kueue-operator")
    theirs = {"deployment": kueue.deployment, "namespace": kueue.namespace}
    for what, values, raised in (("stops", "1x5 0x55", [theirs]), ("is gone", "_x60", [theirs]), ("runs", "1x60", [])):
        series = {**up, _series(metric, **theirs): values}
        yield replace(case(f"of others {what}", series, *raised), others_kueue=kueue)


_TABLE = _Cases.load(__name__)
CASES = (*_TABLE.alerts, of_every_webhook(), *of_controllers())


@pytest.fixture(scope="module")
def promtool() -> Path:
    return Toolchain(Paths.of()).folder(PROMETHEUS) / "promtool"


def test_alerts_are_raised_when_they_should_be(promtool: Path, tmp_path: Path) -> None:
    tests = [_file(tmp_path, number, case) for number, case in enumerate(CASES)]
    done = subprocess.run([promtool, "test", "rules", *tests], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("shown", _TABLE.panels, ids=lambda shown: shown.panel)
def test_panels_show_the_expected_values(promtool: Path, tmp_path: Path, shown: Shown) -> None:
    (panel,) = (panel for each in DASHBOARDS for panel in each.panels if panel.title == shown.panel)
    (group,) = alerts.groups()
    recorded = [rule for rule in group["rules"] if "record" in rule]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{**group, "rules": recorded}]}))
    samples = [{"labels": _series("", **labels), "value": value} for labels, value in shown.values]
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in shown.series.items()],
        "promql_expr_test": [
            {"expr": re.sub(r"\$[a-z]\w*", ".*", query), "eval_time": f"{shown.minute}m", "exp_samples": samples}
            for query in panel.queries.values()
        ],
    }
    file = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "fuzzy_compare": True, "tests": [test]}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(file))
    command = [promtool, "test", "rules", tmp_path / "tests.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tried_both_ways() -> None:
    every = {alert.name for alert in alerts.alerts()}
    assert {case.name for case in CASES if case.raised} == every
    assert {case.name for case in CASES if not case.raised} == every


def _file(folder: Path, number: int, case: Case) -> Path:
    """Write a case with only the rules that it needs, because some rules look back over a day at each minute."""
    (group,) = alerts.groups(case.watched)
    rules = [rule for rule in group["rules"] if rule.get("alert", case.name) == case.name]
    (folder / f"rules-{number}.yaml").write_text(yaml.safe_dump({"groups": [{**group, "rules": rules}]}))
    file = folder / f"tests-{number}.yaml"
    whole = {"rule_files": [f"rules-{number}.yaml"], "evaluation_interval": "1m", "tests": [tried(case)]}
    file.write_text(yaml.safe_dump(whole))
    return file


def tried(case: Case) -> Mapping[str, Any]:
    """Return a case as promtool's test (prometheus/prometheus, docs/configuration/unit_testing_rules.md)."""
    (alert,) = (alert for alert in alerts.alerts(case.watched) if alert.name == case.name)
    firing = {"alertname": case.name, "alertstate": "firing", "severity": alert.severity}
    expected = [{"labels": _series("ALERTS", **firing, **labels), "value": 1} for labels in case.raised]
    query = _series("ALERTS", alertname=case.name, alertstate="firing")
    return {
        "name": f"{case.alert}: {case.what}",
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": f"{case.minute}m", "exp_samples": expected}],
    }


@pytest.mark.parametrize("case", [case for case in CASES if case.raised], ids=lambda case: f"{case.alert}-{case.what}")
def test_an_alerts_text_uses_only_its_labels(case: Case) -> None:
    (alert,) = (alert for alert in alerts.alerts(case.watched) if alert.name == case.name)
    for labels in case.raised:
        assert set(re.findall(r"\$labels\.(\w+)", alert.summary)) <= set(labels)
