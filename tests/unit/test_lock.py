"""`make lock` writes each entry's digest beside its address, once; those of images into their references."""

import hashlib
import io
import json
import runpy
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
from components.tables import Table
from tests.unit.test_artifacts import ENTRY


def test_what_has_no_digest_is_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["lock", "--list", "components.catalogue"])
    assert lock.main() == 0
    count, *listed = capsys.readouterr().out.splitlines()
    assert "  none: kueue v0.19.2" in listed
    assert "  none: training-operator v1.9.4" not in listed
    known = lock.digests(catalogue)
    assert count.startswith(f"Digests: {len(known) - len(listed)} of {len(known)} files, charts and images")


SOURCE = """# A comment stays.
artifacts:
  - name: tool
    url: https://example.org/tool/install.yaml
    images: {}
  # The other one.
  - name: other
    url: https://example.org/other/install.yaml
    sha256: "00"
"""


def test_a_digest_is_added_beside_its_address_only() -> None:
    changed = lock.locked(SOURCE, ENTRY.url, "ab12")
    assert '    url: https://example.org/tool/install.yaml\n    sha256: "ab12"\n    images: {}\n' in changed
    assert changed.replace('    sha256: "ab12"\n', "") == SOURCE


def test_a_recorded_digest_is_replaced() -> None:
    changed = lock.locked(SOURCE, "https://example.org/other/install.yaml", "ff")
    assert changed == SOURCE.replace('"00"', '"ff"')


def test_an_address_without_an_entry_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 entries of the catalogue have the address"):
        lock.locked(SOURCE, "https://example.org/absent.yaml", "ff")


@pytest.mark.parametrize("module", [catalogue, azure, openstack], ids=lambda module: module.__name__)
def test_every_entry_of_a_catalogue_can_be_locked_and_reads_so_afterwards(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = before = Path(str(module.__file__)).with_suffix(".yaml").read_text()
    for artifact in module.ARTIFACTS:
        source = lock.locked(source, artifact.url, "ab" * 32)
    for chart in module.CHARTS:
        archive = None if chart.repository.startswith("oci://") else f"https://example.org/{chart.file}"
        source = lock.locked_chart(source, chart, archive, "cd" * 32)
    images = list(dict.fromkeys(lock.images(module)))
    for image in images:
        source = lock.locked_image(source, image, DIGEST)
    monkeypatch.setattr(Table, "load", classmethod(lambda cls, name: cls.parse(source)))
    again = ModuleType("again")
    vars(again).update(runpy.run_path(str(module.__file__), run_name=module.__name__))
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
    original = Path(str(catalogue.__file__)).with_suffix(".yaml")
    copy = tmp_path / original.name
    copy.write_text(original.read_text())
    module = ModuleType("copy")
    vars(module).update({**vars(catalogue), "__file__": str(copy.with_suffix(".py"))})

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
    assert copy.read_text() == original.read_text()


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
    """A registry as it answers `urlopen`: manifests by address, for clients that requested a token first."""

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


@pytest.mark.parametrize(
    ("challenge", "said"),
    [
        ("", "the registry wants to be signed in to by something it does not say"),
        ('Basic realm="r"', 'the registry wants to be signed in to by Basic realm="r"'),
        ('Bearer realm="http://sign.in/t"', 'the registry wants to be signed in to by Bearer realm="http://sign.in/t"'),
        ('Digest realm="https://sign.in/t"', 'the registry wants to be signed in to by Digest realm="https://sign.in'),
    ],
)
def test_a_registry_that_lets_in_by_no_token_is_told(
    challenge: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: Request, timeout: float) -> io.BytesIO:
        headers = Message()
        if challenge:
            headers["WWW-Authenticate"] = challenge
        raise HTTPError(request.full_url, 401, "Unauthorized", headers, None)

    monkeypatch.setattr(registries, "urlopen", refuse)
    with pytest.raises(registries.RegistryError) as error:
        registries.image_digest("registry.example.org/a/b:1")
    assert f"cannot be asked for: {said}" in str(error.value)


def test_a_registry_has_half_a_minute_and_may_call_its_token_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, float]] = []

    def answer(request: Request, timeout: float) -> io.BytesIO:
        asked.append((request.full_url, timeout))
        if "sign.in" in request.full_url:
            return io.BytesIO(b'{"access_token": "anybody"}')
        if request.get_header("Authorization") != "Bearer anybody":
            headers = Message()
            headers["WWW-Authenticate"] = 'Bearer realm="https://sign.in/t"'
            raise HTTPError(request.full_url, 401, "Unauthorized", headers, None)
        return io.BytesIO(b"index")

    monkeypatch.setattr(registries, "urlopen", answer)
    assert registries.image_digest("quay.io/a/b") == f"sha256:{hashlib.sha256(b'index').hexdigest()}"
    manifest = "https://quay.io/v2/a/b/manifests/latest"
    assert asked == [(manifest, 30), ("https://sign.in/t?", 30), (manifest, 30)]


