"""What proposes updates finds each version that it is to look after."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from components import catalogue
from components.azure import catalogue as azure
from components.images import Reference
from components.openstack import catalogue as openstack
from emulator.toolchain import PULUMI_VERSION

ROOT = Path(__file__).parents[2]
CONFIGURATION: Mapping[str, Any] = json.loads((ROOT / "renovate.json").read_text())


def found(datasource: str) -> Iterator[dict[str, str]]:
    """Yield the matches of a datasource's patterns in all of their files."""
    for manager in CONFIGURATION["customManagers"]:
        if manager["datasourceTemplate"] == datasource:
            for pattern in manager["managerFilePatterns"]:
                for file in ROOT.glob(pattern):
                    for expression in manager["matchStrings"]:
                        for match in re.finditer(expression.replace("(?<", "(?P<"), file.read_text()):
                            yield {"depName": manager.get("depNameTemplate", ""), **match.groupdict()}


def test_every_pattern_finds_something() -> None:
    for manager in CONFIGURATION["customManagers"]:
        files = [file.read_text() for pattern in manager["managerFilePatterns"] for file in ROOT.glob(pattern)]
        for expression in manager["matchStrings"]:
            assert any(re.search(expression.replace("(?<", "(?P<"), text) for text in files), expression


def test_every_chart_is_found_where_it_is_published() -> None:
    helm = {(hit["depName"], hit["currentValue"], hit["registryUrl"]) for hit in found("helm")}
    oci = {
        (hit["depName"], hit["currentValue"], f"oci://{hit['repository']}")
        for hit in found("docker")
        if "repository" in hit
    }
    assert helm | oci == {(chart.name, chart.version, chart.repository) for chart in (*catalogue.CHARTS, *azure.CHARTS)}


def test_every_manifest_is_found_at_its_project() -> None:
    hits = {(hit["depName"], hit["currentValue"]) for kind in ("releases", "tags") for hit in found(f"github-{kind}")}
    for artifact in catalogue.ARTIFACTS:
        project = "/".join(artifact.url.split("/")[3:5])
        assert (project, artifact.version) in hits


def test_every_image_is_found() -> None:
    values = [value for module in (catalogue, azure, openstack) for value in vars(module).values()]
    images = {value.reference for value in values if isinstance(value, catalogue.Image)}
    images |= {*catalogue.MOVED_IMAGES.values(), *(node for one in openstack.KIND_RELEASES for node in one.node_images)}
    found_too = {(hit["depName"], hit["currentValue"]) for hit in found("docker") if "repository" not in hit}
    assert {(Reference.parse(image).repository, Reference.parse(image).tag) for image in images} == found_too


def test_every_package_of_a_vm_is_found_at_its_project() -> None:
    hits = {(hit["depName"], hit["currentValue"], hit.get("extractVersion")) for hit in found("github-releases")}
    pins = {
        "moby/moby": (openstack.DOCKER, "^docker-v(?<version>.+)$"),
        "containerd/containerd": (openstack.CONTAINERD, "^v(?<version>.+)$"),
        "docker/buildx": (openstack.BUILDX, "^v(?<version>.+)$"),
        "docker/compose": (openstack.COMPOSE, "^v(?<version>.+)$"),
        "NVIDIA/nvidia-container-toolkit": (openstack.TOOLKITS[0], "^v(?<version>.+)$"),
    }
    wanted = {(name, package.partition("-")[0], extract) for name, (package, extract) in pins.items()}
    assert wanted | {("kubernetes-sigs/kind", one.kind.version, None) for one in openstack.KIND_RELEASES} <= hits


def test_the_command_is_one_version_everywhere() -> None:
    hits = [hit["currentValue"] for hit in found("github-releases") if hit["depName"] == "pulumi/pulumi"]
    assert len(hits) == 3
    assert set(hits) == {PULUMI_VERSION}


def test_what_the_catalogue_pins_is_proposed_only_when_asked_for() -> None:
    assert {"matchFileNames": ["components/**", "images/**"], "dependencyDashboardApproval": True}.items() <= dict(
        CONFIGURATION["packageRules"][0]
    ).items()


def test_exported_files_are_left_to_who_exports_them() -> None:
    assert CONFIGURATION["pip_requirements"]["enabled"] is False
