"""`make lock` writes each entry's digest beside its address, once; those of images into their references."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from email.message import Message
from pathlib import Path
from types import ModuleType
from urllib.error import HTTPError, URLError
from urllib.request import Request

import pytest

from components import artifacts, catalogue, lock, registries
from components.artifacts import Mirror
from components.azure import catalogue as azure
from components.catalogue import Chart
from components.openstack import catalogue as openstack
from tests.unit.test_artifacts import ENTRY

SOURCE = """ARTIFACTS = (
    Artifact(
        name="tool",
        url="https://example.org/tool/install.yaml",
        images={},
    ),
    Artifact(
        name="other",
        url="https://example.org/other/install.yaml",
        sha256="00",
    ),
)
"""


def test_a_digest_is_added_beside_its_address_only() -> None:
    changed = lock.locked(SOURCE, ENTRY.url, "ab12")
    assert '        url="https://example.org/tool/install.yaml",\n        sha256="ab12",\n        images={},' in changed
    assert changed.count("sha256") == 2


def test_a_recorded_digest_is_replaced() -> None:
    changed = lock.locked(SOURCE, "https://example.org/other/install.yaml", "ff")
    assert '        sha256="ff",\n' in changed
    assert changed.count("sha256") == 1


def test_an_address_without_an_entry_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 entries of the catalogue have the address"):
        lock.locked(SOURCE, "https://example.org/absent.yaml", "ff")


@pytest.mark.parametrize("module", [catalogue, azure, openstack], ids=lambda module: module.__name__)
def test_every_entry_of_a_catalogue_can_be_locked_and_reads_so_afterwards(module: ModuleType) -> None:
    source = before = Path(str(module.__file__)).read_text()
    for artifact in module.ARTIFACTS:
        source = lock.locked(source, artifact.url, "ab" * 32)
    for chart in module.CHARTS:
        archive = None if chart.repository.startswith("oci://") else f"https://example.org/{chart.file}"
        source = lock.locked_chart(source, chart, archive, "cd" * 32)
    images = list(dict.fromkeys(lock.images(module)))
    for image in images:
        source = lock.locked_image(source, image, DIGEST)
    read: dict[str, object] = {"__name__": module.__name__}
    exec(compile(source, "catalogue", "exec"), read)  # noqa: S102 - the project's own file
    again = ModuleType("again")
    vars(again).update(read)
    assert {artifact.sha256 for artifact in again.ARTIFACTS} <= {"ab" * 32}
    assert {chart.sha256 for chart in again.CHARTS} <= {"cd" * 32}
    assert all(image.endswith(f"@{DIGEST}") for image in lock.images(again))
    assert source.count(DIGEST) >= len(images) > 0
    for chart in again.CHARTS:
        source = lock.locked_chart(source, chart, chart.archive, "ef" * 32)
    assert source.count("cd" * 32) == 0
    assert "ef" * 32 not in before


def test_what_upstream_does_not_serve_stays_as_it_is_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "catalogue.py"
    copy.write_text(Path(str(catalogue.__file__)).read_text())
    module = ModuleType("copy")
    vars(module).update({**vars(catalogue), "__file__": str(copy)})

    def refuse(request: object, timeout: float) -> io.BytesIO:
        raise URLError("no route to host")

    monkeypatch.setattr(artifacts, "urlopen", refuse)
    monkeypatch.setattr(registries, "urlopen", refuse)
    failed = lock.lock(module)
    said = capsys.readouterr().err
    assert (
        failed
        == len(said.splitlines())
        == len(catalogue.ARTIFACTS)
        + len(catalogue.DASHBOARDS)
        + len(catalogue.CHARTS)
        + len(dict.fromkeys(lock.images(catalogue)))
    )
    assert f"not locked: {catalogue.PYTHON.reference}: " in said
    assert copy.read_text() == Path(str(catalogue.__file__)).read_text()


def test_the_image_of_many_nodes_systems_gets_no_digest() -> None:
    assert not any("doca-driver" in image for image in lock.images(catalogue))
    assert any("sriov-network-device-plugin" in image for image in lock.images(catalogue))


CHART = Chart(name="tool", version="1.2.3", repository="https://example.org/charts", registries={}, source="")


def test_the_archive_is_the_one_that_the_index_names_for_the_version() -> None:
    index = b"""
