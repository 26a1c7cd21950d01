"""Images that the local kubelet can run."""

import sys
from pathlib import Path

import pytest

from emulator.cluster.errors import UnknownImageError
from emulator.cluster.images import known, makes_pods_of_jobs, repository, resolve


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    program = tmp_path / "kueue"
    program.write_text("")
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("registry.k8s.io/kueue/kueue:v0.19.2", "kueue/kueue"),
        ("mirror.example:5000/upstream/kueue/kueue@sha256:00", "upstream/kueue/kueue"),
        ("localhost/kueue/kueue:v1@sha256:00", "kueue/kueue"),
        ("python:3.12-slim", "library/python"),
        ("quay.io/ibm/appwrapper", "ibm/appwrapper"),
    ],
)
def test_repository(reference: str, expected: str) -> None:
    assert repository(reference) == expected


@pytest.mark.parametrize("reference", ["registry.k8s.io/kueue/kueue:v0.19.2", "mirror.example:5000/a/kueue/kueue:x"])
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
def test_an_unknown_image_has_no_binary(binaries: Path, reference: str) -> None:
    assert not known(reference)
    with pytest.raises(UnknownImageError, match=f"this machine has no program for the image {reference}"):
        resolve(reference, binaries)


@pytest.mark.parametrize(
    "reference",
    [
        "quay.io/ibm/appwrapper:v1.2.2",
        "mirror.example.org/x/kueue/kueue:v1",
        "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.34.7",
        "registry.k8s.io/scheduler-plugins/controller:v0.34.7",
        "quay.io/kuberay/operator:v1.5.1",
        "ghcr.io/kubeflow/training-v1/training-operator:v1-d6eb98e",
        "python",
    ],
)
def test_an_image_is_known_whether_or_not_its_binary_is_built(reference: str) -> None:
    assert known(reference)


def test_a_binary_that_is_not_built_is_named(binaries: Path) -> None:
    with pytest.raises(UnknownImageError, match=f"no {binaries}/appwrapper"):
        resolve("quay.io/ibm/appwrapper:v1.2.2", binaries)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("quay.io/kuberay/operator:v1.5.1", True),
        ("ghcr.io/kubeflow/training-v1/training-operator:v1-d6eb98e", True),
        ("registry.redhat.io/rhoai/odh-kuberay-operator-controller-rhel8@sha256:00", True),
        ("registry.k8s.io/kueue/kueue:v0.19.2", False),
        ("docker.io/library/busybox:1.37.0", False),
    ],
)
def test_operators_that_make_pods_of_jobs_are_known(reference: str, expected: bool) -> None:
    assert makes_pods_of_jobs(reference) is expected
