"""A release that cannot be built here is played in the open, from a manifest that is upstream's own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import catalogue
from emulator import mirror, stand_ins
from emulator.toolchain import CORE, ToolchainError, pinned_version

MIRROR = Path(__file__).resolve().parents[2] / ".local" / "dev" / "mirror"
UPSTREAM = {
    "kueue-v0.15.8": "8710f82419b92bf929ecc352099875b71404457e65b721c0900f05771c75a20a",
    "scheduler-plugins-v0.33.5": "6bb915f7f1206cac5860061a3a9980e0fb39ef092c078eb0ed0bc2132e2e1fde",
    "scheduler-plugins-elasticquotas-v0.33.5": "59900b1a9a7671da139ae1a1c1f306aea6c4c10ab8b3c1e98feb2be0e906b194",
    "scheduler-plugins-v0.31.8": "05bf110baf5e68ffde551320ae6a2231794a1a7359e34d6c040c16d31c762c0e",
    "scheduler-plugins-elasticquotas-v0.31.8": "6977703ab714c37547252c7a521e1f9bcba8ada45f803636c80315f588ee1388",
    "scheduler-plugins-v0.29.7": "9f087fc69075dbbd136d38a110ffccf227c7dd24ec3f259ad4c658ec564b1c73",
    "scheduler-plugins-elasticquotas-v0.29.7": "d1144cfde1d36c483fedc41237368b1194978e2d5a92234cbe869f40451bb997",
}
"""Digests of what the release's own config/default renders to, or of its definition, as `canonical` writes it; from
upstream's tag."""


def canonical(manifest: str) -> str:
    """All documents but the Deployment, whose image only a release names."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = [item for item in yaml.load_all(manifest, Loader=loader) if item and item["kind"] != "Deployment"]
    return json.dumps(documents, sort_keys=True)


def pod(*images: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"image": image} for image in images]}}


@pytest.mark.parametrize("stand_in", stand_ins.STAND_INS, ids=lambda stand_in: f"{stand_in.name}-{stand_in.version}")
def test_a_played_release_has_the_manifest_of_its_own(stand_in: stand_ins.StandIn) -> None:
    name = f"{stand_in.name}-{stand_in.version}"
    file = MIRROR / f"{name}.yaml"
    assert file.is_file(), "`make mirror` fills the folder"
    assert hashlib.sha256(canonical(file.read_text()).encode()).hexdigest() == UPSTREAM[name]
    image = catalogue.find(stand_in.name, stand_in.version).images.get("manager")
    assert image is None or f"image: {image}\n" in file.read_text()


@pytest.mark.parametrize("source", [*mirror.SOURCES, *mirror.DEFINITIONS], ids=lambda source: source.name)
def test_each_version_that_can_be_chosen_is_built_or_played(source: mirror.Source | mirror.Definitions) -> None:
    built = pinned_version(CORE if isinstance(source, mirror.Source) else source.tool, source.module)
    played = {each.version for each in stand_ins.of(source.name, built)}
    assert set(catalogue.versions(source.name)) == {built, *played}


def test_a_manifest_that_changed_is_not_carried_by_guess() -> None:
    (kueue,) = (each for each in stand_ins.STAND_INS if each.name == "kueue")
    manifest = (MIRROR / f"kueue-{kueue.player}.yaml").read_text()
    with pytest.raises(ToolchainError, match=r"definition of clusterqueues has nowhere 'jsonPath: .spec.cohort'"):
        kueue.carry(manifest.replace("jsonPath: .spec.cohort\n", ""))
    with pytest.raises(ToolchainError, match=r"0 documents .* 'name: kueue-jobset-editor-role'"):
        kueue.carry(manifest.replace("name: kueue-jobset-editor-role", "name: other"))


@pytest.mark.parametrize("image", ["registry.k8s.io/kueue/kueue:v0.15.8", "mirror.example:5000/a/kueue/kueue:v0.15.8"])
def test_the_report_says_who_plays_a_release_and_what_that_one_lacks(image: str) -> None:
    said = stand_ins.report([pod("python:3.12"), pod(image), pod(image)])
    title, line = said.splitlines()
    assert title == "Not as released"
    assert "kueue v0.15.8 is played by v0.15.2" in line
    assert "what it lacks: owners get GPUs back while they borrow" in line


def test_the_report_does_not_keep_quiet_about_a_version_that_nobody_knows() -> None:
    assert "appwrapper v9.9.9 is played by v1.1.2" in stand_ins.report([pod("quay.io/ibm/appwrapper:v9.9.9")])


def test_the_report_says_what_other_libraries_change() -> None:
    said = stand_ins.report([pod("quay.io/ibm/appwrapper:v1.1.2")])
    assert (
        "does not limit its client; that of its image, v0.20.3, asks the API server at most 20 times a second" in said
    )


def test_the_report_says_nothing_where_each_image_is_what_it_says() -> None:
    own = ("registry.k8s.io/kueue/kueue:v0.15.2", "python:3.12", "x.example/kueue:v3")
    assert stand_ins.report([pod(*own)]) == ""


def test_an_autopilot_that_measures_nothing_is_said_to_be_one() -> None:
    mirrored = "registry.example.org/mirror/autopilot/autopilot:v2"
    does = "is simulated: its pods measure nothing and mark no node; `kubectl label node` stands for its verdicts"
    said = stand_ins.report([pod(catalogue.AUTOPILOT.reference), pod(mirrored)]).splitlines()
    assert said == ["Not as released", f"  autopilot v2 {does}", f"  autopilot v2.1.3 {does}"]
    assert stand_ins.report([pod("registry.example.org/team/autopilot:1")]) == ""
