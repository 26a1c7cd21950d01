"""The slack controller: it writes its decisions to the API server that it watches, and exits if a part of it fails."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
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
from components.kubernetes.node_pool import NodePool
from components.kubernetes.placement import NodeGroup
from components.nodes.machines import H100_SXM5
from components.tenancy import slack_controller
from components.tenancy.lending import DECLARED
from components.tenancy.slack import SlackControllerArgs, program
from components.tenancy.slack_controller import Controller, Settings, kept_up, serve
from tests.unit.servers import POLL
from tests.unit.test_lending import FLAVOR, GPU, HEALTH, POOL, QUOTA, SLACK, node

NODES, QUEUES = "/api/v1/nodes", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
HOLD = 1.6
TEAMS = ("blue-cluster-queue", "red-cluster-queue")


@pytest.fixture
def settings() -> Settings:
    """The settings that the component mounts."""
    pool = NodePool(count=3, shape=H100_SXM5.shape(), nodes=NodeGroup(node_selector=POOL))
    args = SlackControllerArgs(queue=SLACK, teams=TEAMS, image="python", pools=[pool])
    return replace(Settings.load(program(args).data()["settings.json"]), health_seconds=HOLD)


def cluster_queue(name: str, **annotations: str) -> dict[str, Any]:
    entries = [{"name": resource, "nominalQuota": value} for resource, value in QUOTA.items()]
    groups = [{"coveredResources": list(QUOTA), "flavors": [{"name": FLAVOR, "resources": entries}]}]
    return {
        "metadata": {"name": name, "annotations": annotations or None},
        "spec": {"cohort": "default-cohort", "resourceGroups": groups},
        "status": None,
    }


@dataclass
class Server:
    """An API server with nodes and queues that lets itself be watched.

    forbidden: queues that may not be patched. failures: answers to come that are errors. page: objects in a page.
    """

    objects: dict[str, dict[str, dict[str, Any]]]
    version: int = 1
    patches: Queue[tuple[str, str | None]] = field(default_factory=Queue)
    watchers: list[tuple[str, str, Queue[dict[str, Any]]]] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    conflicts: int = 0
    failures: int = 0
    page: int = 0
    forbidden: set[str] = field(default_factory=set)

    def put(self, path: str, item: dict[str, Any]) -> None:
        """Store an object under a new version and tell the watchers."""
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path][item["metadata"]["name"]] = item
        self.emit(path, "MODIFIED", json.loads(json.dumps(item)))

    def set_node(self, name: str, item: dict[str, Any]) -> None:
        self.put(NODES, {**item, "metadata": {**item["metadata"], "name": name}})

    def delete_node(self, name: str) -> None:
        self.version += 1
        item = self.objects[NODES].pop(name)
        item["metadata"]["resourceVersion"] = str(self.version)
        self.emit(NODES, "DELETED", item)

    def emit(self, path: str, kind: str, item: dict[str, Any]) -> None:
        for watched, _, events in self.watchers:
            if watched == path:
                events.put({"type": kind, "object": item})

    def end_watches(self) -> None:
        watchers, self.watchers = self.watchers, []
        for _, _, events in watchers:
            events.put({"type": "END", "object": {}})

    def limit(self, queue: str = SLACK) -> str | None:
        (group,) = self.objects[QUEUES][queue]["spec"]["resourceGroups"]
        entry = next(entry for entry in group["flavors"][0]["resources"] if entry["name"] == GPU)
        return str(entry["lendingLimit"]) if "lendingLimit" in entry else None


@pytest.fixture
def server() -> Server:
    server = Server(objects={NODES: {}, QUEUES: {}})
    for name in (SLACK, *TEAMS):
        server.put(QUEUES, cluster_queue(name))
    for name in ("n0", "n1", "n2"):
        server.set_node(name, node())
    return server


@pytest.fixture
def api(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """The server at an address."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(slack_controller, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(slack_controller, "SETTLE", 0.01)
    (tmp_path / "token").write_text("token-of-the-account\n")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            assert self.headers["Authorization"] == "Bearer token-of-the-account"
            if server.failures:
                server.failures -= 1
                self.send_error(503)
            elif "watch" in query:
                assert query["allowWatchBookmarks"] == ["true"]
                self._stream(url.path, query["resourceVersion"][0])
            else:
                server.lists.append(url.path)
                items, first = list(server.objects[url.path].values()), int(query.get("continue", ["0"])[0])
                last = first + (server.page or int(query["limit"][0]))
                metadata = {"resourceVersion": str(server.version), "continue": str(last) if last < len(items) else ""}
                self._send({"metadata": metadata, "items": items[first:last]})

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.headers["Content-Type"] == "application/merge-patch+json"
            path, _, name = urlsplit(self.path).path.rpartition("/")
            found = server.objects[path][name]
            if name in server.forbidden:
                self.send_error(403)
            elif server.conflicts or body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
                server.conflicts = max(0, server.conflicts - 1)
                self.send_error(409)
                server.put(path, found)
            else:
                server.put(path, {**found, "spec": {**found["spec"], **body["spec"]}})
                server.patches.put((name, server.limit(name)))
                self._send({})

        def _stream(self, path: str, version: str) -> None:
            events: Queue[dict[str, Any]] = Queue()
            server.watchers.append((path, version, events))
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
    threading.Thread(target=http.serve_forever, args=POLL, daemon=True).start()
    yield Api(f"http://127.0.0.1:{http.server_port}", tmp_path)
    http.shutdown()


