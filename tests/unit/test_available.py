"""What the nightly check of images, files and charts finds, with registries on this machine."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.request import Request, urlopen

import pytest

from components import artifacts, available, catalogue, lock, registries
from components.azure import catalogue as azure
from components.openstack import catalogue as openstack
from tests.unit.servers import POLL
from tests.unit.test_artifacts import ENTRY
from tests.unit.test_lock import CHART, DIGEST

SERVED = {
    "registry-1.docker.io/v2/library/mysql/manifests/8.0",
    f"quay.io/v2/a/b/manifests/{DIGEST}",
    "example.org/tool/install.yaml",
    "example.org/charts/index.yaml",
    "example.org/maintained/index.yaml",
    "example.org/charts/tool-1.2.3.tgz",
}
BUSY = "ghcr.io/v2/a/busy/manifests/1"
PAGE = "maintained"
"""Part of the address of what answers with a page of HTML."""


class Upstream(BaseHTTPRequestHandler):
    """Docker Hub and Quay, which give everyone a token, and hide what they do not have behind 401."""

    asked: list[tuple[str, str]]

    def do_GET(self) -> None:
        self.do_HEAD()
        if self.path.startswith("/sign.in/"):
            self.wfile.write(b"<html>" if PAGE in self.path else b'{"token": "anybody"}')
        elif self.path.endswith(f"/{PAGE}/index.yaml"):
            self.wfile.write(b"\n<!DOCTYPE html>")
        elif self.path.endswith("/index.yaml"):
            self.wfile.write(b"entries: {tool: [{version: 1.2.3, urls: [tool-1.2.3.tgz]}]}")

    def do_HEAD(self) -> None:
        name = self.path.removeprefix("/").partition("?")[0]
        self.asked.append((self.command, name))
        anonymous = "/v2/" in name and self.headers.get("Authorization") != "Bearer anybody"
        code = 401 if anonymous else 200 if name in SERVED or name.startswith("sign.in/") else 404
        code = 429 if name == BUSY else 401 if code == 404 and "/v2/" in name else code
        self.send_response(code)
        self.send_header(
            "WWW-Authenticate", 'Bearer realm="https://sign.in/token",service="registry"' + f',scope="{name}"'
        )
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print no log."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    """The requests that upstream gets, all of whose hosts are one server here."""
    handler: Any = type("Handler", (Upstream,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=POLL, daemon=True).start()

    def here(request: Request | str, timeout: float) -> Any:
        request = Request(request) if isinstance(request, str) else request
        path = request.full_url.removeprefix("https://")
        local = f"http://127.0.0.1:{server.server_port}/{path}"
        return urlopen(Request(local, headers=dict(request.headers), method=request.get_method()), timeout=timeout)

    for module in (registries, artifacts, available):
        monkeypatch.setattr(module, "urlopen", here)
    yield handler.asked
    server.shutdown()
    server.server_close()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A catalogue with one thing of each kind that is there, and one that is not."""
    monkeypatch.chdir(tmp_path)
    images = ["mysql:8.0", f"quay.io/a/b:v1@{DIGEST}", "docker.io/minio/minio:1"]
    entries = (ENTRY, replace(ENTRY, url="https://example.org/absent.yaml"))
    charts = (replace(CHART, archive=None), replace(CHART, version="9.9.9"))
    made = ModuleType("small")
    vars(made).update(
        __file__=str(tmp_path / "catalogue.py"),
        ARTIFACTS=tuple(replace(entry, images={}) for entry in entries),
        CHARTS=charts,
        IMAGES={name: catalogue.Image(reference=name, source="") for name in images},
    )
    urls = [entry.url for entry in entries]
    (tmp_path / "catalogue.yaml").write_text("\n".join(["# first", *images, *urls, CHART.repository]))
    return made


def test_what_upstream_no_longer_serves_is_named_with_its_place(
    module: ModuleType, asked: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert available.report([*available.wanted(module)]) == 1
    said = capsys.readouterr()
    found = [line.partition("): ")[0] for line in said.out.splitlines()]
    assert found == [
        "- `docker.io/minio/minio:1` (catalogue.yaml:4",
        "- `https://example.org/absent.yaml` (catalogue.yaml:6",
        f"- `{CHART.repository}, tool 9.9.9` (catalogue.yaml:7",
    ]
    assert said.err == "7 requests, 3 missing, 0 without an answer\n"
    assert {method for method, name in asked if "/manifests/" in name} == {"HEAD"}, "Docker Hub counts other requests"


def test_a_registry_that_is_busy_has_not_lost_the_image(
    asked: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    entry = ("ghcr.io/a/busy:1", "here", lambda: registries.require("ghcr.io/a/busy:1"))
    assert available.report([entry]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("no answer: ghcr.io/a/busy:1: ")


@pytest.mark.parametrize(
    "request_it",
    [
        lambda: registries.require(f"ghcr.io/a/{PAGE}:1"),
        lambda: available._chart(replace(CHART, archive=None, repository=f"https://example.org/{PAGE}")),
    ],
)
def test_a_page_of_html_is_no_answer(request_it: Callable[[], object], asked: list[tuple[str, str]]) -> None:
    assert available.report([("x", "here", request_it)]) == 2


def test_every_image_of_the_catalogues_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    entries = [entry for module in (catalogue, azure, openstack) for entry in available.wanted(module)]
    places = {name: place for name, place, _ in entries}
    assert {*lock.images(catalogue)} <= places.keys()
    assert places[openstack.KIND_RELEASES[0].node_images[0]].startswith("components/openstack/catalogue.yaml:")
    assert [name for name, place in places.items() if place.endswith(":1")] == []
