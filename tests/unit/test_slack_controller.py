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

from components.tenancy import slack_controller
from components.tenancy.slack import SlackControllerArgs, _files
from components.tenancy.slack_controller import Api, Controller, Settings, amount, desired, lost, quantity

GPU = "nvidia.com/gpu"
HEALTH = "autopilot.ibm.com/gpuhealth"
CAPACITY = {"cpu": "224", "memory": "2113411288Ki", GPU: "8", "pods": "250"}
WHOLE_NODE = {"cpu": Fraction(224), "memory": Fraction(2113411288 * 1024), GPU: Fraction(8)}


@pytest.fixture(scope="module")
def settings() -> Settings:
    """The settings that the component mounts."""
    files = _files(SlackControllerArgs(queue="slack-cluster-queue", image="python"))
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
    return [{"coveredResources": list(nominal), "flavors": [{"name": "default-flavor", "resources": resources}]}]


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


@dataclass
class Server:
    """An API server that holds nodes and one queue, and lets itself be watched."""

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=groups)
    version: int = 1
    patches: Queue[dict[str, Any]] = field(default_factory=Queue)
    watchers: list[tuple[str, Queue[dict[str, Any]]]] = field(default_factory=list)
    conflicts: int = 0
    failures: int = 0
    fields: list[str] = field(default_factory=list)

    def queue(self) -> dict[str, Any]:
        metadata = {"name": "slack-cluster-queue", "resourceVersion": str(self.version)}
        return {"metadata": metadata, "spec": {"resourceGroups": self.groups}}

    def emit(self, path: str, kind: str, item: dict[str, Any]) -> None:
        for watched, events in self.watchers:
            if watched == path:
                events.put({"type": kind, "object": item})

    def set_node(self, item: dict[str, Any]) -> None:
        self.nodes[item["metadata"]["name"]] = item
        self.emit("/api/v1/nodes", "MODIFIED", item)

    def set_groups(self, value: list[dict[str, Any]]) -> None:
        self.groups, self.version = value, self.version + 1
        self.emit("/apis/kueue.x-k8s.io/v1beta2/clusterqueues", "MODIFIED", self.queue())


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
            server.fields += query.get("fieldSelector", [])
            if "watch" in query:
                self._stream(url.path)
                return
            items = list(server.nodes.values()) if url.path == "/api/v1/nodes" else [server.queue()]
            self._send({"metadata": {"resourceVersion": str(server.version)}, "items": items})

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.headers["Content-Type"] == "application/merge-patch+json"
            assert urlsplit(self.path).path.endswith("/clusterqueues/slack-cluster-queue")
            if server.conflicts or body["metadata"]["resourceVersion"] != str(server.version):
                server.conflicts = max(0, server.conflicts - 1)
                self.send_error(409)
                server.set_groups(server.groups)
                return
            server.set_groups(body["spec"]["resourceGroups"])
            server.patches.put(body["spec"])
            self._send(server.queue())

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
    """Wait until the controller has read everything and both its watches stand."""
    end = monotonic() + 5
    while not controller.is_synced or len(server.watchers) < 2:
        assert monotonic() < end, "the controller does not follow nodes and queue"
        sleep(0.01)


def test_a_lost_node_lowers_the_limits_and_its_return_removes_them(server: Server, controller: Controller) -> None:
    settle(server, controller)
    server.set_node(node("n1", labels={HEALTH: "EVICT"}))
    assert limits(server) == {"cpu": None, "memory": None, GPU: "0", "pods": None}
    server.set_node(node("n1"))
    assert limits(server) == {"cpu": None, "memory": None, GPU: None, "pods": None}
    assert set(server.fields) == {"metadata.name=slack-cluster-queue"}, "the account may list this queue alone"


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
