"""Every query of every panel finds data in a real Prometheus that scrapes the real controllers."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.observability.dashboards import DASHBOARDS
from emulator.paths import Paths
from lab.dashboards.__main__ import NOTE, answered
from lab.dashboards.chart import rendered
from lab.dashboards.drawing import page
from lab.dashboards.scraping import Prometheus, prometheus
from tests.local.browser import Browser
from tests.local.environment import Cluster, dev_settings, eventually, gang
from tests.local.jobs import cordon, gpu_nodes, lending_limit, mark, phase, pods_of, running
from tests.local.standing import Standing
from tests.local.submission import submitted

pytestmark = pytest.mark.emulated("metrics of the controllers are read by the local way to Services")
SECONDS = 300.0


@pytest.fixture(scope="module", autouse=True)
def platform(standing: Standing) -> None:
    standing.up("dev", lambda project: dev_settings(project.mirror))


@pytest.fixture(scope="module")
def source(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with prometheus(paths, tmp_path_factory.mktemp("prometheus")) as found:
        eventually("Prometheus reads all that it is to read", found.is_ready)
        yield found


@pytest.fixture(scope="module")
def happened(cluster: Cluster, source: Prometheus) -> Iterator[None]:
    """Cause a lost node, a reclaimed quota, and the restart of the preempted job."""
    running(cluster, "blue", "sample-gang", pods=2)
    used = {pod["spec"]["nodeName"] for pod in pods_of(cluster, "blue", "sample-gang")}
    (idle,) = set(gpu_nodes(cluster)) - used
    try:
        cordon(cluster, idle, is_cordoned=True)
        mark(cluster, idle, "WARN")
        with submitted(cluster, gang("too-large", "red", pods=3, gpus=8)):
            eventually("the slack queue lends no GPUs", lambda: lending_limit(cluster), lambda limit: limit == "0")
            with submitted(cluster, gang("short", "red", pods=1, gpus=8, seconds=5)):
                # It may end before it is observed.
                eventually(
                    "red/short has run",
                    lambda: phase(cluster, "red", "short"),
                    lambda seen: seen in ("Running", "Succeeded"),
                )
                running(cluster, "blue", "sample-gang", pods=2)
                yield
    finally:
        mark(cluster, idle, None)
        cordon(cluster, idle, is_cordoned=False)
    eventually("the slack queue lends all again", lambda: lending_limit(cluster), lambda limit: limit is None)


@pytest.mark.usefixtures("happened")
def test_every_query_of_every_panel_has_data(source: Prometheus, tmp_path: Path) -> None:
    answers = []

    def lacking() -> list[str]:
        answers[:] = answered(source, SECONDS)
        found = [drawn for _, panels in answers for drawn in panels]
        return [f"{drawn.panel.title}: {drawn.error or drawn.silent}" for drawn in found if drawn.error or drawn.silent]

    eventually("every query finds something", lacking, lambda found: not found, every=2)
    text = page(answers, NOTE)
    (tmp_path / "dashboards.html").write_text(text)
    assert text.count("<figure>") == sum(len(dashboard.panels) for dashboard in DASHBOARDS)
    assert "no data" not in text


def test_the_file_opens_in_a_browser_and_loads_no_files(source: Prometheus, browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "dashboards.html"
    file.write_text(page(answered(source, SECONDS), NOTE))
    with browser.opened(file) as shown:
        assert shown.evaluate("document.querySelectorAll('figure').length") == sum(
            len(dashboard.panels) for dashboard in DASHBOARDS
        )
        assert shown.evaluate("document.querySelector('polyline').getTotalLength()") > 100
        assert shown.asked == [file.as_uri()]
        assert shown.said == []


def test_kube_state_metrics_and_its_chart_do_not_read_secrets(paths: Paths) -> None:
    documents = rendered(paths, "monitoring", "monitoring")
    (role,) = (
        each for each in documents if each["kind"] == "ClusterRole" and "kube-state-metrics" in each["metadata"]["name"]
    )
    read = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert {"nodes", "pods", "workloads"} <= read
    assert "secrets" not in read
    asked = set(re.findall(r"\bkube_[a-z_]+", str(documents)))
    assert "kube_node_status_condition" in asked
    assert not [metric for metric in asked if metric.startswith("kube_secret_")]


def test_a_query_without_data_or_with_an_error_is_reported(source: Prometheus) -> None:
    assert source.range("mlbatch_nothing", SECONDS) == []
    with pytest.raises(OSError, match="400"):
        source.range("sum(", SECONDS)
