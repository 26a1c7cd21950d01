"""A cluster's picture shows its state, also to readers who see no colours, and no name in it becomes markup."""

import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from cli import status as command
from cli.app import main
from runner.picture.page import page
from runner.picture.state import Snapshot, snapshot

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOSTILE = "</title></svg><script>document.title=1</script><img src=x onerror=alert(1)>\"'&\x00\u202e"
GPU, SHARE = "nvidia.com/gpu", "nvshare.com/gpu"


def ago(minutes: float) -> str:
    return (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(name: str = "n0", *, usable: int = 8, ready: str = "True", labels: Any = None, **spec: Any) -> Any:
    status = {"capacity": {GPU: "8"}, "allocatable": {GPU: str(usable)}}
    conditions = [{"type": "Ready", "status": ready}]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {**status, "conditions": conditions},
    }


def pod(namespace: str, gpus: int, on: str = "n0", phase: str = "Running") -> Any:
    containers = [{"name": "main", "resources": {"limits": {GPU: str(gpus)}}}]
    return {
        "metadata": {"namespace": namespace},
        "spec": {"nodeName": on, "containers": containers},
        "status": {"phase": phase},
    }


def queue(name: str, *, used: int = 0, borrowed: int = 0, pending: int = 0, **quota: Any) -> Any:
    entry = {"name": GPU, "nominalQuota": "8", **quota}
    reserved = [{"name": GPU, "total": str(used), "borrowed": str(borrowed)}]
    return {
        "metadata": {"name": name},
        "spec": {"resourceGroups": [{"flavors": [{"name": "default", "resources": [entry]}]}]},
        "status": {
            "pendingWorkloads": pending,
            "flavorsReservation": [{"name": "default", "resources": reserved}],
        },
    }


def workload(name: str, created: float, namespace: str = "blue", **since: float) -> Any:
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": ago(minutes)} for kind, minutes in since.items()
    ]
    template = {"spec": {"containers": [{"resources": {"limits": {GPU: 8}}}]}}
    return {
        "metadata": {"namespace": namespace, "name": name, "creationTimestamp": ago(created)},
        "spec": {"podSets": [{"count": 2, "template": template}]},
        "status": {"conditions": conditions},
    }


def event(**changes: Any) -> Any:
    about = {"kind": "Pod", "namespace": "blue", "name": "p"}
    item = {"metadata": {}, "involvedObject": about, "reason": "Evicted", "message": "gone", "type": "Warning"}
    return {**item, "lastTimestamp": ago(1), **changes}


def taken(**objects: Any) -> Snapshot:
    return snapshot("mine", NOW, **objects)


