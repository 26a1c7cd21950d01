"""Programs in pods: the mounted program runs from any path, and uses the API server as the pod's account."""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.in_cluster import Api
from components.kubernetes.programs import API_CLIENT, ENVIRONMENT, FILES_FOLDER, Program
from components.tenancy import slack
from tests.unit.servers import serving

REPORT = {"check": "node-check", "output": "none", "exitCode": "none", "kind": "nhc", "write": True}
REPORT |= {"expected": [], "notApplicable": "NHCNA"}
PROGRAMS = {
    "slack-controller": (
        slack.program(slack.SlackControllerArgs(queue="slack-cluster-queue", teams=[], image="python", pools=[])),
        ["settings.json"],
    ),
    "node-report": (
        Program(
            module="components.health.node_report",
            shared=[API_CLIENT],
            files={"report.json": json.dumps(REPORT)},
        ),
        ["report.json", "report"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_files_that_are_mounted_run_by_the_pods_command(name: str, tmp_path: Path) -> None:
    program, arguments = PROGRAMS[name]
    data = program.data()
    for item in program.volume("files").source["configMap"]["items"]:
        file = tmp_path / item["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(data.pop(item["key"]))
    assert data == {}, "every file is mounted"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("KUBERNETES_")}
    own = {entry["name"]: entry["value"].replace(FILES_FOLDER, str(tmp_path)) for entry in ENVIRONMENT}
    command = [sys.executable, *program.command(*arguments)[1:]]
    done = subprocess.run(
        command, cwd=tmp_path, env={**environment, **own, "NODE_NAME": "gpu-0"}, capture_output=True, timeout=30
    )
    assert b"KeyError: 'KUBERNETES_SERVICE_HOST'" in done.stderr


@pytest.mark.parametrize(
    "module",
    [
        "components.health.node_report",
        "components.olm.installer",
        "components.tenancy.slack_controller",
        "components.workloads.mpi_index",
    ],
)
def test_each_program_takes_the_file_that_it_is_told(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `python -m`: the whole of it is the pod's command."""
    file = tmp_path / "settings.json"
    file.write_text("not json")
    monkeypatch.setenv("NODE_NAME", "gpu-0")
    monkeypatch.setattr(sys, "argv", [module, str(file), "report"])
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(json.JSONDecodeError) as error:
        runpy.run_module(module, run_name="__main__")
    assert error.value.doc == "not json"


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("components.azure.agents.hyperv_labels", []),
        ("components.nodes.agents.nvme_scratch", ["/pv-disks/scratch", "ext4", "Microsoft NVMe.*"]),
    ],
)
def test_each_program_of_the_nodes_asks_for_its_own(
    module: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(KeyError, match="KUBERNETES_SERVICE_HOST"):
        runpy.run_module(module, run_name="__main__")


def test_another_text_or_another_module_restarts_the_pods() -> None:
    def digest(files: dict[str, str], *shared: str) -> str:
        program = Program(module="components.workloads.mpi_index", shared=shared, files=files)
        return program.checksum()["mlbatch/config-sha256"]

    assert len({digest({}), digest({"a": "1"}), digest({"a": "2"}), digest({}, API_CLIENT)}) == 4
    assert digest({"a": "1", "b": "2"}) == digest({"b": "2", "a": "1"})


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[tuple[Api, list[tuple[str, str, dict[str, str], Any]]]]:
    """An API server that answers everything with its path, and records the requests."""
    requests: list[tuple[str, str, dict[str, str], Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            requests.append((self.command, self.path, dict(self.headers), body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"path": self.path}).encode())

        do_GET = do_PATCH = do_POST = do_DELETE = answer  # noqa: N815 - the names http.server calls

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server uses
            """Keep requests out of the tests' output."""

    (tmp_path / "token").write_text("correct-horse-battery\n")
    with serving(Handler) as port:
        yield Api(f"http://127.0.0.1:{port}", tmp_path), requests


def test_every_request_is_made_as_the_pods_account(asked: Any) -> None:
    api, requests = asked
    assert api.get("/api/v1/nodes", limit="500") == {"path": "/api/v1/nodes?limit=500"}
    api.patch("/api/v1/nodes/a", {"metadata": {}}, fieldManager="me")
    api.create("/api/v1/events", {"reason": "Test"})
    api.delete("/api/v1/pods/a")
    assert {headers["Authorization"] for _, _, headers, _ in requests} == {"Bearer correct-horse-battery"}
    assert [(method, path, headers.get("Content-Type"), body) for method, path, headers, body in requests[1:]] == [
        ("PATCH", "/api/v1/nodes/a?fieldManager=me", "application/merge-patch+json", {"metadata": {}}),
        ("POST", "/api/v1/events?", "application/json", {"reason": "Test"}),
        ("DELETE", "/api/v1/pods/a?", None, None),
    ]


@pytest.mark.parametrize(("host", "address"), [("10.0.0.1", "10.0.0.1"), ("fd00::1", "[fd00::1]")])
def test_the_clusters_address_may_be_of_either_kind(
    host: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    built: list[str] = []
    monkeypatch.setattr(Api, "__init__", lambda self, base, *_: built.append(base))
    Api.in_cluster(tmp_path)
    assert built == [f"https://{address}:443"]
