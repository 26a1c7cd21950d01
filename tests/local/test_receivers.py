"""Alertmanager accepts the configuration from the settings, and Prometheus accepts the retention.

Needs no cluster, only the tools and the mirror of `make build`.
"""

import base64
import json
import re
import subprocess
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from components.kubernetes.quantity import Quantity
from components.observability import receivers
from components.observability.prometheus import retention_size
from components.observability.receivers import KINDS, SEVERITIES, Receiver
from emulator import mirror
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.toolchain import ALERTMANAGER, MIRROR, MONITORING, PROMETHEUS, Toolchain
from lab.dashboards.chart import rendered
from stacks.config import secrets


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """Return folders with a mirror of only the charts."""
    paths = Paths.of(state=tmp_path_factory.mktemp("state"))
    toolchain = Toolchain(paths)
    toolchain.install((*MIRROR, *MONITORING), Progress(0))
    mirror.fill(paths, toolchain)
    return paths


def every_choice() -> list[tuple[Receiver, ...]]:
    """Return each kind with each severity, and each number of kinds together."""
    alone = [(Receiver(kind=kind, address="", least=least),) for kind in KINDS for least in SEVERITIES]
    together = [
        tuple(Receiver(kind=kind, address="", least="critical") for kind in kinds)
        for number in range(2, len(KINDS) + 1)
        for kinds in combinations(KINDS, number)
    ]
    return [(), *alone, *together]


def configuration(paths: Paths, chosen: Sequence[Receiver]) -> str:
    """Return the chart's Alertmanager configuration for these receivers."""
    (secret,) = (
        each
        for each in rendered(paths, "kube-prometheus-stack", "monitoring", chosen)
        if each["kind"] == "Secret" and "alertmanager.yaml" in each.get("data", {})
    )
    return base64.b64decode(secret["data"]["alertmanager.yaml"]).decode()


