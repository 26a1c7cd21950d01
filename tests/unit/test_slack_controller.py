"""The slack controller: what it decides, and that it writes it to the API server it watches."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from time import monotonic, sleep
from typing import Any
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest

from components.kubernetes.in_cluster import Api
from components.tenancy import slack_controller
from components.tenancy.slack import SlackControllerArgs, program
from components.tenancy.slack_controller import (
    REQUEUED,
    Controller,
    Debounce,
    Settings,
    Workload,
    amount,
    desired,
    excess,
    lost,
    lowered,
    quantity,
    quotas,
    victims,
)

GPU = "nvidia.com/gpu"
HEALTH = "autopilot.ibm.com/gpuhealth"
CAPACITY = {"cpu": "224", "memory": "2113411288Ki", GPU: "8", "pods": "250"}
FLAVOR = "default-flavor"
SLACK = "slack-cluster-queue"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
WHOLE_NODE = {"cpu": Fraction(224), "memory": Fraction(2113411288 * 1024), GPU: Fraction(8)}


@pytest.fixture(scope="module")
def settings() -> Settings:
    """The settings that the component mounts."""
    files = program(SlackControllerArgs(queue=SLACK, image="python", grace_seconds=0.2)).data()
    return Settings.load(files["settings.json"])


def node(
    name: str = "n0",
    *,
    labels: dict[str, str] | None = None,
    taints: list[str] | None = None,
    cordoned: bool = False,
    capacity: dict[str, str] | None = None,
) -> dict[str, Any]:
    spec: dict[str, Any] = {"unschedulable": True} if cordoned else {}
    if taints:
        spec["taints"] = [{"key": key, "effect": "NoSchedule"} for key in taints]
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {"capacity": CAPACITY if capacity is None else capacity},
    }


@pytest.mark.parametrize(
    ("nodes", "loss"),
    [
        ([], {}),
        ([node()], {}),
        ([node(cordoned=True)], WHOLE_NODE),
        ([node(taints=["node.kubernetes.io/not-ready"])], WHOLE_NODE),
        ([node(taints=["node.kubernetes.io/unreachable"])], WHOLE_NODE),
        ([node(taints=[GPU])], {}),
        ([node(labels={HEALTH: "EVICT"})], {GPU: Fraction(8)}),
        ([node(labels={HEALTH: "ERR"})], {GPU: Fraction(8)}),
        ([node(labels={HEALTH: "TESTING"})], {GPU: Fraction(8)}),
        ([node(labels={HEALTH: "WARN"})], {}),
        ([node(labels={HEALTH: "PASS"})], {}),
        ([node(labels={"elsewhere": "EVICT"})], {}),
        ([node(labels={HEALTH: "EVICT"}, cordoned=True)], WHOLE_NODE),
        ([node("a", labels={HEALTH: "EVICT"}), node("b", labels={HEALTH: "ERR"}), node("c")], {GPU: Fraction(16)}),
        ([node("a", cordoned=True), node("b", labels={HEALTH: "ERR"})], {**WHOLE_NODE, GPU: Fraction(16)}),
        # nodes without GPUs do not count, whatever is wrong with them
        ([node(cordoned=True, capacity={"cpu": "64", "memory": "256Gi", "pods": "110"})], {}),
        ([node(cordoned=True, capacity={"cpu": "64", GPU: "0"})], {}),
        # a GPU node whose device plugin has gone is one by its label
        (
            [node(cordoned=True, capacity={"cpu": "64", GPU: "0"}, labels={"nvidia.com/gpu.present": "true"})],
            {"cpu": Fraction(64)},
        ),
        ([{"metadata": {"name": "new"}}], {}),
    ],
)
def test_what_is_lost(nodes: list[dict[str, Any]], loss: dict[str, Fraction], settings: Settings) -> None:
    assert lost(nodes, settings) == loss


def groups(**limits: str) -> list[dict[str, Any]]:
    nominal = {"cpu": "224", "memory": "2T", GPU: "8", "pods": "100"}
    resources = [
        {"name": name, "nominalQuota": value, **({"lendingLimit": limits[name]} if name in limits else {})}
        for name, value in nominal.items()
    ]
    return [{"coveredResources": list(nominal), "flavors": [{"name": FLAVOR, "resources": resources}]}]


@pytest.mark.parametrize(
    ("before", "loss", "after"),
    [
        (groups(), {}, groups()),
        (groups(), {GPU: Fraction(8)}, groups(**{GPU: "0"})),
        (groups(), {GPU: Fraction(3)}, groups(**{GPU: "5"})),
        (groups(), {GPU: Fraction(16)}, groups(**{GPU: "0"})),
        (groups(), WHOLE_NODE, groups(**{"cpu": "0", "memory": "0", GPU: "0"})),
        (groups(), {"cpu": Fraction(1, 2)}, groups(cpu="223500m")),
        (groups(**{GPU: "0"}), {}, groups()),
        (groups(**{GPU: "0", "cpu": "0"}), {GPU: Fraction(1)}, groups(**{GPU: "7"})),
        # the same limit in another spelling is no change
        (groups(memory="1T"), {"memory": Fraction(10**12)}, groups(memory="1T")),
        (groups(), {"example.org/other": Fraction(1)}, groups()),
        ([], {GPU: Fraction(8)}, []),
        ([{"coveredResources": []}], {GPU: Fraction(8)}, [{"coveredResources": []}]),
    ],
)
def test_what_the_limits_become(
    before: list[dict[str, Any]], loss: dict[str, Fraction], after: list[dict[str, Any]]
) -> None:
    copy = json.loads(json.dumps(before))
    assert desired(before, loss) == after
    assert before == copy, "the queue as it was read must stay as it was"


def test_only_the_first_flavor_of_the_first_group_is_limited() -> None:
    first, second = groups()[0], groups()[0]
    first["flavors"].append({"name": "other", "resources": [{"name": GPU, "nominalQuota": "8"}]})
    result = desired([first, second], {GPU: Fraction(8)})
    assert result[0]["flavors"][1] == first["flavors"][1]
    assert result[1] == second
    assert result[0]["flavors"][0]["resources"][2]["lendingLimit"] == "0"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8", 8),
        (8, 8),
        ("500m", Fraction(1, 2)),
        ("2T", 2 * 10**12),
        ("1Ki", 1024),
        ("12e6", 12 * 10**6),
        ("1E", 10**18),
    ],
)
def test_amounts(text: str | int, number: Fraction) -> None:
    assert amount(text) == number


@pytest.mark.parametrize("text", ["", "8x", "8KB", "m"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|Invalid literal"):
        amount(text)


def test_quantities_are_exact() -> None:
    assert quantity(Fraction(8)) == "8"
    assert quantity(Fraction(447, 2)) == "223500m"


@pytest.mark.parametrize(
    ("looks", "last"),
    [
        ([(0, {})], ({}, None)),
        ([(0, {GPU: 8})], ({}, 5)),
        ([(0, {GPU: 8}), (3, {GPU: 8})], ({}, 2)),
        ([(0, {GPU: 8}), (5, {GPU: 8})], ({GPU: 8}, None)),
        # whatever was looked at first, even long ago, the loss begins when it is seen
        ([(0, {}), (100, {GPU: 8}), (104, {GPU: 8})], ({}, 1)),
        # a blip starts over
        ([(0, {GPU: 8}), (3, {}), (4, {GPU: 8}), (6, {GPU: 8})], ({}, 2)),
        ([(0, {GPU: 8}), (3, {}), (4, {GPU: 8}), (9, {GPU: 8})], ({GPU: 8}, None)),
        # what is back is back at once
        ([(0, {GPU: 8}), (9, {GPU: 8}), (10, {})], ({}, 5)),
        # of a loss that grows, the old part has lasted
        ([(0, {GPU: 8}), (9, {GPU: 16}), (10, {GPU: 16})], ({GPU: 8}, 4)),
        ([(0, {GPU: 8}), (9, {GPU: 16}), (14, {GPU: 16})], ({GPU: 16}, None)),
        ([(0, {GPU: 16}), (9, {GPU: 8}), (10, {GPU: 8})], ({GPU: 8}, 4)),
        ([(0, {GPU: 8}), (2, {GPU: 8, "cpu": 224}), (6, {GPU: 8, "cpu": 224})], ({GPU: 8}, 1)),
    ],
)
def test_what_has_lasted(
    looks: list[tuple[float, dict[str, Fraction]]], last: tuple[dict[str, Fraction], float | None]
) -> None:
    lasting = Debounce(5)
    answers = [lasting.look(now, loss) for now, loss in looks]
    assert answers[-1] == last


def test_without_grace_a_loss_counts_at_once() -> None:
    assert Debounce(0).look(1, {GPU: Fraction(8)}) == ({GPU: 8}, None)


def cluster_queue(name: str, cohort: str | None = "default-cohort", **nominal: str) -> dict[str, Any]:
    """A queue with 8 GPUs, 224 cores and so on, or with other amounts, as the API server has it."""
    amounts = {"cpu": "224", "memory": "2T", GPU: "8", "pods": "100", **nominal}
    entries = [{"name": name, "nominalQuota": value} for name, value in amounts.items()]
    group = {"coveredResources": list(amounts), "flavors": [{"name": FLAVOR, "resources": entries}]}
    spec = {"resourceGroups": [group], **({"cohortName": cohort} if cohort else {})}
    return {"metadata": {"name": name, "resourceVersion": "1"}, "spec": spec}


def workload(
    name: str,
    team: str = "blue",
    *,
    gpus: int = 0,
    cpus: int = 0,
    priority: int | None = 5,
    since: int = 0,
    active: bool = True,
    requeued: bool = False,
    true: tuple[str, ...] = ("QuotaReserved", "Admitted"),
    **metadata: str,
) -> dict[str, Any]:
    """A Workload that holds quota since so many minutes past noon, as the API server has it."""
    usage = {GPU: str(gpus), "cpu": f"{1000 * cpus}m", "pods": "1"}
    assignment = {"name": "main", "count": 1, "flavors": dict.fromkeys(usage, FLAVOR), "resourceUsage": usage}
    admission = {"clusterQueue": f"{team}-cluster-queue", "podSetAssignments": [assignment]}
    return {
        "metadata": {
            "name": name,
            "namespace": team,
            "uid": name,
            "resourceVersion": "1",
            **({"annotations": {REQUEUED: "lost-capacity"}} if requeued else {}),
            **metadata,
        },
        "spec": {"active": active, **({} if priority is None else {"priority": priority})},
        "status": {
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": f"2026-01-01T12:{since:02}:00Z"} for kind in true
            ],
            **({"admission": admission} if "QuotaReserved" in true else {}),
        },
    }


def evicted(
    items: list[dict[str, Any]],
    loss: dict[str, Fraction],
    queues: tuple[dict[str, Any], ...] = (cluster_queue("blue-cluster-queue"), cluster_queue("red-cluster-queue")),
    slack: dict[str, Any] | None = None,
) -> list[str]:
    """Return the names of the workloads that a lasting loss costs, in the order of their eviction."""
    slack = slack or cluster_queue(SLACK)
    workloads = [Workload.read(item) for item in items]
    quota = quotas([slack, *queues], slack, loss)
    return [w.name for w in victims(workloads, quota, excess(workloads, quota, lowered(slack, loss)))]


NODE = {GPU: Fraction(8)}
THREE_TEAMS = tuple(cluster_queue(f"{team}-cluster-queue") for team in ("blue", "red", "green"))
BORROWING = [workload("b0", gpus=8, since=1), workload("b1", gpus=8, since=2), workload("r0", "red", gpus=8, since=3)]


@pytest.mark.parametrize(
    ("items", "loss", "names"),
    [
        pytest.param(BORROWING, {}, [], id="nothing is lost"),
        pytest.param([], NODE, [], id="nothing runs"),
        pytest.param(BORROWING, NODE, ["b1"], id="the latest of the borrower"),
        pytest.param(BORROWING[::-1], NODE, ["b1"], id="in whatever order they are read"),
        pytest.param(BORROWING[:2], NODE, [], id="idle capacity covers the loss"),
        pytest.param(BORROWING, {GPU: Fraction(1)}, ["b1"], id="workloads are not divided"),
        pytest.param(BORROWING, {GPU: Fraction(24)}, ["b1"], id="never more than the slack quota"),
        pytest.param(BORROWING, {"cpu": Fraction(224)}, [], id="what is lost is not short"),
        pytest.param(BORROWING, {"example.org/other": Fraction(1)}, [], id="no quota is given for it"),
        pytest.param(
            [*BORROWING[:2], workload("r0", "red", gpus=8, since=1, priority=1)], NODE, ["b1"], id="owners stay"
        ),
        pytest.param(
            [workload("b0", gpus=8, priority=1), workload("b1", gpus=8, since=9), BORROWING[2]],
            NODE,
            ["b0"],
            id="lowest priority before latest",
        ),
        pytest.param(
            [workload("b0", gpus=8, priority=None), workload("b1", gpus=8), BORROWING[2]],
            NODE,
            ["b0"],
            id="no priority is zero",
        ),
        pytest.param(
            [*(workload(f"b{i}", gpus=4, since=i) for i in range(4)), BORROWING[2]],
            NODE,
            ["b3", "b2"],
            id="until enough is free",
        ),
        pytest.param(
            [*(workload(f"b{i}", gpus=4, since=i) for i in range(4)), BORROWING[2]],
            {GPU: Fraction(3)},
            ["b3"],
            id="no more than enough",
        ),
        pytest.param(
            [workload("b0", gpus=6), workload("b1", gpus=2, priority=1), workload("b2", gpus=8, since=1), BORROWING[2]],
            NODE,
            ["b2"],
            id="who turns out not to be needed stays",
        ),
        pytest.param(
            [workload("b0", gpus=16), BORROWING[2]], NODE, ["b0"], id="all of a queue where it is one workload"
        ),
        pytest.param(
            [
                workload("b0", gpus=8),
                workload("b1", gpus=4, since=1),
                workload("r0", "red", gpus=8),
                workload("r1", "red", gpus=4, since=2),
            ],
            NODE,
            ["r1", "b1"],
            id="two queues borrow",
        ),
        pytest.param(
            [
                workload("b0", gpus=8),
                workload("b1", gpus=4, since=1),
                workload("r0", "red", gpus=8, priority=1),
                workload("r1", "red", gpus=4, priority=9),
            ],
            {GPU: Fraction(4)},
            ["r0"],
            id="priority decides between queues",
        ),
        pytest.param(
            [
                workload("b0", gpus=4, since=9),
                workload("b1", gpus=6, since=8),
                workload("r0", "red", gpus=8),
                workload("r1", "red", gpus=6),
            ],
            NODE,
            ["b0", "r1"],
            id="a queue that borrows no more keeps the rest",
        ),
        pytest.param(
            [workload("b0", gpus=8), workload("b1", gpus=8, active=False, requeued=True), BORROWING[2]],
            NODE,
            [],
            id="one that is being requeued counts as gone",
        ),
        pytest.param(
            [workload("b0", gpus=8), workload("b1", gpus=8, true=("QuotaReserved", "Evicted")), BORROWING[2]],
            NODE,
            [],
            id="one that Kueue evicts counts as gone",
        ),
        pytest.param(
            [workload("b0", gpus=8), workload("b1", gpus=8, deletionTimestamp="2026-01-01T12:00:00Z"), BORROWING[2]],
            NODE,
            [],
            id="one that is deleted counts as gone",
        ),
        pytest.param(
            [workload("b0", gpus=8), workload("b1", gpus=8, true=("QuotaReserved", "Finished")), BORROWING[2]],
            NODE,
            [],
            id="one that has finished holds nothing",
        ),
        pytest.param(
            [workload("b0", gpus=8), workload("b1", gpus=8, true=()), BORROWING[2]],
            NODE,
            [],
            id="pending holds nothing",
        ),
        pytest.param(
            [*BORROWING, workload("b2", gpus=0, cpus=1, since=9, priority=1)],
            NODE,
            ["b1"],
            id="who uses nothing of it stays",
        ),
        pytest.param(
            [workload("b0", cpus=400), workload("b1", cpus=48, since=1), workload("r0", "red", cpus=200)],
            WHOLE_NODE,
            ["b0"],
            id="cores alone",
        ),
        pytest.param(
            [
                workload("b0", gpus=8, cpus=300),
                workload("b1", gpus=8, cpus=1, since=1),
                workload("r0", "red", gpus=8, cpus=200),
            ],
            WHOLE_NODE,
            ["b0"],
            id="one workload for all that is short",
        ),
        pytest.param(
            [workload("b0", cpus=300), workload("b1", gpus=16, since=1), workload("r0", "red", gpus=8, cpus=200)],
            WHOLE_NODE,
            ["b1", "b0"],
            id="one workload for each that is short",
        ),
        pytest.param(
            [workload("b0", gpus=8, cpus=300), workload("b1", gpus=8, cpus=1), workload("r0", "red", gpus=8, cpus=200)],
            {"cpu": Fraction(224)},
            ["b0"],
            id="only what is lost is taken back",
        ),
        pytest.param(
            [workload("s0", "slack", gpus=8), workload("b0", gpus=8), workload("r0", "red", gpus=8)],
            NODE,
            ["s0"],
            id="the slack queue keeps what is left of it",
        ),
        pytest.param(
            [*BORROWING, workload("x0", "other", gpus=80)], NODE, ["b1"], id="queues that are gone do not count"
        ),
    ],
)
def test_whom_a_lasting_loss_costs(items: list[dict[str, Any]], loss: dict[str, Fraction], names: list[str]) -> None:
    assert evicted(items, loss) == names


def test_the_quota_of_idle_teams_covers_a_loss() -> None:
    assert evicted(BORROWING, NODE, queues=THREE_TEAMS) == []
    assert evicted([*BORROWING, workload("g0", "green", gpus=8)], NODE, queues=THREE_TEAMS) == ["b1"]


def test_queues_of_another_cohort_neither_lend_nor_borrow() -> None:
    queues = (cluster_queue("blue-cluster-queue"), cluster_queue("red-cluster-queue", cohort="other"))
    assert evicted(BORROWING, NODE, queues=queues) == ["b1"]
    assert evicted(BORROWING, NODE, queues=queues, slack=cluster_queue(SLACK, cohort=None)) == []


def test_a_loss_that_takes_nothing_from_the_slack_queue_costs_nobody() -> None:
    """Here a team's quota has been cut below what it uses, which is no lost node."""
    assert evicted(BORROWING, NODE, slack=cluster_queue(SLACK, **{GPU: "0"})) == []


