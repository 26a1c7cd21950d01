"""Jobs whose objects come back: their quota is freed when they have no pods, and not before."""

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from components.kubernetes.in_cluster import Api, Json
from components.kubernetes.program_job import RESOURCES
from components.kubernetes.quantity import Quantity
from components.tenancy import ending_jobs
from components.tenancy.ending_jobs import PATIENCE, EndingJobs
from tests.unit.servers import Handler, serving

BEGAN = "2026-11-28T09:00:00Z"
JOB = "/apis/workload.codeflare.dev/v1beta2/namespaces/blue/appwrappers/greedy/status"


def wrapper(began: str = BEGAN, **conditions: str) -> Json:
    """Return an AppWrapper that deletes its objects, with changed conditions."""
    found = {"QuotaReserved": "True", "ResourcesDeployed": "True", "DeletingResources": "True", **conditions}
    return {
        "metadata": {"namespace": "blue", "name": "greedy", "resourceVersion": "7"},
        "status": {
            "conditions": [
                {"type": name, "status": status, "reason": "x", "message": "", "lastTransitionTime": began}
                for name, status in found.items()
            ]
        },
    }


@dataclass
class Server:
    """An API server. items: what a list has. pods: of the job. patches: what is written."""

    items: list[Json] = field(default_factory=list)
    pods: list[Json] = field(default_factory=list)
    patches: list[tuple[str, Json]] = field(default_factory=list)

    def get(self, path: str, **query: str) -> Json:
        assert path == "/apis/workload.codeflare.dev/v1beta2/appwrappers"
        return {"metadata": {"resourceVersion": "7"}, "items": self.items}

    def watch(self, path: str, version: str, **query: str) -> Iterator[tuple[str, Json]]:
        return iter(())

    def metadata(self, path: str, **query: str) -> Json:
        assert path == "/api/v1/namespaces/blue/pods"
        assert query["labelSelector"] == "workload.codeflare.dev/appwrapper=greedy"
        return {"items": self.pods}

    def patch(self, path: str, body: Json) -> Json:
        self.patches.append((path, body))
        return {}


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(ending_jobs.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(ending_jobs.time, "sleep", clock.sleep)
    return clock


def looks(server: Server, *, again: Json | None = None) -> Server:
    """Return the server after more than PATIENCE. again: the job at half of the time."""
    signs: list[str] = []
    api: Any = server
    jobs = EndingJobs(api, lambda worker, seconds: signs.append(worker))
    jobs.follow()
    for look in range(4):
        jobs.free()
        if look == 1 and again is not None:
            server.items = [again]
            jobs._jobs._version = ""
            jobs.follow()
    assert {*signs} == {"ending jobs", "quota"}
    return server


def test_a_job_without_pods_that_cannot_delete_its_objects_loses_its_quota() -> None:
    written = looks(Server(items=[wrapper()])).patches
    path, body = written[0]
    assert path == JOB
    assert body["metadata"] == {"resourceVersion": "7"}, "a later change is not overwritten"
    states = {each["type"]: (each["status"], each["reason"]) for each in body["status"]["conditions"]}
    assert states == {
        "QuotaReserved": ("True", "x"),
        "ResourcesDeployed": ("False", "ObjectsCameBack"),
        "DeletingResources": ("False", "ObjectsCameBack"),
    }


@pytest.mark.parametrize(
    "server",
    [
        Server(items=[wrapper()], pods=[{"metadata": {"name": "greedy-0"}}]),
        Server(items=[wrapper(DeletingResources="False")]),
        Server(items=[wrapper(ResourcesDeployed="False")]),
        Server(items=[{"metadata": wrapper()["metadata"]}]),
    ],
    ids=["has pods", "runs", "has ended", "is new"],
)
def test_another_job_keeps_its_quota(server: Server) -> None:
    assert looks(server).patches == []


def test_appwrapper_gets_time_to_delete(clock: Clock) -> None:
    server = Server(items=[wrapper()])
    api: Any = server
    jobs = EndingJobs(api, lambda worker, seconds: None)
    jobs.follow()
    while clock.now < PATIENCE - ending_jobs.BEAT:
        jobs.free()
    assert server.patches == []
    assert looks(Server(items=[wrapper()]), again=wrapper("2026-11-28T09:00:40Z")).patches == [], "it began again"


def test_the_largest_appwrappers_of_a_cluster_fit_into_the_controllers_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server stores objects of up to 1.5 MiB. Python needs four bytes for each character of this text."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "token").write_text("token")
    large = wrapper() | {"spec": {"a": "\U0001f600" + "x" * 1_500_000}}
    item = json.dumps(large, ensure_ascii=False).encode()

    class Page(Handler):
        def respond(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            first = int(query.get("continue", ["0"])[0])
            self.send_response(200)
            self.end_headers()
            if "watch" in query:
                return
            last = first + int(query["limit"][0])
            rest = {"resourceVersion": "7", **({"continue": str(last)} if last < 50 else {})}
            self.wfile.write(b'{"metadata":' + json.dumps(rest).encode() + b',"items":[')
            for number in range(first, last):
                self.wfile.write(b"," * (number > first))
                self.wfile.write(item)
            self.wfile.write(b"]}")

    with serving(Page) as port:
        jobs = EndingJobs(Api(f"http://127.0.0.1:{port}", tmp_path), lambda worker, seconds: None)
        tracemalloc.start()
        jobs.follow()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert list(jobs._jobs.objects) == ["blue/greedy"]
    interpreter = 30 << 20
    assert Quantity.parse(interpreter + peak) < Quantity.parse(RESOURCES.memory_limit)
