"""The benchmark of a large cluster: its jobs, its counts, and the error for a cluster that does not fit."""

import contextlib
import json
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any, ClassVar, cast
from unittest.mock import MagicMock

import kubernetes
import pytest
from kubernetes.dynamic.exceptions import NotFoundError, ServerTimeoutError

from emulator.cluster.memory import MIB, free_memory, needed
from emulator.paths import Paths
from lab.bench.scale import __main__ as command
from lab.bench.scale import load
from lab.bench.scale.__main__ import JOBS, NODES, TEAMS
from lab.bench.scale.load import plain_documents
from lab.bench.scale.memory import table
from lab.bench.scale.plan import Job, Scale, best, waves
from lab.bench.scale.plot import svg, ticks
from lab.bench.scale.requests import Asked, parse
from lab.bench.scale.result import Result, percentile
from lab.bench.scale.rows import PLAIN, PLATFORM, ROWS, Row, rows_for
from lab.bench.scale.watching import Jobs, Watch
from lab.periodic import every
from runner.report import Client
from tests.commands import ended
from tests.unit.servers import Handler, serving

ROOT = Path(__file__).resolve().parents[2]
GANG = Job("job-7", 3, 2, 8)


@pytest.mark.parametrize(
    ("nodes", "teams", "jobs", "said"),
    [
        (1001, 10, 10, "NODES=1001 is not measured: give 1 to 1000"),
        (10, 101, 10, "TEAMS=101 is not measured: give 1 to 100"),
        (10, 10, 0, "JOBS=0 is not measured: give 1 to 10000"),
        (1, 9, 10, "TEAMS=9 are more than the 8 GPUs of NODES=1: a team has one"),
        (1000, 7, 10_000, "JOBS=10000 are 8000 at a time, and a team's namespace holds 1000: give TEAMS=8 or more"),
    ],
)
def test_what_is_not_measured_is_told_by_the_argument(nodes: int, teams: int, jobs: int, said: str) -> None:
    with pytest.raises(ValueError, match="^" + said):
        Scale(nodes, teams, jobs)


def test_the_memory_is_that_of_the_nodes_and_of_the_jobs_that_are_there_at_a_time() -> None:
    scale = Scale(1000, 100, 10_000)
    assert scale.wave_jobs == pytest.approx(max(map(len, waves(scale, 1))), rel=0.05)
    assert scale.mib == needed(1000, scale.wave_jobs) / MIB
    assert Scale(1000, 100, 200).mib == needed(1000, 200) / MIB


def test_what_the_memory_does_not_hold_is_told_with_what_fits() -> None:
    scale = Scale(1000, 100, 10_000)
    scale.check_memory(scale.mib)
    with pytest.raises(
        ValueError, match=r"^NODES=1000 with JOBS=10000 take .* MiB, and 8000 MiB are free: NODES="
    ) as told:
        scale.check_memory(8000)
    nodes, jobs = (int(word.partition("=")[2]) for word in str(told.value).rpartition(": ")[2].split()[:2])
    Scale(nodes, 100, jobs).check_memory(8000)
    with pytest.raises(ValueError, match="NODES="):
        Scale(nodes + 5, 100, 10 * (nodes + 5)).check_memory(8000)
    with pytest.raises(ValueError, match="no size fits"):
        scale.check_memory(100)


def test_the_command_ends_with_one_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.main(["--nodes", "0"]) == 1
    assert capsys.readouterr().err == "error: NODES=0 is not measured: give 1 to 1000\n"
    monkeypatch.setattr(command, "free_memory", lambda: 100 * MIB)
    assert command.main(["--nodes", "10"]) == 1
    assert "no size fits" in capsys.readouterr().err