def amtool(file: Path) -> subprocess.CompletedProcess[str]:
    command = [Toolchain(Paths.of()).folder(ALERTMANAGER) / "amtool", "check-config", file]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def routed(file: Path, **labels: str) -> list[str]:
    """Return the receivers of an alert with these labels, according to amtool."""
    told = [f"{name}={value}" for name, value in labels.items()]
    command = [
        Toolchain(Paths.of()).folder(ALERTMANAGER) / "amtool",
        "config",
        "routes",
        "test",
        f"--config.file={file}",
        *told,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().split(",")


def test_alertmanager_accepts_every_choice_of_receivers(paths: Paths, tmp_path: Path) -> None:
    file = tmp_path / "alertmanager.yaml"
    for chosen in every_choice():
        file.write_text(configuration(paths, chosen))
        done = amtool(file)
        assert done.returncode == 0, f"{[each.kind for each in chosen]}: {done.stdout}{done.stderr}"
        assert f"- {len(chosen) + 1} receivers" in done.stdout


def test_each_alert_reaches_its_receivers(paths: Paths, tmp_path: Path) -> None:
    file = tmp_path / "alertmanager.yaml"
    chosen = (Receiver(kind="slack", address=""), Receiver(kind="pagerduty", address="", least="critical"))
    file.write_text(configuration(paths, chosen))
    assert routed(file, alertname="MLBatchNodeLost", severity="critical") == ["slack", "pagerduty"]
    assert routed(file, alertname="MLBatchGpusIdle", severity="warning") == ["slack"]
    assert routed(file, alertname="Watchdog", severity="none") == ["null"]


def alert(node: str) -> dict[str, object]:
    """Return an alert in the form of Alertmanager's templates (prometheus/alertmanager, template/template.go)."""
    return {
        "status": "firing",
        "labels": {"alertname": "MLBatchNodeLost", "node": node},
        "annotations": {"summary": f"Node {node} has not been ready for five minutes."},
    }


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (["n1"], "MLBatchNodeLost: Node n1 has not been ready for five minutes."),
        (["n1", "n2"], "MLBatchNodeLost: Node n1 has not been ready for five minutes. (and 2 in all)"),
    ],
)
def test_pagerduty_gets_a_summary_of_each_group(nodes: list[str], said: str, paths: Paths, tmp_path: Path) -> None:
    """PagerDuty rejects an event without a summary, and alerts of two nodes have no common one."""
    config = yaml.safe_load(configuration(paths, [Receiver(kind="pagerduty", address="")]))
    (section,) = next(each for each in config["receivers"] if each["name"] == "pagerduty")["pagerduty_configs"]
    file = tmp_path / "alerts.json"
    common = {"commonLabels": {"alertname": "MLBatchNodeLost"}, "commonAnnotations": {}}
    file.write_text(
        json.dumps({"receiver": "pagerduty", "status": "firing", "alerts": list(map(alert, nodes)), **common})
    )
    tool = Toolchain(Paths.of()).folder(ALERTMANAGER) / "amtool"
    options = [
        f"--template.text={section['description']}",
        f"--template.data={file}",
        f"--template.glob={tmp_path}/*.tmpl",
    ]
    done = subprocess.run([tool, "template", "render", *options], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said


def test_amtool_refuses_invalid_files(tmp_path: Path) -> None:
    file = tmp_path / "alertmanager.yaml"
    wrong = receivers.configuration([Receiver(kind="slack", address="")])
    file.write_text(yaml.safe_dump({**wrong, "receivers": []}))
    done = amtool(file)
    assert done.returncode != 0
    assert 'undefined receiver "null"' in done.stdout + done.stderr


ADDRESS_TEXTS = (
    "https://example.org/hook",
    "http://10.0.0.1:9000/x?a=b",
    "HTTPS://example.org",
    "https://[::1]:8080/x",
    "example.org/hook",
    "//example.org/hook",
    "ftp://example.org/hook",
    "https:///hook",
    "https:hook",
    "https://example.org:port/x",
    "https://exa mple.org/x",
    "https://example.org/%zz",
    "https://[::1/x",
    "xoxb-token",
)


@pytest.mark.parametrize("text", ADDRESS_TEXTS)
def test_the_settings_refuse_the_addresses_that_alertmanager_would(text: str, tmp_path: Path) -> None:
    """Alertmanager reads the file only when it sends an alert, and would then fail to send it."""
    file = tmp_path / "alertmanager.yaml"
    hook = {"name": "hook", "webhook_configs": [{"url": text}]}
    file.write_text(yaml.safe_dump({"route": {"receiver": "hook"}, "receivers": [hook]}))
    assert secrets.is_address(text) == (amtool(file).returncode == 0)


class TestRetention:
    """The settings reject everything that Prometheus' own parsers reject."""

    def refusal(self, *options: str) -> str:
        command = [Toolchain(Paths.of()).folder(PROMETHEUS) / "prometheus", "--config.file=/nowhere", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"Error parsing command line arguments: (.*)", done.stdout + done.stderr)
        return found[1] if found else ""

    @pytest.mark.parametrize("size", ["10Gi", "10.5Gi", "12345678901", "100G", "7.9Ei"])
    def test_sizes(self, size: str) -> None:
        assert self.refusal(f"--storage.tsdb.retention.size={retention_size(Quantity.parse(size))}") == ""

    @pytest.mark.parametrize("days", [1, 15, 365])
    def test_days(self, days: int) -> None:
        assert self.refusal(f"--storage.tsdb.retention.time={days}d") == ""

    def test_prometheus_refusals_are_found(self) -> None:
        assert self.refusal("--storage.tsdb.retention.size=9EB") == "units: overflow parsing unit"
        assert self.refusal("--storage.tsdb.retention.size=10Gi") == "units: unknown unit Gi in 10Gi"
        assert self.refusal("--storage.tsdb.retention.time=15") == 'not a valid duration string: "15"'
