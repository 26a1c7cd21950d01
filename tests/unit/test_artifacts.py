"""The catalogue pins everything, and its bytes come from where the site says."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components import artifacts, catalogue
from components.artifacts import ArtifactError, Mirror
from components.catalogue import Artifact
from components.images import Reference

ROOT = Path(__file__).resolve().parents[2]
ENTRY = Artifact(
    name="tool",
    version="v1.0.0",
    url="https://example.org/tool/install.yaml",
    images={"manager": "registry.example.org/team/tool:v1.0.0"},
    source="https://example.org",
)


def test_each_entry_is_pinned_and_its_address_is_the_release_or_the_tag_of_its_version() -> None:
    for entry in catalogue.ARTIFACTS:
        assert re.fullmatch(r"v\d+\.\d+\.\d+", entry.version)
        released = rf"https://github\.com/[^/]+/[^/]+/releases/download/{re.escape(entry.version)}/.+"
        tagged = rf"https://raw\.githubusercontent\.com/[^/]+/[^/]+/{re.escape(entry.version)}/.+"
        assert re.fullmatch(f"{released}|{tagged}", entry.url)
        assert entry.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
        assert entry.source.startswith("https://")
        # The training operator's images are tagged by the commit that they are made of.
        tags = {Reference.parse(image).tag for image in entry.images.values()}
        assert all(tag == entry.version or re.fullmatch(r"v1-[0-9a-f]{7}", tag or "") for tag in tags)


def test_each_image_has_a_registry_a_path_and_a_tag_that_does_not_move() -> None:
    images = [catalogue.PYTHON.reference, catalogue.BUSYBOX.reference]
    images += [image for entry in catalogue.ARTIFACTS for image in entry.images.values()]
    for image in images:
        pinned = r"[a-z0-9.-]+\.[a-z]+/[a-z0-9/._-]+:(v?\d+\.\d+\.\d+[a-z0-9.-]*|v1-[0-9a-f]{7})(@sha256:[0-9a-f]{64})?"
        assert re.fullmatch(pinned, image), image


def test_no_version_stands_outside_of_the_catalogue() -> None:
    """A version, or an image with a tag, in any other module or in the stack files would not be found by an update.

    The table of versions that go together names many, and installs none.
    """
    pattern = re.compile(r"""["':/@]v?\d+\.\d+\.\d+["'/-]|[a-z]:v?\d+\.\d+|:latest""")
    assert all(pattern.search(f'x = "{text}"') for text in ("v0.15.2", "python:3.12", "a/v1.2.3/b.yaml", "x:latest"))
    folders = [ROOT / "components", ROOT / "stacks"]
    files = [file for folder in folders for kind in ("py", "yaml") for file in folder.rglob(f"*.{kind}")]
    files += [ROOT / "__main__.py", *ROOT.glob("Pulumi*.yaml")]
    assert len(files) > 20
    catalogues = {file for file in files if file.name == "catalogue.yaml" or file.stem == "compatibility"}
    assert len(catalogues) == 7
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        if file not in catalogues
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_without_a_mirror_upstream_is_asked() -> None:
    assert Mirror().locate(ENTRY) == ENTRY.url
    assert Mirror().image("registry.example.org/team/tool:v1") == "registry.example.org/team/tool:v1"


def test_a_mirror_takes_the_place_of_host_and_address() -> None:
    mirror = Mirror(artifacts="https://mirror.example.org/files", images="mirror.example.org/images")
    assert mirror.locate(ENTRY) == "https://mirror.example.org/files/tool-v1.0.0.yaml"
    assert mirror.image("registry.k8s.io/kueue/kueue:v1") == "mirror.example.org/images/kueue/kueue:v1"


def test_a_folder_gives_the_file_and_the_images(tmp_path: Path) -> None:
    (tmp_path / "tool-v1.0.0.yaml").write_text("kind: Tool\n")
    release = Mirror(artifacts=str(tmp_path), images="mirror.example.org").release(ENTRY)
    assert release.manifest == "kind: Tool\n"
    assert release.images == {"manager": "mirror.example.org/team/tool:v1.0.0"}


def test_a_file_that_a_folder_lacks_is_named_with_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError) as error:
        Mirror(artifacts=str(tmp_path)).read(ENTRY)
    assert str(tmp_path / "tool-v1.0.0.yaml") in str(error.value)
    assert ENTRY.url in str(error.value)


def test_a_recorded_digest_is_checked(tmp_path: Path) -> None:
    (tmp_path / "tool-v1.0.0.yaml").write_text("kind: Tool\n")
    mirror = Mirror(artifacts=str(tmp_path))
    right = replace(ENTRY, sha256=hashlib.sha256(b"kind: Tool\n").hexdigest())
    assert mirror.read(right) == "kind: Tool\n"
    with pytest.raises(ArtifactError, match=r"is not tool v1\.0\.0: its sha256 is"):
        mirror.read(replace(ENTRY, sha256="0" * 64))


def test_a_server_that_cannot_be_reached_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str, timeout: float) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(artifacts, "urlopen", refuse)
    with pytest.raises(
        ArtifactError, match=r"cannot be fetched from https://example\.org/tool/install\.yaml: timed out"
    ) as error:
        Mirror().read(ENTRY)
    assert "set mlbatch:mirror.artifacts to a folder that holds tool-v1.0.0.yaml" in str(error.value)


def test_a_digest_of_an_image_goes_wherever_its_reference_goes(tmp_path: Path) -> None:
    digest = f"sha256:{'ab' * 32}"
    pinned = replace(ENTRY, images={"manager": f"registry.example.org/team/tool:v1.0.0@{digest}"})
    (tmp_path / "tool-v1.0.0.yaml").write_text("kind: Tool\n")
    mirror = Mirror(artifacts=str(tmp_path), images="mirror.example.org:5000/m")
    assert mirror.release(pinned).images == {"manager": f"mirror.example.org:5000/m/team/tool:v1.0.0@{digest}"}
    check = catalogue.Image(reference=f"registry.example.org:5000/check:1.2@{digest}", source="https://example.org")
    assert check.tag == "1.2"
    assert check.with_tag("1.2") == check.reference
    assert check.with_tag("1.3") == "registry.example.org:5000/check:1.3"
    assert check.with_tag(f"1.3@{digest}") == f"registry.example.org:5000/check:1.3@{digest}"


@pytest.mark.parametrize(
    ("find", "asked", "said"),
    [
        (catalogue.find, ("kueue", "v9"), "kueue v9 is not in the catalogue"),
        (catalogue.find_chart, ("gpu-operator", "v9"), "gpu-operator v9 is not in the catalogue"),
        (catalogue.find_chart, ("no-operator",), "no-operator is not in the catalogue"),
    ],
)
def test_what_the_catalogue_does_not_have_is_an_error(find: Any, asked: tuple[str, ...], said: str) -> None:
    with pytest.raises(KeyError) as error:
        find(*asked)
    assert error.value.args == (said,)
