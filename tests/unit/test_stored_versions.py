"""Kueue's objects are rewritten in the version that its definitions store, and do not change otherwise."""

import json
import threading
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from components.kubernetes.in_cluster import Api
from components.queueing.stored_versions import DEFINITIONS, PAGE, migrate
from tests.unit.servers import POLL

GROUP = "kueue.x-k8s.io"
KINDS = ("workloads", "resourceflavors", "cohorts", "topologies")


def definition(plural: str, stored: list[str], group: str = GROUP) -> dict[str, Any]:
    versions = [{"name": "v1beta1", "storage": False}, {"name": "v1beta2", "storage": True}]
    return {
        "metadata": {"name": f"{plural}.{group}", "resourceVersion": "7"},
        "spec": {"group": group, "names": {"plural": plural}, "versions": versions},
        "status": {"storedVersions": stored},
    }


class Server:
    """An API server with definitions and objects. Answers lists in pages, and records patches."""

    def __init__(self, definitions: list[dict[str, Any]], objects: dict[str, list[dict[str, Any]]]) -> None:
        self.definitions, self.objects = definitions, objects
        self.patched: list[tuple[str, Any]] = []
        self.answers: dict[str, int] = {}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                if path.startswith(DEFINITIONS):
                    name = path.rpartition("/")[2]
                    return self.answer(
                        200, next(item for item in owner.definitions if item["metadata"]["name"] == name)
                    )
                assert "as=PartialObjectMetadataList" in self.headers["Accept"]
                plural = path.rpartition("/")[2]
                assert not any(plural in written for written, _ in owner.patched), "a page after a write"
                start = int(query.partition("continue=")[2] or 0)
                found = owner.objects.get(path, [])
                rest = {"continue": str(start + PAGE)} if start + PAGE < len(found) else {}
                return self.answer(200, {"items": found[start : start + PAGE] or None, "metadata": rest})

            def do_PATCH(self) -> None:
                path = self.path.partition("?")[0]
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if path in owner.answers:
                    return self.answer(owner.answers[path], {"message": "no label"})
                owner.patched.append((path, body))
                return self.answer(200, {})

            def answer(self, status: int, content: dict[str, Any]) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server uses
                """Print no log."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=POLL, daemon=True).start()


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("t")
    return tmp_path


@pytest.fixture
def server() -> Iterator[Server]:
    older = [
        definition("workloads", ["v1beta1", "v1beta2"]),
        definition("resourceflavors", ["v1beta1"]),
        definition("cohorts", ["v1beta2"]),
        definition("topologies", ["v1beta1", "v1beta2"]),
    ]
    jobs = [{"metadata": {"name": f"job-{number}", "namespace": "blue"}} for number in range(2 * PAGE + 1)]
    objects = {
        f"/apis/{GROUP}/v1beta2/workloads": jobs,
        f"/apis/{GROUP}/v1beta2/resourceflavors": [{"metadata": {"name": "default-flavor"}}],
        f"/apis/{GROUP}/v1beta2/cohorts": [{"metadata": {"name": "lab"}}],
    }
    found = Server(older, objects)
    yield found
    found.http.shutdown()


def api(server: Server, account: Path) -> Api:
    return Api(f"http://127.0.0.1:{server.http.server_port}", account)


def test_each_object_of_an_older_version_is_written_once_and_the_definition_forgets_it(
    server: Server, account: Path
) -> None:
    assert migrate(api(server, account), GROUP, KINDS) == 0
    status = {"metadata": {"resourceVersion": "7"}, "status": {"storedVersions": ["v1beta2"]}}
    assert server.patched == [
        *((f"/apis/{GROUP}/v1beta2/namespaces/blue/workloads/job-{number}", {}) for number in range(2 * PAGE + 1)),
        (f"{DEFINITIONS}/workloads.{GROUP}/status", status),
        (f"/apis/{GROUP}/v1beta2/resourceflavors/default-flavor", {}),
        (f"{DEFINITIONS}/resourceflavors.{GROUP}/status", status),
        (f"{DEFINITIONS}/topologies.{GROUP}/status", status),
    ]


def test_an_object_that_is_gone_by_then_is_passed_over(server: Server, account: Path) -> None:
    server.answers = {f"/apis/{GROUP}/v1beta2/namespaces/blue/workloads/job-3": 404}
    assert migrate(api(server, account), GROUP, KINDS) == 0
    assert len(server.patched) == 2 * PAGE + 4


def test_an_object_that_kueue_no_longer_accepts_is_named_and_holds_up_no_other(
    server: Server, account: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"/apis/{GROUP}/v1beta2/namespaces/blue/workloads/job-3"
    server.answers = {path: 422}
    assert migrate(api(server, account), GROUP, KINDS) == 1
    assert f"{path} is not accepted as it is" in caplog.text
    written = [path for path, _ in server.patched]
    assert f"/apis/{GROUP}/v1beta2/resourceflavors/default-flavor" in written
    forgotten = [f"{DEFINITIONS}/{kind}.{GROUP}/status" for kind in ("resourceflavors", "topologies")]
    assert [path for path in written if path.endswith("/status")] == forgotten


def test_a_definition_keeps_an_older_version_while_an_object_could_not_be_written(
    server: Server, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Api, path: str, body: Any, **query: str) -> Any:
        raise HTTPError(path, 500, "no webhook", Message(), None)

    monkeypatch.setattr(Api, "patch", refuse)
    with pytest.raises(HTTPError):
        migrate(api(server, account), GROUP, KINDS)
    assert server.patched == []