@pytest.fixture
def controller(api: Api, server: Server, settings: Settings) -> Controller:
    """The controller at work on the server, which has read everything and whose watches stand."""
    controller = Controller(api, settings)
    threading.Thread(target=controller.run, daemon=True).start()
    end = monotonic() + 30
    while not controller.is_synced or len(server.watchers) < 2:
        assert monotonic() < end, "the controller does not follow nodes and queues"
        sleep(0.01)
    return controller


def written(server: Server, seconds: float = 30.0) -> tuple[str, str | None]:
    """Wait for the next patch; return the queue and its limit of GPUs."""
    return server.patches.get(timeout=seconds)


def nothing_is_written(server: Server, seconds: float) -> None:
    with pytest.raises(Empty):
        written(server, seconds)


@pytest.mark.usefixtures("controller")
class TestAtWork:
    def test_a_lost_node_lowers_the_limit_at_once_and_its_health_gives_it_back_later(self, server: Server) -> None:
        server.set_node("n1", node(labels={HEALTH: "EVICT"}))
        assert written(server) == (SLACK, "0")
        server.set_node("n1", node())
        nothing_is_written(server, HOLD / 2)
        assert written(server) == (SLACK, None)

    def test_a_node_that_comes_and_goes_moves_the_limit_once(self, server: Server) -> None:
        for _ in range(3):
            server.set_node("n1", node(cordoned=True))
            sleep(HOLD / 16)
            server.set_node("n1", node())
            sleep(HOLD / 16)
        assert written(server) == (SLACK, "0")
        assert written(server) == (SLACK, None)
        nothing_is_written(server, HOLD)

    def test_a_deleted_node_is_lost_and_a_new_one_counts_at_once(self, server: Server) -> None:
        server.delete_node("n2")
        assert written(server) == (SLACK, "0")
        server.set_node("n3", node())
        assert written(server, HOLD / 2) == (SLACK, None)

    def test_beyond_the_slack_teams_lend_less_and_then_what_they_declare(self, server: Server) -> None:
        server.put(QUEUES, cluster_queue(TEAMS[0], **{DECLARED: json.dumps({GPU: "6"})}))
        assert written(server) == (TEAMS[0], "6")
        server.set_node("n1", node(cordoned=True))
        assert written(server) == (SLACK, "0")
        server.delete_node("n2")
        assert {written(server), written(server)} == {(TEAMS[0], "3"), (TEAMS[1], "5")}
        server.set_node("n2", node())
        server.set_node("n1", node())
        end = monotonic() + 30
        while [server.limit(name) for name in (SLACK, *TEAMS)] != [None, "6", None]:
            assert monotonic() < end
            sleep(0.05)

    def test_a_limit_that_an_update_wiped_is_set_again(self, server: Server) -> None:
        server.set_node("n1", node(cordoned=True))
        assert written(server) == (SLACK, "0")
        server.put(QUEUES, cluster_queue(SLACK))
        assert written(server) == (SLACK, "0")

    def test_a_conflict_is_tried_again_with_the_new_version(self, server: Server) -> None:
        server.conflicts = 2
        server.set_node("n1", node(labels={HEALTH: "ERR"}))
        assert written(server) == (SLACK, "0")

    def test_a_queue_that_cannot_be_written_holds_up_no_other(self, server: Server) -> None:
        server.forbidden = {SLACK, TEAMS[0]}
        server.delete_node("n1")
        server.delete_node("n2")
        assert written(server) == (TEAMS[1], "4")

    def test_healthy_nodes_cause_no_write(self, server: Server) -> None:
        server.set_node("n1", node(labels={HEALTH: "PASS"}))
        nothing_is_written(server, 0.3)

    def test_a_null_status_is_a_lost_node_and_no_dead_thread(self, server: Server) -> None:
        server.set_node("n1", {"metadata": {"labels": POOL}, "spec": None, "status": None})
        assert written(server) == (SLACK, "0")
        server.set_node("n1", node())
        assert written(server) == (SLACK, None)