def test_the_whole_of_a_catalogue_is_asked_for_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One file, a chart of each kind of repository, and an image. The second run does not change them."""
    own, oci = (
        replace(CHART, archive=None),
        replace(CHART, name="other", repository="oci://registry.example.org/charts"),
    )
    source = (
        SOURCE
        + f'  - name: {own.name}\n    version: "{own.version}"\n    repository: {own.repository}\n'
        + f"  - name: {oci.name}\n    version: {oci.version}\n    repository: {oci.repository}\n"
        + "image: docker.io/library/busybox:1.37\n"
    )
    module = ModuleType("small")
    vars(module).update(
        __file__=str(tmp_path / "catalogue.py"),
        ARTIFACTS=(replace(ENTRY, images={}),),
        CHARTS=(own, oci),
        IMAGES={"busybox": catalogue.Image(reference="docker.io/library/busybox:1.37", source="")},
    )
    (tmp_path / "catalogue.yaml").write_text(source)
    index = b"entries: {tool: [{version: 1.2.3, urls: [https://example.org/tool-1.2.3.tgz]}]}"
    monkeypatch.setattr(lock.Mirror, "fetch", lambda self, artifact: b"file")
    monkeypatch.setattr(lock, "fetch", lambda url, chart: index if url.endswith("/index.yaml") else b"archive")
    monkeypatch.setattr(registries, "chart_digest", lambda *asked: "34" * 32 if asked[1:] == ("other", "1.2.3") else "")
    monkeypatch.setattr(registries, "image_digest", lambda reference: DIGEST)
    assert lock.lock(module) == 0
    file, archive = (hashlib.sha256(content).hexdigest() for content in (b"file", b"archive"))
    assert capsys.readouterr().out.splitlines() == [
        f"{ENTRY.name} {ENTRY.version}: {file}",
        f"tool 1.2.3: {archive}",
        f"other 1.2.3: {'34' * 32}",
        f"docker.io/library/busybox:1.37: {DIGEST}",
    ]
    written = (tmp_path / "catalogue.yaml").read_text()
    assert f'url: {ENTRY.url}\n    sha256: "{file}"\n' in written
    located = "archive: https://example.org/tool-1.2.3.tgz\n    "
    assert f'version: "1.2.3"\n    repository: {own.repository}\n    {located}sha256: "{archive}"\n' in written
    assert f'repository: {oci.repository}\n    sha256: "{"34" * 32}"\n' in written
    assert f"image: docker.io/library/busybox:1.37@{DIGEST}\n" in written
    assert written.startswith("# A comment stays.\n")


@pytest.mark.parametrize(("failed", "code"), [([0, 0], 0), ([0, 2], 1)])
def test_the_command_fails_where_a_catalogue_is_not_whole(
    failed: list[int], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(lock, "lock", lambda module: asked.append(module) or failed[len(asked) - 1])
    monkeypatch.setattr(lock.sys, "argv", ["lock", catalogue.__name__, azure.__name__])
    assert lock.main() == code
    assert asked == [catalogue, azure]


def test_a_mirror_of_rendered_files_need_not_have_the_published_digests(tmp_path: Path) -> None:
    (tmp_path / ENTRY.file).write_text("kind: Tool\n")
    other = replace(ENTRY, sha256=hashlib.sha256(b"kind: Other\n").hexdigest())
    assert Mirror(artifacts=str(tmp_path), verify=False).read(other) == "kind: Tool\n"
