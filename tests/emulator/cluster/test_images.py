"""Which images the local kubelet runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from emulator.cluster.errors import UnknownImageError
from emulator.cluster.images import repository, resolve


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    program = tmp_path / "kueue"
    program.write_text("")
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("registry.k8s.io/kueue/kueue:v0.15.2", "kueue/kueue"),
        ("mirror.example:5000/upstream/kueue/kueue@sha256:00", "upstream/kueue/kueue"),
        ("localhost/kueue/kueue:v1@sha256:00", "kueue/kueue"),
        ("python:3.12-slim", "library/python"),
        ("quay.io/ibm/appwrapper", "ibm/appwrapper"),
    ],
)
def test_repository(reference: str, expected: str) -> None:
    assert repository(reference) == expected


@pytest.mark.parametrize("reference", ["registry.k8s.io/kueue/kueue:v0.15.2", "mirror.example:5000/a/kueue/kueue:x"])
def test_a_known_controller_is_its_binary(binaries: Path, reference: str) -> None:
    image = resolve(reference, binaries)
    assert image.files == {"/manager": str(binaries / "kueue")}
    assert image.entrypoint == ("/manager",)


@pytest.mark.parametrize("reference", ["python", "docker.io/library/python:3.11", "python:3"])
def test_python_is_this_interpreter(binaries: Path, reference: str) -> None:
    image = resolve(reference, binaries)
    folder = image.path.partition(":")[0]
    assert Path(image.links[f"{folder}/python3"]).resolve() == Path(sys.executable).resolve()
    assert f"{folder}/python" in image.links


@pytest.mark.parametrize("reference", ["nginx", "evil/kueue", "registry.k8s.io/pause:3.10"])
def test_unknown_images_list_what_can_run(binaries: Path, reference: str) -> None:
    with pytest.raises(
        UnknownImageError, match=f"cannot pull {reference}: it runs kueue/kueue, ibm/appwrapper, library/"
    ):
        resolve(reference, binaries)


def test_a_binary_that_is_not_built_is_named(binaries: Path) -> None:
    with pytest.raises(UnknownImageError, match=f"no {binaries}/appwrapper"):
        resolve("quay.io/ibm/appwrapper:v1.1.2", binaries)