entries:
  tool:
    - {version: 1.2.4, urls: [https://example.org/tool-1.2.4.tgz]}
    - {version: 1.2.3, urls: [v1/tool-1.2.3.tgz]}
"""
    assert lock.archive_of(index, CHART) == "https://example.org/charts/v1/tool-1.2.3.tgz"
    with pytest.raises(ValueError, match=r"lists no tool 9\.9\.9"):
        lock.archive_of(index, replace(CHART, version="9.9.9"))
    with pytest.raises(ValueError, match="which is not https"):
        lock.archive_of(b"entries: {tool: [{version: 1.2.3, urls: ['http://example.org/t.tgz']}]}", CHART)


DIGEST = f"sha256:{'12' * 32}"


class Registry:
    """A registry as it answers `urlopen`: manifests by address, for whoever has asked for a token first."""

    def __init__(self, manifests: Mapping[str, bytes]) -> None:
        self._manifests = manifests
        self.asked: list[str] = []

    def __call__(self, request: Request, timeout: float) -> io.BytesIO:
        self.asked.append(request.full_url)
        if request.full_url.startswith("https://sign.in/"):
            return io.BytesIO(b'{"token": "anybody"}')
        if request.get_header("Authorization") != "Bearer anybody":
            headers = Message()
            headers["WWW-Authenticate"] = 'Bearer realm="https://sign.in/t",service="r",scope="repository:a/b:pull"'
            raise HTTPError(request.full_url, 401, "Unauthorized", headers, None)
        if request.full_url not in self._manifests:
            raise HTTPError(request.full_url, 404, "Not Found", Message(), None)
        assert "application/vnd.oci.image.index.v1+json" in str(request.get_header("Accept"))
        return io.BytesIO(self._manifests[request.full_url])


def test_an_image_is_asked_for_as_by_anybody_and_its_digest_is_that_of_all_platforms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = Registry({"https://registry-1.docker.io/v2/library/python/manifests/3.12": b"index"})
    monkeypatch.setattr(registries, "urlopen", registry)
    digest = registries.image_digest(f"docker.io/library/python:3.12@{DIGEST}")
    assert digest == f"sha256:{hashlib.sha256(b'index').hexdigest()}"
    assert registry.asked[1] == "https://sign.in/t?service=r&scope=repository%3Aa%2Fb%3Apull"
    with pytest.raises(registries.RegistryError, match=r"registry\.example\.org/a/b:1 cannot be asked for: .*404"):
        registries.image_digest("registry.example.org/a/b:1")


def test_the_digest_of_a_chart_of_an_oci_registry_is_that_of_its_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": DIGEST}
    other = {"mediaType": "application/vnd.cncf.helm.chart.provenance.v1.prov", "digest": "sha256:00"}
    manifest = json.dumps({"layers": [other, layer]}).encode()
    at = "https://registry.example.org/v2/charts/tool/manifests"
    monkeypatch.setattr(registries, "urlopen", Registry({f"{at}/1.2.3_a": manifest, f"{at}/2": b'{"layers": []}'}))
    assert registries.chart_digest("oci://registry.example.org/charts", "tool", "1.2.3+a") == "12" * 32
    with pytest.raises(registries.RegistryError, match="is no chart"):
        registries.chart_digest("oci://registry.example.org/charts", "tool", "2")


def test_a_mirror_of_rendered_files_need_not_have_the_published_digests(tmp_path: Path) -> None:
    (tmp_path / ENTRY.file).write_text("kind: Tool\n")
    other = replace(ENTRY, sha256=hashlib.sha256(b"kind: Other\n").hexdigest())
    assert Mirror(artifacts=str(tmp_path), verify=False).read(other) == "kind: Tool\n"
