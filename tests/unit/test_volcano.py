"""Volcano: the chart's values, its queue, and the read rights of MPI launchers."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from components import catalogue
from components.artifacts import Mirror
from components.compatibility import VOLCANO_KUBERNETES
from components.scheduling.volcano import LauncherView, Volcano, VolcanoArgs
from stacks.validation.versions import too_new, volcano_error
from tests.unit.harness import Record, build


def volcano(**values: Any) -> Record:
    chart = Mirror().chart(catalogue.find_chart("volcano"))
    args = VolcanoArgs(**{"chart": chart, "namespace": "workloads", **values})

    def program() -> None:
        Volcano("volcano", args, pulumi.ResourceOptions(providers=[kubernetes.Provider("cluster", kubeconfig="{}")]))

    return build(program)


def release(built: Record) -> Any:
    (found,) = [item for item in built.resources if item.type == "kubernetes:helm.sh/v3:Release"]
    return found


def test_the_pinned_chart_goes_into_its_own_namespace() -> None:
    built = volcano()
    inputs = release(built).inputs
    assert (inputs["name"], inputs["chart"], inputs["version"]) == ("volcano", "volcano", "1.15.0")
    assert inputs["repositoryOpts"] == {"repo": "https://volcano-sh.github.io/helm-charts"}
    assert inputs["namespace"] == "volcano-system"
    assert built.one("Namespace", "volcano-system").urn in built.closure(release(built))


def test_its_webhooks_look_at_the_jobs_namespace_alone() -> None:
    """They fail closed. In all other namespaces, a Volcano that is down must not block requests."""
    custom = release(volcano()).inputs["values"]["custom"]
    assert custom["webhooks_namespace_selector_expressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["workloads"]}
    ]


def test_images_come_from_the_mirror_and_everything_has_limits() -> None:
    chart = Mirror(images="registry.example.org/mirror").chart(catalogue.find_chart("volcano"))
    values = release(volcano(chart=chart)).inputs["values"]
    assert values["basic"] == {"image_registry": "registry.example.org/mirror", "image_pull_policy": "IfNotPresent"}
    share = {
        "requests": {"cpu": "100m", "memory": "128Mi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    }
    for part in ("admission_resources", "controller_resources", "scheduler_resources"):
        assert values["custom"][part] == share


def test_the_queue_waits_for_the_chart() -> None:
    built = volcano(queue="research")
    queue = built.one("Queue", "research")
    assert queue.type == "kubernetes:scheduling.volcano.sh/v1beta1:Queue"
    assert queue.inputs["spec"] == {"weight": 1, "reclaimable": True}
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
        ("1.15.0", "1.34", None),
        ("1.15.0", "1.35.2", None),
        ("1.15.0", "1.36", "1.35"),
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
    assert problem.expected == "1.15.0"
    assert problem.hint == "set mlbatch:volcano.version to 1.15.0"
    assert volcano_error("1.15.0", "1.35") is None
