"""A chart is one Helm release whose every choice is matching out."""

from __future__ import annotations

import pytest

from components import catalogue
from components.artifacts import LocatedChart, Mirror
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


def test_a_release_is_pinned_waited_for_and_taken_back_when_it_fails() -> None:
    release = installed(Mirror().chart(catalogue.find_chart("gpu-operator")))
    assert dict(release.inputs) == {
        "name": "nfd",
        "namespace": "tools",
        "chart": "gpu-operator",
        "version": "v26.3.3",
        "repositoryOpts": {"repo": "https://helm.ngc.nvidia.com/nvidia"},
        "values": {"worker": {"port": 1}},
        "createNamespace": False,
        "atomic": True,
        "cleanupOnFail": True,
        "skipAwait": False,
        "timeout": 90,
        "compat": "true",
    }


def test_a_chart_of_an_oci_repository_is_named_by_its_address() -> None:
    release = installed(Mirror().chart(catalogue.find_chart("node-feature-discovery")))
    assert release.inputs["chart"] == "oci://registry.k8s.io/nfd/charts/node-feature-discovery"
    assert "repositoryOpts" not in release.inputs


def test_a_mirror_takes_the_repositorys_place() -> None:
    chart = catalogue.find_chart("blob-csi-driver", charts=azure.CHARTS)
    release = installed(Mirror(charts="/srv/mirror").chart(chart))
    assert release.inputs["chart"] == "/srv/mirror/blob-csi-driver-1.27.7.tgz"
    assert "repositoryOpts" not in release.inputs


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
