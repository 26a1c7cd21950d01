"""A chart is one Helm release with explicit options."""

import hashlib
import io
from dataclasses import replace
from pathlib import Path

import pytest

from components import artifacts, catalogue, registries
from components.artifacts import ArtifactError, LocatedChart, Mirror
from components.azure import catalogue as azure
from components.kubernetes.charts import Chart, ChartArgs
from emulator.charts.schema import of_chart, problems
from emulator.charts.sources import stub, stubs
from tests.unit.harness import Record, Registered, build

RELEASE = "kubernetes:helm.sh/v3:Release"

CHARTS = (*catalogue.CHARTS, *azure.CHARTS)


def installed(chart: LocatedChart) -> Registered:
    record: Record = build(
        lambda: Chart(
            "discovery",
            ChartArgs(
                chart=chart, namespace="tools", release="nfd", values={"worker": {"port": 1}}, timeout_seconds=90
            ),
        )
    )
    (release,) = (resource for resource in record.resources if resource.type == RELEASE)
    return release


def test_a_chart_of_an_oci_repository_is_named_by_its_address() -> None:
    release = installed(Mirror().chart(catalogue.find_chart("node-feature-discovery")))
    assert release.inputs["chart"] == "oci://registry.k8s.io/nfd/charts/node-feature-discovery"
    assert release.inputs["version"] == catalogue.find_chart("node-feature-discovery").version
    assert "repositoryOpts" not in release.inputs


def test_a_mirror_takes_the_repositorys_place() -> None:
    chart = catalogue.find_chart("blob-csi-driver", charts=azure.CHARTS)
    release = installed(Mirror(charts="/srv/mirror").chart(chart))
    assert release.inputs["chart"] == "/srv/mirror/blob-csi-driver-1.27.9.tgz"
    assert "repositoryOpts" not in release.inputs


LOCKED = replace(
    catalogue.find_chart("gpu-operator"),
    archive="https://example.org/gpu-operator.tgz",
    sha256=hashlib.sha256(b"archive").hexdigest(),
)


def test_a_chart_with_a_digest_is_read_from_the_very_address_that_was_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served = {"https://example.org/gpu-operator.tgz": b"archive"}
    monkeypatch.setattr(artifacts, "urlopen", lambda url, timeout: io.BytesIO(served[url]))
    release = installed(Mirror().chart(LOCKED))
    assert release.inputs["chart"] == "https://example.org/gpu-operator.tgz"
    assert "repositoryOpts" not in release.inputs
    served["https://example.org/gpu-operator.tgz"] = b"another"
    with pytest.raises(ArtifactError, match=r"is not gpu-operator v26\.3\.3: its sha256 is"):
        Mirror().chart(LOCKED)


def test_a_mirrors_archive_has_to_have_the_digest_too(tmp_path: Path) -> None:
    mirror = Mirror(charts=str(tmp_path))
    with pytest.raises(ArtifactError, match="the mirror lacks gpu-operator"):
        mirror.chart(LOCKED)
    (tmp_path / LOCKED.file).write_bytes(b"archive")
    assert mirror.chart(LOCKED).chart == str(tmp_path / LOCKED.file)
    (tmp_path / LOCKED.file).write_bytes(b"another")
    with pytest.raises(ArtifactError, match="the catalogue has"):
        mirror.chart(LOCKED)
    assert replace(mirror, verify=False).chart(LOCKED).chart == str(tmp_path / LOCKED.file)


def test_an_oci_registry_that_does_not_answer_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(repository: str, name: str, version: str) -> str:
        raise registries.RegistryError("no route to host")

    chart = replace(catalogue.find_chart("node-feature-discovery"), sha256="ab" * 32)
    monkeypatch.setattr(registries, "chart_digest", refuses)
    with pytest.raises(ArtifactError, match=r"no route to host") as error:
        Mirror().chart(chart)
    assert "node-feature-discovery" in str(error.value)


def test_a_chart_of_an_oci_registry_has_to_have_the_digest_too(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = replace(catalogue.find_chart("node-feature-discovery"), sha256="ab" * 32)
    monkeypatch.setattr(registries, "chart_digest", lambda repository, name, version: "ab" * 32)
    assert Mirror().chart(chart).chart == "oci://registry.k8s.io/nfd/charts/node-feature-discovery"
    monkeypatch.setattr(registries, "chart_digest", lambda repository, name, version: "cd" * 32)
    with pytest.raises(ArtifactError, match="the catalogue has abab"):
        Mirror().chart(chart)


def test_a_registry_of_ones_own_takes_the_place_of_the_host_of_each_image() -> None:
    mirror = Mirror(images="registry.example.org/mirror")
    values = mirror.chart(catalogue.find_chart("gpu-operator")).values
    assert values["driver"] == {
        "repository": "registry.example.org/mirror/nvidia",
        "manager": {"repository": "registry.example.org/mirror/nvidia/cloud-native"},
    }
    assert mirror.chart(catalogue.find_chart("kube-prometheus-stack")).values == {
        "global": {"imageRegistry": "registry.example.org/mirror"}
    }
    chart = LocatedChart(name="c", chart="c", version="1", repository=None, values={"worker": {"registry": "r"}})
    assert installed(chart).inputs["values"] == {"worker": {"registry": "r", "port": 1}}
    assert Mirror().chart(catalogue.find_chart("gpu-operator")).values == {}


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: f"{chart.name}-{chart.version}")
def test_every_chart_says_where_its_images_are_by_values_that_it_knows(chart: catalogue.Chart) -> None:
    given = Mirror(images="registry.example.org/mirror").chart(chart).values
    assert given
    if (chart.name, chart.version) in stubs():
        assert list(problems(given, of_chart(stub(chart.name, chart.version)))) == []


def test_each_chart_names_one_repository_and_its_source() -> None:
    assert len({(chart.name, chart.version) for chart in CHARTS}) == len(CHARTS)
    for chart in CHARTS:
        assert chart.repository.startswith(("https://", "oci://"))
        assert chart.source.startswith("https://")


def test_each_network_operator_comes_with_its_images_and_each_gpu_operator_with_its_driver() -> None:
    assert [software.operator for software in catalogue.NIC_SOFTWARE] == list(
        catalogue.chart_versions("network-operator")
    )
    assert list(catalogue.GPU_DRIVERS) == list(catalogue.chart_versions("gpu-operator"))