@pytest.mark.usefixtures("controller")
class TestWatching:
    def test_an_ended_watch_goes_on_where_it_was(self, server: Server) -> None:
        lists = list(server.lists)
        server.set_node("n1", node(labels={HEALTH: "PASS"}))
        server.emit(NODES, "BOOKMARK", {"metadata": {"resourceVersion": "77"}})
        sleep(0.1)
        server.end_watches()
        end = monotonic() + 30
        while len(server.watchers) < 2:
            assert monotonic() < end
            sleep(0.01)
        assert server.lists == lists, "everything was read anew"
        assert {version for path, version, _ in server.watchers if path == NODES} == {"77"}

    def test_an_expired_watch_is_started_anew(self, server: Server) -> None:
        del server.objects[NODES]["n1"]
        server.page = 1
        server.emit(NODES, "ERROR", {"code": 410})
        assert written(server) == (SLACK, "0")

    def test_an_api_server_that_comes_back_is_followed_again(self, server: Server) -> None:
        server.failures = 3
        server.end_watches()
        end = monotonic() + 30
        while len(server.watchers) < 2:
            assert monotonic() < end
            sleep(0.01)
        server.set_node("n1", node(labels={HEALTH: "TESTING"}))
        assert written(server) == (SLACK, "0")


def here(stand_in: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is the stand-in in this thread alone: workers of other tests may not have ended yet."""
    thread = threading.get_ident()

    def called(*values: Any) -> Any:
        return stand_in(*values) if threading.get_ident() == thread else real(*values)

    return called


class TestGivingUp:
    def test_a_worker_that_keeps_failing_ends_the_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(slack_controller, "PATIENCE", 0.2)
        monkeypatch.setattr(slack_controller, "FIRST_PAUSE", 0.01)
        over = threading.Event()

        def work() -> None:
            raise AttributeError("'NoneType' object has no attribute 'get'")

        threading.Thread(target=kept_up, args=("nodes", work, over), daemon=True).start()
        assert over.wait(30)

    def test_one_that_fails_now_and_then_does_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(slack_controller, "PATIENCE", 0.2)
        monkeypatch.setattr(slack_controller, "FIRST_PAUSE", 0.01)
        over, rounds = threading.Event(), iter(range(10**6))

        def work() -> None:
            sleep(0.01)
            if next(rounds) % 2:
                raise OSError("reset")

        threading.Thread(target=kept_up, args=("nodes", work, over), daemon=True).start()
        assert not over.wait(0.8)
        over.set()

    def test_an_api_server_that_is_gone_for_good_ends_the_run(
        self, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setattr(slack_controller, "PATIENCE", 0.2)
        (tmp_path / "token").write_text("token")
        Controller(Api("http://127.0.0.1:1", tmp_path), settings).run()

    def test_it_tries_again_after_pauses_that_grow_until_patience_ends(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        now, pauses, over = 1000.0, list[float](), threading.Event()

        def sleeps(seconds: float) -> None:
            nonlocal now
            now += seconds
            pauses.append(seconds)

        def work() -> None:
            raise OSError("reset")

        monkeypatch.setattr(slack_controller.time, "monotonic", here(lambda: now, monotonic))
        monkeypatch.setattr(slack_controller.time, "sleep", here(sleeps, sleep))
        kept_up("nodes", work, over)
        assert over.is_set()
        assert pauses[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
        assert 120 < sum(pauses) <= 125
        said = [record.message for record in caplog.records if record.thread == threading.get_ident()]
        assert said[:2] == [
            "nodes failed: OSError('reset'); again in 0.1 s",
            "nodes failed: OSError('reset'); again in 0.2 s",
        ]
        assert said[-1] == f"nodes has failed for {sum(pauses):.0f} s: OSError('reset'); giving up"

    def test_a_watch_that_stood_for_long_has_done_its_work(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now, pauses, over = 1000.0, list[float](), threading.Event()

        def sleeps(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 5:
                over.set()

        def work() -> None:
            nonlocal now
            now += 121
            raise OSError("reset")

        monkeypatch.setattr(slack_controller.time, "monotonic", here(lambda: now, monotonic))
        monkeypatch.setattr(slack_controller.time, "sleep", here(sleeps, sleep))
        kept_up("nodes", work, over)
        assert pauses == [0.1] * 5

    def test_the_process_ends_so_that_it_is_started_anew(
        self, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        served: list[tuple[Controller, int]] = []
        workers: list[str] = []
        (tmp_path / "settings.json").write_text("{}")
        monkeypatch.setattr(Settings, "load", lambda text: settings)
        monkeypatch.setattr(Api, "in_cluster", lambda: None)
        monkeypatch.setattr(slack_controller, "serve", lambda *given: served.append(given))
        monkeypatch.setattr(Controller, "run", lambda self, others: workers.extend(others))
        with pytest.raises(SystemExit) as ended:
            slack_controller.main(str(tmp_path / "settings.json"))
        assert ended.value.code == 1
        assert [port for _, port in served] == [settings.port]
        assert workers == ["ending jobs", "quota"]


def answer(server: ThreadingHTTPServer, path: str) -> str:
    return str(urlopen(f"http://127.0.0.1:{server.server_port}{path}", timeout=5).read().decode())


def metrics(http: ThreadingHTTPServer, awaited: str) -> str:
    """Return the metrics as soon as this is among them: the controller notes a limit when its write was answered."""
    end = monotonic() + 30
    while awaited not in (text := answer(http, "/metrics")) and monotonic() < end:
        sleep(0.01)
    return text


def test_probes_and_metrics_are_answered(server: Server, controller: Controller) -> None:
    http = serve(controller, 0)
    assert answer(http, "/healthz") == "ok\n"
    assert answer(http, "/readyz") == ""
    server.set_node("n1", node(cordoned=True))
    assert written(server) == (SLACK, "0")
    text = metrics(http, "mlbatch_slack_last_reconcile_timestamp_seconds 1")
    assert f'mlbatch_usable{{flavor="{FLAVOR}",resource="{GPU}"}} 16\n' in text
    assert f'mlbatch_lending_limit{{queue="{SLACK}",flavor="{FLAVOR}",resource="{GPU}"}} 0\n' in text
    assert f'mlbatch_quota{{queue="{SLACK}",flavor="{FLAVOR}",resource="{GPU}"}} 8\n' in text
    assert 'mlbatch_node_unusable{node="n1",reason="cordoned"} 1\n' in text
    assert f'mlbatch_node_lost{{node="n1",reason="cordoned",resource="{GPU}"}} 8\n' in text
    assert 'node="n0"' not in text
    assert "mlbatch_slack_last_reconcile_timestamp_seconds 1" in text
    http.shutdown()


def test_a_node_with_a_gpu_less_has_lost_that_one(server: Server, controller: Controller) -> None:
    http = serve(controller, 0)
    server.set_node("n1", node(allocatable={GPU: "7"}))
    assert written(server) == (SLACK, "7")
    lost = f'mlbatch_node_lost{{node="n1",reason="fewer GPUs",resource="{GPU}"}} 1\n'
    assert lost in metrics(http, lost)
    http.shutdown()


def test_a_controller_that_has_read_nothing_is_alive_but_not_ready(settings: Settings, tmp_path: Path) -> None:
    http = serve(Controller(Api("http://127.0.0.1:1", tmp_path), settings), 0)
    assert answer(http, "/healthz") == "ok\n"
    with pytest.raises(URLError, match="503"):
        answer(http, "/readyz")
    http.shutdown()


def test_a_worker_that_does_not_come_round_is_told_by_the_liveness_probe(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = serve(controller, 0)
    monkeypatch.setattr(slack_controller.time, "monotonic", lambda: monotonic() + 10_000)
    with pytest.raises(URLError, match="503"):
        answer(http, "/healthz")
    http.shutdown()
