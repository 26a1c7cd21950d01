"""Volcano: the chart's values, its queue, and the read rights of MPI launchers."""

from typing import Any

import pytest

from components import catalogue
from components.artifacts import Mirror
from components.compatibility import VOLCANO_KUBERNETES
from components.scheduling.volcano import LauncherView, Volcano, VolcanoArgs
from stacks.validation.versions import too_new, volcano_error
from tests.unit.harness import Record, on_cluster


def volcano(**values: Any) -> Record:
    chart = Mirror().chart(catalogue.find_chart("volcano"))
    args = VolcanoArgs(**{"chart": chart, "namespace": "workloads", **values})
    return on_cluster(lambda opts: Volcano("volcano", args, opts))


def release(built: Record) -> Any:
    (found,) = [item for item in built.resources if item.type == "kubernetes:helm.sh/v3:Release"]
    return found


def test_images_come_from_the_mirror() -> None:
    chart = Mirror(images="registry.example.org/mirror").chart(catalogue.find_chart("volcano"))
    values = release(volcano(chart=chart)).inputs["values"]
    assert values["basic"] == {"image_registry": "registry.example.org/mirror", "image_pull_policy": "IfNotPresent"}


def test_the_queue_waits_for_the_chart() -> None:
    built = volcano(queue="research")
    queue = built.one("Queue", "research")
    assert release(built).urn in queue.dependencies


def test_more_only_when_asked_for() -> None:
    built = volcano(launcher_view=LauncherView.ALL)
    binding = built.one("RoleBinding", "default-view", "workloads").inputs
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    assert not built.of("Role")


def test_every_version_in_the_catalogue_says_for_which_clusters_it_is() -> None:
    assert set(catalogue.chart_versions("volcano")) == set(VOLCANO_KUBERNETES)


@pytest.mark.parametrize(
    ("version", "kubernetes_version", "newest"),
    [
        ("1.15.1", "1.34", None),
        ("1.15.1", "1.35.2", None),
        ("1.15.1", "1.36", "1.35"),
        ("1.14.2", "1.35", "1.34"),
        ("1.14.2", "1.34.1", None),
    ],
)
def test_a_chart_is_held_to_the_clusters_it_is_made_for(
    version: str, kubernetes_version: str, newest: str | None
) -> None:
    assert too_new(version, kubernetes_version) == newest


def test_a_chart_that_is_too_old_for_the_cluster_names_one_that_is_not() -> None:
    problem = volcano_error("1.14.2", "1.35")
    assert problem is not None
    assert problem.expected == "1.15.1, 1.15.0"
    assert problem.hint == "set mlbatch:volcano.version to 1.15.1"
    assert volcano_error("1.15.1", "1.35") is None