class Read(HTMLParser):
    """Tags with their attributes, and texts, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def rows(self, kind: str) -> list[dict[str, str]]:
        """The boxes of a row's height: neither the legend's nor those of the GPUs over time."""
        return [values for values in self.boxes(kind) if values["height"] in ("4.0", "16.0", "4", "16")]

    def boxes(self, kind: str) -> list[dict[str, str]]:
        """The rectangles of the drawings, those of the legend left out."""
        rects = [values for tag, values in self.tags if tag == "rect" and kind in values.get("class", "").split()]
        return [values for values in rects if values.get("y") != "1"]


def drawn(**objects: Any) -> Read:
    return Read(page(taken(**objects)))


def test_each_gpu_of_a_node_is_a_box_with_who_has_it() -> None:
    pods = [pod("blue", 4), pod("red", 2), pod("red", 8, phase="Succeeded")]
    found = drawn(nodes=[node()], pods=pods)
    assert [len(found.boxes(kind)) for kind in ("team-0", "team-1", "free", "lost")] == [4, 2, 2, 0]
    assert "ready, blue 4, red 2" in found.texts


@pytest.mark.parametrize(
    ("state", "boxes"),
    [
        ("cordoned", node(unschedulable=True)),
        ("not ready", node(ready="Unknown")),
        ("marked EVICT", node(labels={"autopilot.ibm.com/gpuhealth": "EVICT"})),
    ],
)
def test_a_node_that_is_lost_says_why(state: str, boxes: Any) -> None:
    found = drawn(nodes=[boxes])
    assert len(found.boxes("lost")) == 8
    assert state in found.texts


def test_a_node_that_offers_less_has_lost_the_rest() -> None:
    found = drawn(nodes=[node(usable=7)], pods=[pod("blue", 3)])
    assert [len(found.boxes(kind)) for kind in ("team-0", "free", "lost")] == [3, 4, 1]
    assert "1 GPUs gone, blue 3" in found.texts


def test_a_queue_says_what_it_uses_borrows_and_does_not_lend() -> None:
    found = drawn(queues=[queue("blue", used=12, borrowed=4), queue("slack", lendingLimit="3"), queue("z", pending=2)])
    assert "12 used, quota 8, 4 borrowed" in found.texts
    assert "0 used, quota 8, 3 left to others, 5 not lent" in found.texts
    assert "0 used, quota 8, 8 left to others, 2 waiting" in found.texts
    (borrowed,), (used,), (lost,) = (found.boxes(kind) for kind in ("borrowed", "used", "lost"))
    assert float(used["width"]) == pytest.approx(2 * float(borrowed["width"]), abs=0.2)
    assert float(lost["width"]) == pytest.approx(1.25 * float(borrowed["width"]), abs=0.2)
    assert float(borrowed["x"]) == pytest.approx(float(used["x"]) + float(used["width"]), abs=0.2)


def test_a_job_waits_from_its_creation_and_runs_from_its_admission() -> None:
    ended = workload("job", 100, Finished=30)
    ended["status"]["conditions"].append(
        {"type": "QuotaReserved", "status": "False", "reason": "Finished", "lastTransitionTime": ago(30)}
    )
    ended["status"]["accumulatedPastExecutionTimeSeconds"] = 50 * 60
    found = drawn(workloads=[ended])
    (waiting,), (ran,) = found.rows("waiting"), found.rows("team")
    assert float(ran["width"]) == pytest.approx(2.5 * float(waiting["width"]), abs=0.3)
    assert "blue/job ran 50 min, 16 GPUs" in found.texts
    assert "16 GPUs, ended" in found.texts


def test_a_job_that_still_waits_has_run_at_no_time() -> None:
    found = drawn(workloads=[workload("job", 100)])
    assert not found.boxes("team")
    assert "blue/job waited 1 h 40 min, 16 GPUs" in found.texts


def test_a_job_that_was_evicted_waits_since_then() -> None:
    found = drawn(workloads=[workload("job", 100, Evicted=20)])
    (earlier,), (waiting,) = found.boxes("earlier"), found.boxes("waiting")
    assert float(earlier["width"]) == pytest.approx(4 * float(waiting["width"]), abs=0.5)
    assert "blue/job waited 20 min, 16 GPUs" in found.texts
    again = workload("job", 100, QuotaReserved=10)
    again["status"]["conditions"] += [{"type": "Evicted", "status": "False", "lastTransitionTime": ago(10)}]
    found = drawn(workloads=[again])
    assert not found.boxes("waiting")
    assert "blue/job waited and ran before, for 1 h 30 min, 16 GPUs" in found.texts


def ran(name: str, namespace: str, begin: int, end: int, gpus: int = 8) -> Any:
    """A workload that ran from so many minutes ago until so many."""
    found = workload(name, begin, namespace, Finished=end)
    found["status"]["accumulatedPastExecutionTimeSeconds"] = (begin - end) * 60
    found["spec"]["podSets"][0]["count"] = gpus // 8
    return found


def test_gpus_over_time_stand_one_team_above_the_other_beneath_all_that_there_are() -> None:
    nodes = [node(f"n{number}") for number in range(3)]
    runs = [ran("a", "blue", 60, 30, gpus=16), ran("b", "red", 40, 0), ran("c", "blue", 30, 20)]
    found = drawn(nodes=nodes, workloads=runs)
    frame, one, two = (float(found.boxes("quota")[0][key]) for key in ("height", "x", "width"))
    assert frame == 120
    shown = [
        (kind, *(round(float(values[key])) for key in ("height", "y")), round(60 * (float(values["x"]) - one) / two))
        for kind in ("team-0", "team-1")
        for values in found.boxes(kind)
        if values not in found.rows(kind)
    ]
    # 5 pixels are a GPU. Red comes when blue has 16, and sinks as blue gives back.
    assert shown == [
        ("team-0", 80, 40, 0),
        ("team-0", 40, 80, 30),
        ("team-1", 40, 0, 20),
        ("team-1", 40, 40, 30),
        ("team-1", 40, 80, 40),
    ]
    assert "of 24 GPUs" in found.texts
    assert any(text.startswith("red had 8 GPUs from 22 Nov 11:20:00") for text in found.texts)


def test_of_a_job_that_came_just_now_nothing_is_drawn_before_or_after() -> None:
    found = drawn(nodes=[node()], workloads=[workload("job", 0.25, QuotaReserved=0.25)])
    frame, (held,) = found.boxes("quota")[0], [box for box in found.boxes("team-0") if float(box["height"]) > 20]
    begin, end = float(frame["x"]), float(frame["x"]) + float(frame["width"])
    assert float(held["x"]) == pytest.approx(begin + 0.75 * (end - begin), abs=5)
    assert float(held["x"]) + float(held["width"]) == pytest.approx(end, abs=1)


def test_shares_of_gpus_are_counted_where_queues_count_them() -> None:
    shares = {
        **node(),
        "status": {**node()["status"], "capacity": {GPU: "1", SHARE: "10"}, "allocatable": {GPU: "1", SHARE: "10"}},
    }
    plugin, own = pod("nvshare-system", 1), pod("blue", 3)
    own["spec"]["containers"][0]["resources"]["limits"] = {SHARE: "3"}
    counted = queue("blue")
    counted["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["name"] = SHARE
    found = drawn(nodes=[shares], pods=[plugin, own], queues=[counted])
    assert "ready, blue 3" in found.texts
    assert [len(found.boxes(kind)) for kind in ("team-0", "free")] == [3, 7]
    assert "0 used, quota 8, 8 left to others" in found.texts


@pytest.mark.parametrize(
    ("taint", "state"),
    [
        ({"key": "nccl-gate", "value": "failed", "effect": "NoSchedule"}, "taint nccl-gate"),
        ({"key": "lab.example/gpu", "value": "no", "effect": "NoExecute"}, "taint lab.example/gpu"),
        ({"key": "lab.example/gpu", "value": "yes", "effect": "NoExecute"}, "ready"),
        ({"key": GPU, "value": "present", "effect": "NoSchedule"}, "ready"),
        ({"key": "nccl-gate", "effect": "PreferNoSchedule"}, "ready"),
    ],
)
def test_a_node_whose_taint_jobs_do_not_tolerate_is_lost(taint: Any, state: str) -> None:
    """As the slack controller counts it: a gate keeps jobs away by a taint."""
    flavor = {"spec": {"tolerations": [{"key": "lab.example/gpu", "value": "yes"}]}}
    found = drawn(nodes=[node(taints=[taint])], flavors=[flavor])
    assert state in found.texts
    assert len(found.boxes("lost")) == (0 if state == "ready" else 8)


def test_only_the_last_jobs_and_events_are_shown_and_the_rest_counted() -> None:
    events = [event(reason=f"r{number}", lastTimestamp=ago(number)) for number in range(50)]
    found = drawn(workloads=[workload(f"job-{number}", number + 1) for number in range(70)], events=events)
    assert "Jobs, the last 60 of 70" in found.texts
    assert "blue/job-0" in found.texts
    assert "blue/job-69" not in found.texts
    assert "Events, the last 40 of 50" in found.texts
    assert "warning: r0" in found.texts
    assert "warning: r40" not in found.texts


def test_no_name_is_markup() -> None:
    item = {**workload(HOSTILE, 10, HOSTILE, QuotaReserved=5)}
    text = page(
        snapshot(
            HOSTILE,
            NOW,
            nodes=[node(HOSTILE, labels={"autopilot.ibm.com/gpuhealth": HOSTILE})],
            pods=[pod(HOSTILE, 1, HOSTILE)],
            queues=[queue(HOSTILE)],
            workloads=[item],
            events=[event(reason=HOSTILE, message=HOSTILE)],
        )
    )
    found = Read(text)
    assert {tag for tag, _ in found.tags} == {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "ul", "li", "section", "table", "tr"),
        *("th", "td", "svg", "defs", "pattern", "path", "circle", "rect", "text"),
    }
    assert not [name for _, values in found.tags for name in values if name.startswith("on")]
    assert not re.search("[\x00\u202e]", text)
    assert any("<script>document.title=1</script>" in each for each in found.texts)


def test_it_needs_nothing_from_elsewhere_and_runs_nothing() -> None:
    text = page(taken(nodes=[node()], pods=[pod("blue", 1)], queues=[queue("blue")], events=[event()]))
    assert set(re.findall(r"\w+://[^\s\"]+", text)) == {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {f"#team-{number}" for number in range(8)} | {
        "#lost",
        "#borrowed",
    }
    assert "<script" not in text
    policies = [values["content"] for tag, values in Read(text).tags if "http-equiv" in values]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert "prefers-color-scheme: dark" in text


def test_nodes_in_repair_are_listed() -> None:
    item = node()
    repair = {
        "state": "reported",
        "reason": "xid-error",
        "since": "2026-11-27T10:00:00Z",
        "case": "42",
        "detail": "<b>",
    }
    item["metadata"]["annotations"] = {"mlbatch/repair": json.dumps(repair)}
    texts = drawn(nodes=[item]).texts
    assert {"Nodes in repair", "reported", "xid-error", "42", "<b>"} <= set(texts)
    assert "Nodes in repair" not in drawn(nodes=[node()]).texts


def test_an_empty_cluster_is_drawn_too() -> None:
    assert drawn().texts.count("none") == 5


def test_a_file_that_cannot_be_written_is_told(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "connect", lambda *_: None)
    monkeypatch.setattr("runner.picture.page.read", lambda *_: taken())
    assert main(["status", "--output", "html", "--file", str(tmp_path / "status.html")]) == 0
    assert (tmp_path / "status.html").read_text().startswith("<!DOCTYPE html>")
    assert main(["status", "--output", "html", "--file", str(tmp_path / "no" / "status.html")]) == 2
    assert "error: the report cannot be written" in capsys.readouterr().err
