"""The local environment runs the versions that it installs, from upstream's manifests, and reports differences."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import catalogue
from emulator import controllers, mirror

MIRROR = Path(__file__).resolve().parents[2] / ".local" / "dev" / "mirror"
UPSTREAM = {
    "scheduler-plugins-v0.33.5": "6bb915f7f1206cac5860061a3a9980e0fb39ef092c078eb0ed0bc2132e2e1fde",
    "scheduler-plugins-elasticquotas-v0.33.5": "59900b1a9a7671da139ae1a1c1f306aea6c4c10ab8b3c1e98feb2be0e906b194",
    "scheduler-plugins-v0.31.8": "05bf110baf5e68ffde551320ae6a2231794a1a7359e34d6c040c16d31c762c0e",
    "scheduler-plugins-elasticquotas-v0.31.8": "6977703ab714c37547252c7a521e1f9bcba8ada45f803636c80315f588ee1388",
    "scheduler-plugins-v0.29.7": "9f087fc69075dbbd136d38a110ffccf227c7dd24ec3f259ad4c658ec564b1c73",
    "scheduler-plugins-elasticquotas-v0.29.7": "d1144cfde1d36c483fedc41237368b1194978e2d5a92234cbe869f40451bb997",
}
"""Digests of the definitions at upstream's tags, computed by `canonical`."""


def canonical(manifest: str) -> str:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = [item for item in yaml.load_all(manifest, Loader=loader) if item]
    return json.dumps(documents, sort_keys=True)


def pod(*images: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"image": image} for image in images]}}


@pytest.mark.parametrize("name", UPSTREAM)
def test_an_older_releases_definitions_are_its_own(name: str) -> None:
    file = MIRROR / f"{name}.yaml"
    assert file.is_file(), "`make mirror` fills the folder"
    assert hashlib.sha256(canonical(file.read_text()).encode()).hexdigest() == UPSTREAM[name]


@pytest.mark.parametrize("name", ["kueue", "appwrapper", *(each.name for each in mirror.DEFINITIONS)])
def test_each_version_that_can_be_chosen_is_mirrored(name: str) -> None:
    for version in catalogue.versions(name):
        image = catalogue.find(name, version).images.get("manager")
        text = (MIRROR / f"{name}-{version}.yaml").read_text()
        assert image is None or f"image: {image}\n" in text


@pytest.mark.parametrize("version", catalogue.versions(catalogue.KUEUE))
def test_each_kueue_that_can_be_chosen_runs_as_released(version: str) -> None:
    found = controllers.built(f"mirror.example:5000/a/kueue/kueue:{version}")
    assert found is not None
    assert found.version == version


def test_the_report_names_a_version_that_is_not_built() -> None:
    said = controllers.report([pod("python:3.12"), pod("quay.io/ibm/appwrapper:v9.9.9")])
    assert said.splitlines() == ["Not as released", "  appwrapper v9.9.9 runs here as v1.2.2"]


def test_the_report_does_not_mention_the_default_versions() -> None:
    own = [catalogue.find(name, catalogue.versions(name)[0]).images["manager"] for name in ("kueue", "appwrapper")]
    assert controllers.report([pod(*own, "python:3.12", "x.example/kueue:v3")]) == ""


def test_the_report_says_that_a_simulated_autopilot_does_not_measure() -> None:
    mirrored = "registry.example.org/mirror/autopilot/autopilot:v2"
    does = "is simulated: its pods do not measure or label nodes. Set its results with `kubectl label node`"
    said = controllers.report([pod(catalogue.AUTOPILOT.reference), pod(mirrored)]).splitlines()
    assert said == ["Not as released", f"  autopilot v2 {does}", f"  autopilot v2.1.3 {does}"]
    assert controllers.report([pod("registry.example.org/team/autopilot:1")]) == ""
