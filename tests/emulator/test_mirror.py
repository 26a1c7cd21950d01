"""The mirror contains the catalogue's artifacts, changed only to the released images."""

import hashlib
import re

import pytest

from components import catalogue
from emulator import mirror
from emulator.toolchain import pinned_version
from tests.unit.releases import FOLDER, definitions, reduced


@pytest.mark.parametrize("source", mirror.SOURCES, ids=lambda source: source.name)
def test_the_built_controller_is_of_the_version_that_the_program_installs(source: mirror.Source) -> None:
    pinned = [pinned_version(tools, source.module) for tools in source.tools]
    assert pinned == [*catalogue.versions(source.name)]
    for version in pinned:
        assert f"{source.image}:{version}" in catalogue.find(source.name, version).images.values()


@pytest.mark.parametrize("definitions", mirror.DEFINITIONS, ids=lambda definitions: definitions.name)
def test_the_definitions_are_of_the_version_that_the_program_installs(definitions: mirror.Definitions) -> None:
    artifact = catalogue.find(definitions.name, pinned_version(definitions.tool, definitions.module))
    module = re.sub(r"/v\d+$", "", definitions.module)  # Go's version suffix, which is not a folder
    folder = module.split("/", 3)[3:]  # of a repository with several modules
    assert artifact.url.endswith("/".join(["", artifact.version, *folder, definitions.file]))


def test_a_file_that_is_upstreams_as_it_is_has_the_catalogues_digest() -> None:
    pinned = [artifact for artifact in catalogue.ARTIFACTS if artifact.sha256 is not None]
    assert len(pinned) == 6
    for artifact in pinned:
        file = FOLDER.parents[2] / ".local" / "dev" / "mirror" / artifact.file
        assert hashlib.sha256(file.read_bytes()).hexdigest() == artifact.sha256


def test_the_deployment_gets_the_released_image_and_the_rest_stays_byte_for_byte() -> None:
    config = "apiVersion: v1\nkind: ConfigMap\ndata:\n  text: |-\n    kind: Deployment\n    image: left:alone"
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: manager\nspec:\n  template:\n    spec:\n"
        "      containers:\n      - name: manager\n        image: staging:main"
    )
    changed = mirror._released(f"{config}\n---\n{deployment}\n", "registry.example.org/manager:v1")
    first, second = changed.split("\n---\n")
    assert first == config
    assert "image: registry.example.org/manager:v1" in second
    assert "staging" not in changed


@pytest.mark.parametrize("artifact", catalogue.ARTIFACTS, ids=lambda artifact: artifact.file)
def test_the_unit_tests_manifests_are_upstreams(artifact: catalogue.Artifact) -> None:
    """Unit tests use reduced copies, so that they do not need Go: `python -m tests.unit.releases .local/dev/mirror`."""
    filled = FOLDER.parents[2] / ".local" / "dev" / "mirror" / artifact.file
    assert filled.is_file(), "`make mirror` fills the folder"
    assert (FOLDER / artifact.file).read_text() == reduced(filled.read_text())


def test_the_mirror_has_a_file_for_each_published_dashboard() -> None:
    assert [f"{name}.json" for name in mirror.DASHBOARDS] == [item.file for item in catalogue.DASHBOARDS]


def test_the_unit_tests_schemas_are_upstreams() -> None:
    """The same command writes them."""
    mirror_folder = FOLDER.parents[2] / ".local" / "dev" / "mirror"
    kept, upstream = definitions.stored(), definitions.of_mirror(mirror_folder)
    assert {kind: kept[kind] for kind in upstream} == upstream
    assert kept.keys() - upstream.keys() == {definitions.CONSTRAINTS}, (
        "tests/local/test_openshift.py compares OpenShift's"
    )
