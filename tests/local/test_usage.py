"""GPU hours are those that Kueue gave: promtool evaluates the rules, and a real Prometheus records real jobs."""

import contextlib
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from components import names
from components.observability import usage
from components.tables import Table
from emulator.paths import Paths
from emulator.toolchain import PROMETHEUS, Toolchain
from lab.dashboards.scraping import prometheus
from lab.gameday.__main__ import KINDS, prepared
from lab.gameday.recorded import day
from lab.gameday.report import text
from lab.gameday.size import Size
from lab.soak.trace import Fault
from runner.report import is_true
from runner.usage.prometheus import at_url
from runner.usage.records import Period, read
from stacks.config import trace
from tests.local.environment import Cluster, dev_settings, eventually, gang
from tests.local.jobs import KUEUE, phase, running
from tests.local.member import as_member
from tests.local.standing import Standing
from tests.local.submission import submitted

Values = Sequence[tuple[Mapping[str, str], float]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """Series, and the records at one time. test_usage.yaml describes the fields."""

    what: str
    series: Mapping[str, str]
    minute: int
    held: Values = ()
    quota: Values = ()
    recorded: bool = False


class _Cases(Table):
    cases: tuple[Case, ...]


@pytest.mark.parametrize("case", _Cases.load(__name__).cases, ids=lambda case: case.what)
def test_records_are_those_of_the_series(case: Case, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [usage.group()]}))
    expected = {
        "mlbatch:gpus_held": case.held,
        "mlbatch:gpus_quota": case.quota,
        "mlbatch:usage_interval_seconds": [({}, usage.INTERVAL)] if case.recorded else (),
    }
    test = {
        "interval": "30s",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [
            {
                "expr": record,
                "eval_time": f"{case.minute}m",
                "exp_samples": [{"labels": _series(record, labels), "value": value} for labels, value in values],
            }
            for record, values in expected.items()
        ],
    }
    (tmp_path / "tests.yaml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "30s", "tests": [test]})
    )
    promtool = Toolchain(Paths.of()).folder(PROMETHEUS) / "promtool"
    done = subprocess.run([promtool, "test", "rules", tmp_path / "tests.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _series(name: str, labels: Mapping[str, str]) -> str:
    return name + "{" + ",".join(f'{label}="{value}"' for label, value in labels.items()) + "}"


Jobs = Counter[tuple[str, str]]
"""GPU seconds by team and job."""


@contextlib.contextmanager
def watched(cluster: Cluster) -> Iterator[Jobs]:
    """Count the GPU seconds of Kueue's workloads, which the API server shows several times a second."""
    counted, is_over = Jobs(), threading.Event()

    def watch() -> None:
        last = time.monotonic()
        while not is_over.wait(0.2):
            held = Jobs()
            for item in cluster.list(KUEUE, "Workload"):
                if is_true(item, "QuotaReserved") and not is_true(item, "Finished"):
                    (owner,) = item["metadata"]["ownerReferences"]
                    for part in item["status"]["admission"]["podSetAssignments"]:
                        gpus = int(part["resourceUsage"].get(names.GPU, 0))
                        held[item["metadata"]["namespace"], owner["name"]] += gpus
            now = time.monotonic()
            for job, gpus in held.items():
                counted[job] += gpus * (now - last)
            last = now

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield counted
    finally:
        is_over.set()
        thread.join()


@pytest.mark.soak("three minutes; promtool runs the same rules in the tests above")
@pytest.mark.emulated("metrics of the controllers are read by the local way to Services")
def test_gpu_hours_are_those_that_kueue_gave(standing: Standing, paths: Paths, tmp_path: Path) -> None:
    """A borrower loses its quota to the owner, runs again, and a job is deleted while it runs."""
    standing.up("dev", lambda project: dev_settings(project.mirror))
    cluster = Cluster(paths.kubeconfig)
    running(cluster, "blue", "sample-gang", pods=2)
    with prometheus(paths, tmp_path) as source:
        eventually("Prometheus reads all that it is to read", source.is_ready)
        time.sleep(3)
        begin = datetime.now(UTC)
        with watched(cluster) as truth:
            bob = as_member(paths, "bob")
            with submitted(bob, gang("first", "red", pods=2, gpus=4, seconds=20)):
                eventually("red/first has run", lambda: phase(cluster, "red", "first"), lambda it: it == "Succeeded")
                running(cluster, "blue", "sample-gang", pods=2)
                with submitted(bob, gang("second", "red", pods=1, gpus=2)):
                    running(cluster, "red", "second", pods=1)
                    time.sleep(30)
        end = datetime.now(UTC)
        time.sleep(3)
        found = read(at_url(source.address), Period(begin=begin, end=end))
    held = {(each.team, each.job): each.hours * 3600 for each in found.held}
    print({job: (held.get(job), seconds) for job, seconds in truth.items()})
    seconds = (end - begin).total_seconds()
    assert sum(found.missing.values()) * 3600 < 0.02 * seconds
    assert held.keys() == truth.keys()
    assert sum(held.values()) == pytest.approx(sum(truth.values()), rel=0.01)
    assert {each.user for each in found.held if each.team == "red"} == {"bob"}
    assert found.given["blue", names.FLAVOR] * 3600 == pytest.approx(8 * seconds, rel=0.02)


@pytest.mark.soak("seven minutes; the test above has three jobs")
@pytest.mark.emulated("metrics of the controllers are read by the local way to Services")
def test_gpu_hours_of_a_game_day_are_those_that_kueue_gave(tmp_path: Path) -> None:
    """Jobs are preempted, crash and hang, and a node is lost."""
    size, seed, scale = Size(5), 3, 360.0
    lines = trace.parse(trace.write(day(seed, size.quotas, size.gpus, hours=6)), f"seed {seed}", size.room)
    kinds = [kind for kind in KINDS if kind is not Fault.API_SERVER]
    with prepared(lines, size, seed, scale, kinds) as (paths, today), prometheus(paths, tmp_path) as source:
        eventually("Prometheus reads all that it is to read", source.is_ready)
        time.sleep(3)
        begin = datetime.now(UTC)
        with watched(Cluster(paths.kubeconfig)) as truth:
            today.go()
        end = datetime.now(UTC)
        time.sleep(3)
        found = read(at_url(source.address), Period(begin=begin, end=end))
    held = Jobs()
    for each in found.held:
        held[each.team, each.job] += round(each.hours * 3600)
    print(text(today.report("day", scale)), f"usage {held.total()}, Kueue {truth.total()}, pods {today.ledger.used}")
    assert today.happened
    assert sum(found.missing.values()) * 3600 < 0.02 * (end - begin).total_seconds()
    assert held.keys() == truth.keys()
    assert held.total() == pytest.approx(truth.total(), rel=0.01)
    assert held.total() > today.ledger.used
