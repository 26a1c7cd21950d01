"""The scenarios' sizes, picture and command, and that each of them has a mechanism that can be taken away."""

import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from emulator.cluster import ClusterError
from lab.scenarios import attacks, plays, run, stage
from lab.scenarios.__main__ import main
from lab.scenarios.gantt import lanes, svg
from lab.scenarios.mechanisms import MECHANISMS
from lab.scenarios.plays import SCENARIOS
from lab.scenarios.record import Loss, Record, Use, look, recorded
from lab.scenarios.run import Outcome
from lab.scenarios.size import Size
from lab.scenarios.stage import asked
from tests.commands import ended

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def use(gpus: int, began: float, ended: float | None = None, node: str = "gpu-node-0") -> Use:
    return Use("blue", "job", node, gpus, began, ended)


def test_every_node_is_somebodys() -> None:
    for nodes in range(3, 40):
        size = Size(nodes)
        assert 2 * size.team + size.slack == size.gpus == 8 * nodes
        assert size.slack_nodes in (1, 2)


def test_what_holds_gpus_at_a_time_is_drawn_beside_each_other() -> None:
    first, second, third = use(5, 0, 10), use(3, 1, 4), use(3, 4)
    assert [rows for _, rows in lanes([third, first, second], end=20)] == [[0, 1, 2, 3, 4], [5, 6, 7], [5, 6, 7]]


