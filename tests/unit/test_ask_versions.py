"""The versions of the cluster's controllers in the replica, and when the replica cannot answer."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ask import content
from ask.source import Source
from ask.versions import VersionError, differences
from cli.app import main
from components import catalogue
from emulator.controllers import MODULES, built
from emulator.toolchain import OPENDATAHUB_KUEUE, pinned_version

KUEUE = "registry.k8s.io/kueue/kueue:"
BUILT = pinned_version(*MODULES["kueue"])
RED_HAT = "registry.redhat.io/rhoai/odh-{}-rhel8@sha256:" + 64 * "0"
OF_OPENSHIFT_AI = [RED_HAT.format("kueue-controller"), RED_HAT.format("codeflare-operator")]


def cluster(*images: str, operators: tuple[str, ...] = ()) -> Source:
    """A cluster whose controllers have these images, and Deployments of these ClusterServiceVersions."""
    names = [f"c{number}" for number in range(len(images))]
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "queues"} for name in names]
    deployments: list[dict[str, Any]] = [
        {
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "queues"},
            "spec": {"template": {"spec": {"serviceAccountName": name, "containers": [{"name": "m", "image": image}]}}},
        }
        for name, image in zip(names, images, strict=True)
    ]
    for name in operators:
        owners = [{"kind": "ClusterServiceVersion", "name": name}]
        metadata = {"name": name, "namespace": "redhat-ods-operator", "ownerReferences": owners}
        pod = {
            "serviceAccountName": "operator",
            "containers": [{"name": "m", "image": "registry.redhat.io/any@sha256:0"}],
        }
        deployments.append({"kind": "Deployment", "metadata": metadata, "spec": {"template": {"spec": pod}}})
    return Source({"Deployment": deployments, "ClusterRoleBinding": [{"subjects": subjects}]})


def test_a_version_that_is_built_here_is_not_spoken_of() -> None:
    assert differences(cluster(f"{KUEUE}{BUILT}", "quay.io/ibm/appwrapper:v1.2.2")) == []


def test_a_version_that_is_not_built_here_is_named() -> None:
    patch = BUILT.rpartition(".")[0] + ".99"
    (line,) = differences(cluster(f"{KUEUE}{patch}", f"{KUEUE}{patch}"))
    assert line == f"kueue {patch} runs here as {BUILT}"
    (line,) = differences(cluster("registry.k8s.io/scheduler-plugins/kube-scheduler:v0.31.8"))
    assert line == "scheduler-plugins v0.31.8 runs here as v0.34.7"


@pytest.mark.parametrize("image", ["mirror.example.org/kueue/kueue@sha256:" + 64 * "0", f"{KUEUE}main"])
def test_an_image_that_names_no_version_is_said_to(image: str) -> None:
    (line,) = differences(cluster(image))
    assert line.endswith(f" runs here as {BUILT}")


@pytest.mark.parametrize("version", ["v0.10.1", "v0.16.0", "v1.15.2"])
def test_a_kueue_that_decides_otherwise_is_no_answer(version: str) -> None:
    with pytest.raises(VersionError, match=rf"has Kueue {version}, .* Kueue {BUILT}, which may differ: submit the job"):
        differences(cluster(KUEUE + version))


def test_openshift_ai_with_the_kueue_that_is_built_here_says_which_one_that_is() -> None:
    there = pinned_version(OPENDATAHUB_KUEUE, MODULES["kueue"][1])
    kueue, wrapper = differences(cluster(*OF_OPENSHIFT_AI, operators=("rhods-operator.2.16.3", "gpu-operator.v1")))
    assert kueue == f"kueue 0.8.1 of OpenShift AI 2.16.3 runs here as {there}"
    assert wrapper.startswith("appwrapper of OpenShift AI 2.16.3 runs here as v0.30.0")


@pytest.mark.parametrize(
    "release", [each for each in catalogue.OPENSHIFT_AI if each.brings_kueue and each.version != "2.16"]
)
def test_openshift_ai_with_another_kueue_is_no_answer(release: catalogue.OpenShiftAi) -> None:
    with pytest.raises(VersionError) as error:
        differences(cluster(*OF_OPENSHIFT_AI, operators=(release.csv,)))
    assert f"has Kueue {release.kueue} of OpenShift AI {release.csv.partition('.')[2]}, but" in str(error.value)


@pytest.mark.parametrize(
    ("operators", "said"),
    [
        ((), "rhods-operator must own a Deployment there, and 0 do"),
        (("rhods-operator.2.16.0", "rhods-operator.2.19.0"), "must own a Deployment there, and 2 do"),
        (("rhods-operator.2.99.0",), "has the Kueue of OpenShift AI 2.99.0, whose version is not known here"),
    ],
)
def test_openshift_ai_of_an_unknown_version_is_no_answer(operators: tuple[str, ...], said: str) -> None:
    with pytest.raises(VersionError) as error:
        differences(cluster(*OF_OPENSHIFT_AI, operators=operators))
    assert said in str(error.value)
    assert "submit the job instead" in str(error.value)


def test_a_kueue_of_another_version_costs_no_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = dict(cluster(f"{KUEUE}v0.10.1", "quay.io/ibm/appwrapper:v1.2.2").kinds)
    team = {"name": "blue", "labels": {"mlbatch-team-namespace": "true"}}
    subjects = [{"kind": "User", "name": "alice"}]
    kinds |= {
        "Namespace": [{"metadata": team}],
        "LocalQueue": [{"metadata": {"name": "default-queue", "namespace": "blue"}}],
        "RoleBinding": [{"metadata": {"name": "alice", "namespace": "blue"}, "subjects": subjects}],
        "CustomResourceDefinition": [{"spec": {"names": {"kind": "AppWrapper"}}}],
    }
    monkeypatch.setattr("cli.ask.read_cluster", lambda *_: Source(kinds))
    monkeypatch.setattr("ask.replica.Replica.stand", lambda *_: pytest.fail("a replica was made"))
    job = tmp_path / "job.yaml"
    job.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "workload.codeflare.dev/v1beta2",
                "kind": "AppWrapper",
                "metadata": {"name": "job"},
                "spec": {"components": []},
            }
        )
    )
    assert main(["ask", str(job), "--team", "blue"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "error: the cluster has Kueue v0.10.1, but this machine can predict only the answers of Kueue "
    )


def test_every_controller_that_decides_has_a_version_or_makes_only_pods() -> None:
    for image in ("kueue/kueue:v1", "ibm/appwrapper:v1", *OF_OPENSHIFT_AI, "scheduler-plugins/kube-scheduler:v1"):
        assert built(image) is not None, image
        assert any(part in image for part in content.CONTROLLERS), image
