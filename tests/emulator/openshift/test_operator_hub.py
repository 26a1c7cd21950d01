"""OperatorHub of the local OpenShift: its catalogs, and the manifests of OpenShift AI's operator."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import catalogue
from components.nodes import certified_gpu_operator
from components.openshift_ai import installation
from emulator.cluster import images
from emulator.openshift import operator_hub
from emulator.openshift.red_hat import bundles
from emulator.paths import Paths
from emulator.toolchain import Toolchain

pytestmark = pytest.mark.emulated("its modules are those of the local environment")


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    paths = Paths.of(state=tmp_path_factory.mktemp("state"))
    paths.mirror.mkdir()
    operator_hub.fill(paths, Toolchain(paths))
    return operator_hub.folder(paths.mirror)


@pytest.fixture(scope="module")
def documents(mirror: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (mirror / "catalog" / "catalog.json").read_text().splitlines()]


def carried(documents: list[dict[str, Any]], csv: str) -> Iterator[dict[str, Any]]:
    """Yield the manifests in the bundle of a version."""
    (bundle,) = (each for each in documents if (each["schema"], each["name"]) == ("olm.bundle", csv))
    for each in bundle["properties"]:
        if each["type"] == "olm.bundle.object":
            yield json.loads(base64.b64decode(each["value"]["data"]))


def test_each_channel_of_the_programs_catalogue_leads_to_its_version(documents: list[dict[str, Any]]) -> None:
    found = {(each["package"], each["name"]): each["entries"] for each in documents if each["schema"] == "olm.channel"}
    releases = [catalogue.entry(catalogue.OPENSHIFT_AI, version=version) for version in ("2.16", "3.4")]
    wanted = {(installation.NAME, channel): [{"name": each.csv}] for each in releases for channel in each.channels}
    wanted |= {(each.package, each.channel): [{"name": each.csv}] for each in catalogue.RED_HAT_OPERATORS}
    assert found == wanted


def test_the_stubs_run_where_the_program_installs_the_operators(documents: list[dict[str, Any]]) -> None:
    found = {each["package"]: (each["namespace"], each["csv"], each["mode"]) for each in bundles.OPERATORS}
    assert found.pop(installation.NAME)[0] == installation.OPERATOR_NAMESPACE
    modes = {True: "OwnNamespace", False: "AllNamespaces"}
    assert found == {
        each.package: (each.namespace, each.csv, modes[each.watches_own]) for each in catalogue.RED_HAT_OPERATORS
    }
    for each in bundles.OPERATORS:
        version, *definitions = carried(documents, each["csv"])
        assert version["spec"]["displayName"] == f"Stub of {each['package']}"
        assert {definition["metadata"]["name"] for definition in definitions} == {*each["owns"]}


def test_the_other_catalog_leads_to_the_gpu_operator_that_the_program_takes_by_default(mirror: Path) -> None:
    documents = [json.loads(line) for line in (mirror / "certified" / "catalog.json").read_text().splitlines()]
    release = catalogue.CERTIFIED_GPU_OPERATORS[0]
    channels = {each["name"]: each["entries"] for each in documents if each["schema"] == "olm.channel"}
    assert channels == {release.channel: [{"name": release.csv}]}
    version, definition = carried(documents, release.csv)
    assert (version["metadata"]["name"], definition["spec"]["names"]["kind"]) == (release.csv, "ClusterPolicy")
    sources = {each["metadata"]["name"] for each in operator_hub.objects() if each["kind"] == "CatalogSource"}
    assert sources == {installation.CATALOG, certified_gpu_operator.CATALOG}


def test_a_mirror_older_than_the_other_catalog_is_filled_again(tmp_path: Path) -> None:
    paths = Paths.of(state=tmp_path)
    (operator_hub.folder(paths.mirror) / "catalog").mkdir(parents=True)
    operator_hub.fill(paths, Toolchain(paths))
    assert (operator_hub.folder(paths.mirror) / "certified" / "catalog.json").exists()


def test_the_bundle_carries_a_version_of_openshift_ai(documents: list[dict[str, Any]]) -> None:
    manifests = carried(documents, "rhods-operator.2.16.0")
    (version,) = (each for each in manifests if each["kind"] == "ClusterServiceVersion")
    (deployment,) = version["spec"]["install"]["spec"]["deployments"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert images.known(container["image"])
    assert {"name": "ODH_PLATFORM_TYPE", "value": "SelfManagedRHOAI"} in container["env"]
    assert "DISABLE_DSC_CONFIG" not in {variable["name"] for variable in container["env"]}, "the Subscription's to set"


def test_the_files_that_mlbatch_replaces_are_there(mirror: Path) -> None:
    for file in (
        "codeflare/manager/manager.yaml",
        "ray/openshift/kuberay-operator-image-patch.yaml",
        "kueue/components/manager/controller_manager_config.yaml",
        "kueue/rhoai/manager_config_patch.yaml",
        "trainingoperator/rhoai/manager_config_patch.yaml",
    ):
        assert (mirror / "manifests" / file).is_file(), file


def test_each_image_has_a_program(mirror: Path) -> None:
    files = [file for pattern in ("*.yaml", "*.env") for file in (mirror / "manifests").rglob(pattern)]
    found = {image for file in files for image in re.findall(r"image=(registry\.redhat\.io/\S+)", file.read_text())}
    assert len(found) == 4
    assert all(images.known(image) for image in found)


def test_appwrapper_runs_as_the_account_that_may_start_jobs(mirror: Path) -> None:
    folder = mirror / "manifests" / "codeflare"
    overlay = yaml.safe_load((folder / "default" / "kustomization.yaml").read_text())
    account = yaml.safe_load((folder / "rbac" / "service_account.yaml").read_text())["metadata"]["name"]
    expected = f"system:serviceaccount:{installation.NAMESPACE}:{overlay['namePrefix']}{account}"
    assert expected == installation.APPWRAPPER


def test_the_servers_that_are_not_here_have_empty_kinds(mirror: Path) -> None:
    found = {each["metadata"]["name"] for each in operator_hub.definitions(Paths.of(state=mirror.parents[1]))}
    assert {
        "imagestreams.image.openshift.io",
        "groups.user.openshift.io",
        "subscriptions.operators.coreos.com",
    } <= found