def test_the_picture_shows_each_gpu_for_as_long_as_it_is_held() -> None:
    record = Record()
    record.uses = {"a": use(8, 0, 10), "b": use(1, 10, 20, node="gpu-node-1"), "c": use(1, 0, 20, node="gone")}
    picture = ElementTree.fromstring(svg("<a title>", "kept", record, ["gpu-node-0", "gpu-node-1"]))  # noqa: S314
    bars = [each for each in picture.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    assert [bar.get("width") for bar in bars] == ["450.0"] * 9
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    assert {"<a title>", "kept", "gpu-node-0", "gpu-node-1", "20 s"} <= set(texts)


def test_the_picture_shows_which_nodes_were_lost_under_who_is_still_there() -> None:
    record = Record()
    record.uses = {"a": use(8, 0, 15), "b": use(8, 0, 20, node="gpu-node-1")}
    for lost, now in (({"gpu-node-0"}, 10), ({"gpu-node-0", "gpu-node-1"}, 15), ({"gpu-node-1"}, 18)):
        record.lose(lost, now)
    assert record.losses == [Loss("gpu-node-0", 10, 18), Loss("gpu-node-1", 15)]
    picture = ElementTree.fromstring(svg("a title", "kept", record, ["gpu-node-0", "gpu-node-1"]))  # noqa: S314
    bars = [(bar.findtext(f"{SVG}title"), bar.get("x"), bar.get("width")) for bar in picture.iter(f"{SVG}rect")]
    drawn = [bar for bar in bars if bar[0]]
    assert drawn[:2] == [("lost", "560.0", "360.0"), ("lost", "785.0", "225.0")]
    assert {bar[0] for bar in drawn[2:]} == {"blue/job"}
    assert {"free", "lost"} <= {each.text for each in picture.iter(f"{SVG}text")}


def test_a_long_verdict_stands_in_the_picture_as_a_whole() -> None:
    record, verdict = Record(), "BROKEN: " + "the others wait in the queue, " * 12 + "and more"
    picture = ElementTree.fromstring(svg("a title", verdict, record, ["gpu-node-0"]))  # noqa: S314
    lines = [each.text or "" for each in picture.iter(f"{SVG}text") if each.get("x") == "110"][1:]
    assert " ".join(lines) == verdict
    assert max(map(len, lines)) <= 140
    (lowest, *_) = sorted(
        (float(each.get("y", 0)) for each in picture.iter(f"{SVG}text") if each.text in lines), reverse=True
    )
    assert lowest < min(
        float(each.get("y", 0))
        for each in picture.iter(f"{SVG}rect")
        if each.get("fill") == "#f2f2f2" and each.get("width") == "900"
    )


def test_a_change_is_told_once() -> None:
    record = Record()
    for state in ("is Running", "is Running", "is Suspended"):
        record.see("blue/job", state)
    assert [line.text for line in record.lines] == ["blue/job is Running", "blue/job is Suspended"]


def test_who_ends_holds_nothing_any_more() -> None:
    record = Record()
    record.hold({"a": use(8, 0)}, 0)
    assert record.uses["a"].ended is None
    record.hold({}, 3)
    assert record.uses["a"].ended == 3


def holding(name: str) -> dict[str, Any]:
    """A pod that has all GPUs of a node."""
    labels = {"workload.codeflare.dev/appwrapper": name}
    containers = [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]
    return {
        "metadata": {"uid": name, "name": name, "namespace": "blue", "labels": labels},
        "spec": {"nodeName": "gpu-node-0", "containers": containers},
        "status": {"phase": "Running"},
    }


def test_who_takes_a_nodes_gpus_over_between_two_looks_is_drawn_on_them() -> None:
    """Where an owner takes its quota back, one pod goes and another one comes at once."""
    pods: list[dict[str, Any]] = []

    def listed(_: str, kind: str, namespace: str = "", **__: str) -> list[dict[str, Any]]:
        return pods if (kind, namespace) == ("Pod", "blue") else []

    record, cluster = Record(), SimpleNamespace(list=listed)
    for name in ("first", "second"):
        pods[:] = [holding(name)]
        look(cluster, record)
    drawn = [(each.job, len(rows)) for each, rows in lanes(list(record.uses.values()), end=record.now)]
    assert drawn == [("first", 8), ("second", 8)]


def test_a_look_without_an_answer_does_not_end_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.scenarios.record.EVERY", 0.01)
    seen, later = [], threading.Event()

    def look(cluster: object, record: Record) -> None:
        seen.append(record)
        if len(seen) == 2:
            raise ApiException(status=503)
        if len(seen) > 2:
            later.set()

    monkeypatch.setattr("lab.scenarios.record.look", look)
    with recorded(object(), Record()):
        assert later.wait(10)


def test_neither_does_one_before_or_after_the_play(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an API server that is busy with the last scenario ends all later ones."""
    asked_for = []

    def look(cluster: object, record: Record) -> None:
        asked_for.append(cluster)
        raise ApiException(status=500)

    monkeypatch.setattr("lab.scenarios.record.look", look)
    with recorded("a cluster", Record()):
        pass
    assert len(asked_for) >= 2


def test_a_busy_api_server_does_not_end_the_clearing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "time", SimpleNamespace(sleep=lambda seconds: None, monotonic=time.monotonic))
    busy = {"delete", "mark", "cordon", "heal", "remains", "lending_limit"}

    def answered(what: str) -> Callable[..., None]:
        def answer(*_: object) -> None:
            if what in busy:
                busy.remove(what)
                raise ApiException(status=503)

        return answer

    for what in ("mark", "cordon", "heal", "remains", "lending_limit"):
        monkeypatch.setattr(stage, what, answered(what))
    scene = object.__new__(stage.Stage)
    scene.cluster, scene.nodes = SimpleNamespace(delete=answered("delete")), ["gpu-node-0"]
    scene._submitted = [("blue", "job")]
    scene.clear()
    stage.settle(scene.cluster)
    assert not busy


class Queue:
    """A stage where each job of a team takes a node, and the test chooses which job the queue admits next."""

    def __init__(self, picks: int = 0, room: int = 3) -> None:
        self.size, self.cluster, self.picks, self.room = Size(), self, picks, room
        self.waiting: list[str] = []
        self.running: list[str] = []

    def submit(self, team: str, name: str, gpus: int) -> None:
        self.waiting.append(name)
        self._admit()

    def end(self, team: str, name: str) -> None:
        self.running.remove(name)
        self._admit()

    def runs(self, team: str, name: str) -> None:
        assert name in self.running

    def judged(self, team: str, name: str) -> None:
        """Each is looked at."""

    def waits(self, team: str, name: str) -> str:
        assert name in self.waiting, f"not so: {team}/{name} waits"
        return "insufficient unused quota for nvidia.com/gpu"

    def until(self, what: str, probe: Callable[[], list[str]], accept: Callable[[list[str]], bool]) -> list[str]:
        found = probe()
        assert accept(found), what
        return found

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self.room:
            self.running.append(self.waiting.pop(min(self.picks, len(self.waiting) - 1)))


@pytest.mark.parametrize(
    ("queue", "broken"),
    [
        (Queue(), None),
        (Queue(picks=-1), "when 1 had ended, next-2 had started"),
        (Queue(picks=1), "when 1 had ended, next-1 had started"),
        (Queue(room=4), "next-0 did not wait"),
        (Queue(room=6), "not so: red/next-2 waits"),
    ],
)
def test_the_order_of_a_queue_is_judged_by_who_has_pods(
    queue: Any, broken: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plays, "pods_of", lambda cluster, team, name: [name] if name in cluster.running else [])
    monkeypatch.setattr(plays, "time", SimpleNamespace(sleep=lambda seconds: None))
    outcome = Outcome(SCENARIOS["queueing"], run.broken(SCENARIOS["queueing"], queue), 0)
    assert outcome.broken == broken
    assert outcome.is_proof is (queue.room == 6)


def test_a_member_is_refused_by_a_rule_and_not_by_a_busy_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "time", SimpleNamespace(sleep=lambda seconds: None))
    refusal = ApiException(status=403)
    refusal.body = "alice cannot list secrets"
    answers = [ApiException(status=503), refusal]

    def attempt() -> None:
        raise answers.pop(0)

    scene: Any = SimpleNamespace(record=Record())
    attacks._fails(scene, "alice may not look", attempt, "cannot")
    assert [line.text for line in scene.record.lines] == ["✓ alice may not look: alice cannot list secrets"]


def test_no_promise_is_broken_by_a_busy_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "time", SimpleNamespace(sleep=lambda seconds: None))
    answers: list[Any] = [ApiException(status=500), ApiException(status=429), "here"]

    def question() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert asked(question) == "here"
    answers += [ApiException(status=403), "here"]
    with pytest.raises(ApiException):
        asked(question)
    answers[:] = [ApiException(status=503)] * 100
    with pytest.raises(ApiException):
        asked(question)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "error: there is no scenario 'nothing'; there are queueing, fair-sharing, borrowing, "),
        (["Node_failure"], "error: there is no scenario 'Node_failure'; did you mean node-failure?"),
        (["--pictures", "/dev/null/here"], "error: [Errno 20] Not a directory: '/dev/null/here'"),
        (["--nodes", "2"], "error: 2 nodes are too few: two teams and the slack queue need 3 or more"),
        (["--nodes", "1001"], "error: 1001 nodes are too many: a stack has at most 1000"),
        (["--nodes", "1000"], "error: 1000 nodes and 8000 jobs take "),
    ],
)
def test_what_cannot_be_played_is_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.scenarios.memory.free_memory", lambda: 3 << 30)
    monkeypatch.setattr("lab.scenarios.__main__.run", lambda *_, **__: pytest.fail("it was played"))
    assert main(arguments) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (ClusterError("etcd ends before it is ready"), 1, "error: etcd ends before it is ready\n"),
        (KeyboardInterrupt(), 130, "interrupted; its cluster has ended\n"),
    ],
)
def test_a_command_that_cannot_go_on_says_so(
    raised: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> int:
        raise raised

    assert ended(command) == code
    assert capsys.readouterr().err == said
    assert ended(lambda: 3) == 3


def test_each_scenario_has_a_mechanism_and_is_in_the_page() -> None:
    assert {scenario.breaks for scenario in SCENARIOS.values()} == set(MECHANISMS)
    page = (ROOT / "docs" / "scenarios.md").read_text()
    assert [name for name in SCENARIOS if f"`{name}`" not in page] == []