def test_a_teams_own_lending_limit_leaves_it_its_quota() -> None:
    blue, red = cluster_queue("blue-cluster-queue"), cluster_queue("red-cluster-queue")
    red["spec"]["resourceGroups"][0]["flavors"][0]["resources"][2]["lendingLimit"] = "0"
    assert evicted(BORROWING[:2], NODE, queues=(blue, red)) == []
    assert evicted(BORROWING, NODE, queues=(blue, red)) == ["b1"]


def test_pods_that_have_ended_hold_no_quota() -> None:
    item = workload("b0")
    item["status"]["admission"]["podSetAssignments"] = [
        {"name": "a", "count": 4, "flavors": {GPU: FLAVOR}, "resourceUsage": {GPU: "8", "x": "0"}},
        {"name": "b", "count": 1, "flavors": {GPU: FLAVOR}, "resourceUsage": {GPU: 8}},
        {"name": "c", "count": 0, "flavors": {GPU: "other"}, "resourceUsage": {GPU: "1"}},
    ]
    item["status"]["reclaimablePods"] = [{"name": "a", "count": 3}]
    assert Workload.read(item).usage == {(FLAVOR, GPU): 10, ("other", GPU): 1}


@pytest.mark.parametrize(
    ("item", "is_to_return"),
    [
        (workload("w"), False),
        (workload("w", active=False, true=()), False),
        (workload("w", active=False, requeued=True), False),
        (workload("w", active=False, requeued=True, true=("Evicted",)), True),
        (workload("w", active=False, requeued=True, true=("QuotaReserved", "Finished")), True),
        (workload("w", requeued=True), True),
        ({"metadata": {"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "1"}, "spec": {}}, False),
    ],
)
def test_who_is_queued_again(item: dict[str, Any], is_to_return: bool) -> None:
    assert Workload.read(item).is_to_return is is_to_return


@dataclass
class Server:
    """An API server that holds nodes, queues and workloads, and lets itself be watched; and as much of Kueue as helps.

    keeps: workloads whose quota is not released when they become inactive.
    """

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=groups)
    version: int = 1
    patches: Queue[dict[str, Any]] = field(default_factory=Queue)
    workloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    activations: Queue[tuple[str, bool, str | None]] = field(default_factory=Queue)
    keeps: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)
    watchers: list[tuple[str, Queue[dict[str, Any]]]] = field(default_factory=list)
    conflicts: int = 0
    failures: int = 0
    page: int = 0

    def queue(self) -> dict[str, Any]:
        metadata = {"name": SLACK, "resourceVersion": str(self.version)}
        return {"metadata": metadata, "spec": {"cohortName": "default-cohort", "resourceGroups": self.groups}}

    def items(self, path: str) -> list[dict[str, Any]]:
        teams = [cluster_queue(f"{team}-cluster-queue") for team in ("blue", "red")]
        return {
            "/api/v1/nodes": list(self.nodes.values()),
            f"{KUEUE}/clusterqueues": [*teams, self.queue()],
            f"{KUEUE}/workloads": list(self.workloads.values()),
        }[path]

    def emit(self, path: str, kind: str, item: dict[str, Any]) -> None:
        for watched, events in self.watchers:
            if watched == path:
                events.put({"type": kind, "object": item})

    def set_workload(self, item: dict[str, Any]) -> None:
        """Store a workload under a new version; as Kueue does, release the quota of an inactive one."""
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.workloads[item["metadata"]["name"]] = item
        self.emit(f"{KUEUE}/workloads", "MODIFIED", json.loads(json.dumps(item)))
        if not item["spec"]["active"] and item["status"]["conditions"] and not self.keeps:
            self.set_workload({**item, "status": {"conditions": []}})

    def patch_workload(self, name: str, body: dict[str, Any]) -> bool:
        item = self.workloads[name]
        if body["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            return False
        ((annotation, reason),) = body["metadata"]["annotations"].items()
        assert annotation == REQUEUED
        self.activations.put((name, body["spec"]["active"], reason))
        annotations = {} if reason is None else {annotation: reason}
        self.set_workload({**item, "metadata": {**item["metadata"], "annotations": annotations}, "spec": body["spec"]})
        return True

    def set_node(self, item: dict[str, Any]) -> None:
        self.nodes[item["metadata"]["name"]] = item
        self.emit("/api/v1/nodes", "MODIFIED", item)

    def set_groups(self, value: list[dict[str, Any]]) -> None:
        self.groups, self.version = value, self.version + 1
        self.emit(f"{KUEUE}/clusterqueues", "MODIFIED", self.queue())


@pytest.fixture
def server() -> Server:
    return Server(nodes={name: node(name) for name in ("n0", "n1", "n2")})


@pytest.fixture
def controller(
    server: Server, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Controller]:
    """The controller at work on the server."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(slack_controller, "FIRST_PAUSE", 0.01)
    (tmp_path / "token").write_text("token-of-the-account\n")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            assert self.headers["Authorization"] == "Bearer token-of-the-account"
            if server.failures:
                server.failures -= 1
                self.send_error(503)
                return
            if "watch" in query:
                self._stream(url.path)
                return
            items, first = server.items(url.path), int(query.get("continue", ["0"])[0])
            last = first + (server.page or int(query["limit"][0]))
            metadata = {"resourceVersion": str(server.version), "continue": str(last) if last < len(items) else ""}
            self._send({"metadata": metadata, "items": items[first:last]})

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.headers["Content-Type"] == "application/merge-patch+json"
            path = urlsplit(self.path).path
            if path.startswith(f"{KUEUE}/namespaces/blue/workloads/"):
                self._send({}) if server.patch_workload(path.split("/")[-1], body) else self.send_error(409)
                return
            assert path == f"{KUEUE}/clusterqueues/{SLACK}"
            if server.conflicts or body["metadata"]["resourceVersion"] != str(server.version):
                server.conflicts = max(0, server.conflicts - 1)
                self.send_error(409)
                server.set_groups(server.groups)
                return
            server.set_groups(body["spec"]["resourceGroups"])
            server.patches.put(body["spec"])
            self._send(server.queue())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert urlsplit(self.path).path == f"/api/v1/namespaces/{body['metadata']['namespace']}/events"
            server.events.append(body)
            self.send_error(403)

        def _stream(self, path: str) -> None:
            events: Queue[dict[str, Any]] = Queue()
            server.watchers.append((path, events))
            self.send_response(200)
            self.end_headers()
            while (event := events.get())["type"] != "END":
                self.wfile.write(json.dumps(event).encode() + b"\n")

        def _send(self, content: dict[str, Any]) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server uses
            """Keep the tests' output clean."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, daemon=True).start()
    controller = Controller(Api(f"http://127.0.0.1:{http.server_port}", tmp_path), settings)
    threading.Thread(target=controller.run, daemon=True).start()
    yield controller
    http.shutdown()


def limits(server: Server, seconds: float = 5.0) -> dict[str, str | None]:
    """Wait for the next patch and return the limits it sets."""
    (group,) = server.patches.get(timeout=seconds)["resourceGroups"]
    return {entry["name"]: entry.get("lendingLimit") for entry in group["flavors"][0]["resources"]}


def settle(server: Server, controller: Controller) -> None:
    """Wait until the controller has read everything and all its watches stand."""
    end = monotonic() + 5
    while not controller.is_synced or len(server.watchers) < 3:
        assert monotonic() < end, "the controller does not follow nodes, queues and workloads"
        sleep(0.01)


def test_a_lost_node_lowers_the_limits_and_its_return_removes_them(server: Server, controller: Controller) -> None:
    settle(server, controller)
    server.set_node(node("n1", labels={HEALTH: "EVICT"}))
    assert limits(server) == {"cpu": None, "memory": None, GPU: "0", "pods": None}
    server.set_node(node("n1"))
    assert limits(server) == {"cpu": None, "memory": None, GPU: None, "pods": None}


def test_a_limit_that_an_update_wiped_is_set_again(server: Server, controller: Controller) -> None:
    settle(server, controller)
    server.set_node(node("n1", cordoned=True))
    assert limits(server)["cpu"] == "0"
    server.set_groups(groups())
    assert limits(server) == {"cpu": "0", "memory": "0", GPU: "0", "pods": None}


def test_a_conflict_is_tried_again_with_the_new_version(server: Server, controller: Controller) -> None:
    settle(server, controller)
    server.conflicts = 2
    server.set_node(node("n1", labels={HEALTH: "ERR"}))
    assert limits(server)[GPU] == "0"


def test_an_api_server_that_comes_back_is_followed_again(server: Server, controller: Controller) -> None:
    settle(server, controller)
    server.failures = 3
    watchers, server.watchers = server.watchers, []
    server.nodes["n2"] = node("n2", labels={HEALTH: "TESTING"})
    for _, events in watchers:
        events.put({"type": "END", "object": {}})
    assert limits(server)[GPU] == "0"


def test_an_expired_watch_is_started_anew(server: Server, controller: Controller) -> None:
    settle(server, controller)
    server.nodes["n2"] = node("n2", labels={HEALTH: "TESTING"})
    server.emit("/api/v1/nodes", "ERROR", {"code": 410})
    assert limits(server)[GPU] == "0"


def test_healthy_nodes_cause_no_write(server: Server, controller: Controller) -> None:
    settle(server, controller)
    server.set_node(node("n1", labels={HEALTH: "PASS"}))
    with pytest.raises(Empty):
        limits(server, seconds=0.3)


def activation(server: Server, seconds: float = 5.0) -> tuple[str, bool, str | None]:
    """Wait for the next change of a workload's spec.active; return its name, the value and the annotation's."""
    return server.activations.get(timeout=seconds)


def test_a_lasting_loss_requeues_a_borrower_once(server: Server, controller: Controller) -> None:
    settle(server, controller)
    for item in BORROWING:
        server.set_workload(json.loads(json.dumps(item)))
    server.set_node(node("n1", labels={HEALTH: "EVICT"}))
    assert activation(server) == ("b1", False, "lost-capacity")
    assert limits(server)[GPU] == "0"
    assert activation(server) == ("b1", True, None)
    with pytest.raises(Empty):
        activation(server, seconds=0.5)
    assert server.workloads["b1"]["metadata"]["annotations"] == {}
    (event,) = server.events
    assert event["involvedObject"]["name"] == "b1"
    assert event["message"] == (
        "requeued to free 8 nvidia.com/gpu: blue-cluster-queue borrows, and after the loss of nodes"
        " 8 nvidia.com/gpu more is in use than the cohort's quotas cover"
    )


def test_a_blip_moves_the_limit_and_costs_nobody(server: Server, controller: Controller) -> None:
    settle(server, controller)
    for item in BORROWING:
        server.set_workload(json.loads(json.dumps(item)))
    server.set_node(node("n1", taints=["node.kubernetes.io/not-ready"]))
    assert limits(server)[GPU] == "0"
    server.set_node(node("n1"))
    assert limits(server)[GPU] is None
    with pytest.raises(Empty):
        activation(server, seconds=0.5)


def test_a_borrower_that_has_not_let_go_yet_is_neither_asked_twice_nor_joined(
    server: Server, controller: Controller
) -> None:
    settle(server, controller)
    server.keeps = True
    for item in BORROWING:
        server.set_workload(json.loads(json.dumps(item)))
    server.set_node(node("n1", labels={HEALTH: "EVICT"}))
    assert activation(server) == ("b1", False, "lost-capacity")
    with pytest.raises(Empty):
        activation(server, seconds=0.5)
    server.keeps = False
    server.set_workload(server.workloads["b1"])
    assert activation(server) == ("b1", True, None)


def test_what_an_earlier_controller_began_is_finished(server: Server, controller: Controller) -> None:
    """Without a loss, and without its queue."""
    settle(server, controller)
    server.set_workload(workload("b1", active=False, true=()))
    server.set_workload(workload("b2", active=False, requeued=True, true=("Evicted",)))
    assert activation(server) == ("b2", True, None)
    with pytest.raises(Empty):
        activation(server, seconds=0.3)


def test_long_lists_are_read_in_pages(server: Server, controller: Controller) -> None:
    settle(server, controller)
    server.page = 1
    server.nodes["n2"] = node("n2", labels={HEALTH: "TESTING"})
    server.emit("/api/v1/nodes", "ERROR", {"code": 410})
    assert limits(server)[GPU] == "0"


def test_probes_are_answered(server: Server, controller: Controller) -> None:
    settle(server, controller)
    health = slack_controller.serve_health(controller, 0)
    base = f"http://127.0.0.1:{health.server_port}"
    assert urlopen(f"{base}/healthz", timeout=5).status == 200
    assert urlopen(f"{base}/readyz", timeout=5).status == 200
    health.shutdown()


def test_a_controller_that_has_read_nothing_is_alive_but_not_ready(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = slack_controller.serve_health(Controller(Api("http://127.0.0.1:1", tmp_path), settings), 0)
    base = f"http://127.0.0.1:{server.server_port}"
    assert urlopen(f"{base}/healthz", timeout=5).status == 200
    with pytest.raises(URLError, match="503"):
        urlopen(f"{base}/readyz", timeout=5)
    server.shutdown()