def test_free_memory_is_what_new_processes_can_have(tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:       24692216 kB\nMemFree: 100 kB\nMemAvailable:   2048 kB\n")
    assert free_memory(file) == 2 * MIB


def test_a_long_run_says_how_long_and_what_is_short() -> None:
    assert list(command.introduction(Scale(60, 10, 130), 4)) == ["130 jobs of 10 teams on 60 nodes of 8 GPUs, 4 rows"]
    (_, note) = command.introduction(Scale(1000, 100, 10_000), 4)
    assert note.startswith("note: this takes 226m13s, more or less; JOBS=")
    assert "JOBS=" in note


def test_a_seed_decides_the_jobs_and_waves_fill_the_gpus() -> None:
    scale = Scale(20, 5, 200)
    found = waves(scale, 1)
    assert found == waves(scale, 1) != waves(scale, 2)
    jobs = [job for wave in found for job in wave]
    assert [job.name for job in jobs] == [f"job-{number}" for number in range(200)]
    assert {job.team for job in jobs} == set(range(5))
    assert [best(wave) for wave in found[:-1]] == [scale.gpus] * (len(found) - 1)
    assert all(nodes_needed(wave) <= scale.nodes for wave in found)


def test_the_page_says_how_many_gpus_the_default_asks_for() -> None:
    (wave,) = waves(Scale(NODES, TEAMS, JOBS), 1)
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert f"{best(wave)} of {8 * NODES})" in page


def nodes_needed(wave: list[Job]) -> int:
    """Pack the pods, the largest first, each onto the first node that has room."""
    free: list[int] = []
    for gpus in sorted((job.gpus_per_pod for job in wave for _ in range(job.pods)), reverse=True):
        node = next((index for index, room in enumerate(free) if room >= gpus), None)
        if node is None:
            free.append(8 - gpus)
        else:
            free[node] -= gpus
    return len(free)


def test_no_gang_is_larger_than_the_cluster() -> None:
    assert {job.pods for wave in waves(Scale(1, 1, 100), 1) for job in wave} == {1}


def test_requests_are_counted_by_verb_and_resource_and_those_without_jobs_are_not() -> None:
    text = "\n".join(
        [
            "# HELP apiserver_request_total [STABLE] Counter of apiserver requests",
            'apiserver_request_total{code="201",component="apiserver",resource="pods",verb="POST"} 12',
            'apiserver_request_total{code="409",component="apiserver",resource="pods",verb="POST"} 3',
            'apiserver_request_total{code="200",resource="workloads",subresource="status",verb="PATCH"} 1.2e+02',
            'apiserver_request_total{code="200",resource="leases",verb="PUT"} 900',
            'apiserver_request_total{code="0",resource="pods",verb="WATCH"} 7',
            'apiserver_request_duration_seconds_count{resource="pods",verb="POST"} 15',
        ]
    )
    assert parse(text) == {("POST", "pods"): 15, ("PATCH", "workloads"): 120}


def test_a_job_is_submitted_as_its_row_says() -> None:
    wrapper = PLATFORM.document(GANG)
    assert (wrapper["kind"], wrapper["metadata"]["namespace"]) == ("AppWrapper", "team-3")
    group, inner = (part["template"] for part in wrapper["spec"]["components"])
    assert (group["kind"], group["spec"]) == ("PodGroup", {"minMember": 2})
    assert inner["spec"]["template"]["spec"]["schedulerName"] == "scheduler-plugins-scheduler"

    unpacked = next(row for row in ROWS if row.title == "unpacked").document(GANG)
    (part,) = unpacked["spec"]["components"]
    assert part["template"]["spec"]["template"]["spec"]["schedulerName"] == "default-scheduler"

    teamless = next(row for row in ROWS if row.title == "no team").document(GANG)
    assert (teamless["kind"], teamless["metadata"]["namespace"]) == ("AppWrapper", "plain-3")
    assert teamless["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "default-queue"}

    job = PLAIN.document(GANG)
    assert (job["kind"], job["metadata"]["namespace"], job["spec"]["suspend"]) == ("Job", "plain-3", True)
    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "default-queue"}
    assert [item["kind"] for item in plain_documents(PLAIN, 2)] == ["Namespace", "LocalQueue"] * 2


def test_plain_kueue_has_the_platforms_limits_and_queues_jobs_alone() -> None:
    platform, plain = PLATFORM.configuration(), PLAIN.configuration()
    assert plain["integrations"] == {"frameworks": ["batch/job"]}
    assert plain["clientConnection"] == platform["clientConnection"]
    workers = platform["controller"]["groupKindConcurrency"]["AppWrapper.workload.codeflare.dev"]
    assert plain["controller"]["groupKindConcurrency"]["Job.batch"] == workers
    assert "batch/job" not in platform["integrations"]["frameworks"]


def test_the_second_scheduler_is_the_platforms_but_for_what_a_row_is_about() -> None:
    usual = PLATFORM.scheduler_configuration()
    assert usual["profiles"][0]["schedulerName"] == "scheduler-plugins-scheduler"
    client, whole = (next(row for row in ROWS if row.title == title) for title in ("fast client", "all nodes"))
    assert client.scheduler_configuration() == {**usual, "clientConnection": {"qps": 1000, "burst": 2000}} != usual
    assert whole.scheduler_configuration() == {**usual, "percentageOfNodesToScore": 100} != usual


def test_a_row_that_would_tell_nothing_on_so_few_nodes_is_left_out() -> None:
    assert [row.title for row in ROWS if row not in rows_for(100)] == ["all nodes"]
    assert rows_for(101) == list(ROWS)


def workload(*conditions: str) -> dict[str, object]:
    return {
        "metadata": {"namespace": "team-0", "uid": "w", "ownerReferences": [{"name": "job-0"}]},
        "status": {"conditions": [{"type": kind, "status": "True"} for kind in conditions]},
    }


def pod(uid: str, node: str | None, phase: str = "Running", namespace: str = "team-0") -> dict[str, object]:
    return {
        "metadata": {"namespace": namespace, "uid": uid, "name": uid, "labels": {"job-name": "job-0"}},
        "spec": {"nodeName": node, "containers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}]},
        "status": {"phase": phase},
    }


def test_jobs_are_followed_from_admission_to_the_end() -> None:
    jobs = Jobs(frozenset({"team-0"}))
    jobs.workload("ADDED", workload("QuotaReserved"))
    assert not jobs.admitted
    jobs.workload("MODIFIED", workload("QuotaReserved", "Admitted"))
    first = jobs.admitted["team-0", "job-0"]
    jobs.workload("MODIFIED", workload("Admitted", "PodsReady"))
    assert jobs.admitted == {("team-0", "job-0"): first}
    jobs.pod("ADDED", pod("a", None, "Pending"))
    assert (jobs.gpus, jobs.left) == (0, 2)
    for uid in ("a", "b"):
        jobs.pod("MODIFIED", pod(uid, "node"))
        jobs.pod("MODIFIED", pod(uid, "node"))
    jobs.pod("ADDED", pod("c", "node", namespace="elsewhere"))
    assert (jobs.gpus, dict(jobs.pods)) == (8, {("team-0", "job-0"): 2})
    jobs.pod("MODIFIED", pod("a", "node", "Succeeded"))
    jobs.pod("DELETED", pod("b", "node"))
    jobs.pod("DELETED", pod("a", "node", "Succeeded"))
    jobs.workload("DELETED", workload())
    assert (jobs.gpus, jobs.left) == (0, 0)
    assert [gpus for _, gpus in jobs.curve] == [4, 8, 4, 0]


def result(title: str, rate: float, held: int, waves: tuple[int, int] = (1, 1)) -> Result:
    return Result(
        title=title,
        admitted_per_second=rate,
        to_admission=[0.5, 1.0, 1.5, 9.0],
        to_start=[1.0, 2.0, 2.5],
        held=held,
        best=160,
        halves=1,
        asked=Asked({("GET", "pods"): 8, ("POST", "pods"): 40}),
        memory={"kueue": 100, "etcd": 200},
        curve=[(1.0, 8), (2.0, held)],
        waves=waves,
    )


def test_a_row_has_its_ratios_to_the_first() -> None:
    first = result("platform", 5.0, 160)
    words = result("plain Kueue", 10.0, 120).line(first).replace("|", "").split()
    assert words == [
        *("plain", "Kueue", "10.0", "2.00", "1.0", "9.0", "2.0", "2.5"),
        *("120", "75.0", "%", "1", "12.0", "2.0", "1.00"),
    ]


def test_each_row_says_its_memory_at_once_and_an_ended_one_what_it_is_of() -> None:
    first = result("platform", 5.0, 160)
    assert list(first.lines(first))[1:] == [
        "             | MiB at most: etcd 200, kueue 100",
        "             | API calls a job: POST pods 10.0, GET pods 2.0",
    ]
    _, ended, *_ = result("unpacked", 5.0, 160, waves=(1, 3)).lines(first)
    assert ended == "             | ended: these are the figures of 1 of 3 waves"


@pytest.fixture
def load_of_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """What measures a row, without the cluster that it measures."""
    counts = iter(range(100))

    @contextlib.contextmanager
    def watched(*_: object) -> Iterator[Counter[str]]:
        yield Counter({"kueue": 100})

    monkeypatch.setattr(load, "Cluster", lambda _: None)
    monkeypatch.setattr(load, "configure", lambda *_: None)
    monkeypatch.setattr(load, "configure_scheduler", lambda *_: None)
    monkeypatch.setattr(load, "connect", lambda _: None)
    monkeypatch.setattr(load, "Watch", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(load, "watched", watched)
    monkeypatch.setattr(load.requests, "asked", lambda _: Asked({("POST", "pods"): 10 * next(counts)}))


@pytest.mark.usefixtures("load_of_one_row")
@pytest.mark.parametrize("why", [KeyboardInterrupt(), load.StalledError("3 jobs are not admitted")])
def test_a_row_that_is_ended_tells_of_the_waves_that_are_over(
    why: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = waves(Scale(1, 1, 30), 1)

    def run(_: Any, __: Any, row: Row, jobs: Jobs, wave: list[Job], ___: Any) -> load.Wave:
        if wave is planned[2]:
            raise why
        submitted = {(row.namespace(job.team), job.name): 0.0 for job in wave}
        jobs.admitted |= dict.fromkeys(submitted, 2.0)
        return load.Wave(submitted, 8, 8, 0)

    monkeypatch.setattr(load, "run", run)
    told: list[Result] = []
    with pytest.raises(type(why)):
        load.measure(cast("Paths", SimpleNamespace(kubeconfig="")), PLATFORM, planned, 1, told.append)
    (found,) = told
    jobs = len(planned[0]) + len(planned[1])
    assert (found.jobs, found.held, found.waves) == (jobs, 16, (2, len(planned)))
    assert found.calls == 20 / jobs, "what the wave asked for that was ended is not these jobs'"
    assert found.memory == {"kueue": 100}


@pytest.mark.usefixtures("load_of_one_row")
def test_a_row_that_is_ended_in_its_first_wave_keeps_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> load.Wave:
        raise KeyboardInterrupt

    monkeypatch.setattr(load, "run", run)
    told: list[Result] = []
    with pytest.raises(KeyboardInterrupt):
        load.measure(cast("Paths", SimpleNamespace(kubeconfig="")), PLATFORM, waves(Scale(1, 1, 8), 1), 1, told.append)
    (found,) = told
    first, _, memory = found.lines(found)
    assert "nan" in first
    assert memory.endswith("MiB at most: kueue 100")


def test_who_interrupts_a_run_gets_the_rows_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextlib.contextmanager
    def local() -> Iterator[tuple[SimpleNamespace, SimpleNamespace]]:
        yield SimpleNamespace(kubeconfig=""), SimpleNamespace(configure=lambda _: None, up=lambda: None)

    def measure(_: Any, row: Row, __: Any, ___: Any, tell: Any) -> None:
        tell(result(row.title, 5.0, 160, waves=(1, 1 if row is PLATFORM else 2)))
        if row is not PLATFORM:
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "local_project", local)
    monkeypatch.setattr(command, "settings", lambda *_: {})
    monkeypatch.setattr(command, "measure", measure)
    plot = tmp_path / "plot.svg"
    assert ended(lambda: command.main(["--nodes", "1", "--teams", "1", "--jobs", "4", "--plot", str(plot)])) == 130
    *rows, _, header, first, _, _, said = capsys.readouterr().out.splitlines()
    assert [line.split("|")[0].strip() for line in rows if "160  100.0 %" in line] == ["platform", "plain Kueue"]
    assert header.split() == ["MiB", "at", "most", "platform", "plain", "Kueue"]
    assert first.split() == ["etcd", "200", "200"]
    assert said == str(plot)
    assert "plain Kueue" in plot.read_text()


def test_nobody_goes_on_submitting_when_one_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when somebody interrupts it: thousands of jobs would be submitted before the command ends."""
    submitted: Queue[str] = Queue()

    def create(_: object, body: dict[str, Any], namespace: str, **__: Any) -> None:
        if namespace == "team-0":
            raise InterruptedError
        submitted.put(body["metadata"]["name"])
        time.sleep(0.05)

    cluster = SimpleNamespace(kind=lambda *_: None, client=SimpleNamespace(create=create))
    monkeypatch.setattr(load, "Cluster", lambda _: cluster)
    jobs = [Job("first", 0, 1, 1), *(Job(f"job-{number}", 1, 1, 1) for number in range(100))]
    with pytest.raises(InterruptedError):
        load.submit(cast("Paths", SimpleNamespace(kubeconfig="")), PLATFORM, jobs)
    assert submitted.qsize() < 50


def test_a_long_row_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs(frozenset({"team-0"}))
    jobs.workload("ADDED", workload("Admitted"))
    jobs.pod("ADDED", pod("a", "node"))
    monkeypatch.setattr(load.time, "monotonic", lambda: 500.0)
    said = load.progress(PLATFORM, waves(Scale(1, 1, 30), 1), 1, jobs, 140.0)
    count = len(waves(Scale(1, 1, 30), 1))
    assert said == (
        f"platform: wave 2 of {count}, 1 of 30 jobs admitted, 4 GPUs in use, 2 workloads and pods there, 6m00s"
    )


def test_what_is_done_beside_a_measurement_is_done_until_it_ends() -> None:
    calls: Queue[int] = Queue()
    with every(0.01, lambda: calls.put(1)):
        for _ in range(3):
            calls.get(timeout=30)
    done = calls.qsize()
    time.sleep(0.1)
    assert calls.qsize() == done


def test_percentiles_are_of_the_nearest_rank() -> None:
    values = [float(number) for number in range(1, 201)]
    assert [percentile(values, percent) for percent in (0, 50, 99, 100)] == [1, 100, 198, 200]
    assert str(percentile([], 50)) == "nan"


def test_memory_is_a_table_with_a_column_for_each_row() -> None:
    assert table({"platform": {"kueue": 90, "etcd": 200}, "plain Kueue": {"kueue": 80}}) == [
        "MiB at most                      platform  plain Kueue",
        "etcd                                  200            0",
        "kueue                                  90           80",
    ]


def test_the_picture_has_a_line_in_each_panel_for_each_row() -> None:
    picture = svg("a & b", [result("platform", 5.0, 160), result("plain", 10.0, 120)], 160)
    root = ElementTree.fromstring(picture)  # noqa: S314
    assert len(root.findall("{*}polyline")) == 4
    assert {"a & b", "platform", "plain"} <= {text.text for text in root.findall("{*}text")}
    assert ticks(160) == [0, 20, 40, 60, 80, 100, 120, 140, 160]


class Api(Handler):
    """Lists one object, reports another and its deletion, and lists none from then on."""

    lists: ClassVar[list[list[dict[str, Any]]]] = []

    def respond(self) -> None:
        if "watch" in self.path:
            self.send_response(200)
            self.end_headers()
            for kind, uid in (("ADDED", "b"), ("DELETED", "b")):
                self.wfile.write(json.dumps({"type": kind, "object": {"metadata": {"uid": uid}}}).encode() + b"\n")
        else:
            items = self.lists.pop(0) if self.lists else []
            self.answer(200, {"metadata": {"resourceVersion": "7"}, "items": items})


def test_a_watch_tells_of_all_also_of_what_went_between_two_connections() -> None:
    Api.lists = [[{"metadata": {"uid": "a"}}], []]
    told: Queue[tuple[str, str]] = Queue()
    with serving(Api) as port:
        api = kubernetes.client.ApiClient(kubernetes.client.Configuration(host=f"http://127.0.0.1:{port}"))
        client: Any = SimpleNamespace(client=api)
        client.request = lambda *a, **k: Client.request(client, *a, **k)
        with Watch(client, "/pods", lambda kind, item: told.put((kind, item["metadata"]["uid"]))):
            found = [told.get(timeout=30) for _ in range(4)]
    assert found == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "b"), ("DELETED", "a")]


def test_an_api_server_that_is_busy_with_what_goes_ends_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hours have measured would be lost with it."""
    monkeypatch.setattr("lab.scenarios.stage._PAUSE", 0)
    cluster = MagicMock()
    went: list[str] = []

    def delete(resource: object, *, namespace: str, **options: object) -> None:
        went.append(namespace)
        if went.count(namespace) == 1:
            raise ServerTimeoutError(kubernetes.client.ApiException(status=504))
        if namespace == "team-1":
            raise NotFoundError(kubernetes.client.ApiException(status=404))

    cluster.client.delete = delete
    load.remove(cluster, PLATFORM, ["team-0", "team-1", "team-2"])
    assert went == ["team-0", "team-0", "team-1", "team-1", "team-2", "team-2"]
