"""Levels of the network: gangs that need nearby nodes, and a stack that adds levels while jobs run."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from lab.scenarios.size import Size, settings
from tests.local.environment import Cluster, Project, eventually, gang
from tests.local.jobs import KUEUE, gpu_nodes, pods_of
from tests.local.standing import Standing
from tests.local.submission import submitted

LEVEL = "ib/torset"
"""Label of nodes on AKS (docs/aks.md). Kueue adds the node as the level below."""
NEAR = "kueue.x-k8s.io/podset-{}-topology"


def declared(project: Project, levels: Sequence[str]) -> dict[str, Any]:
    """Return four nodes, with Kueue choosing them."""
    scheduling: dict[str, Any] = {"packing": "topology"}
    return {
        **settings(project, Size(4)),
        "scheduling": {**scheduling, **({"topology": {"levels": list(levels)}} if levels else {})},
    }


@pytest.fixture(scope="module")
def racks(cluster: Cluster, standing: Standing) -> Iterator[list[list[str]]]:
    """Add two racks of two nodes each to the stack while a job runs, which continues."""
    project = standing.up("dev", lambda project: declared(project, ()))
    nodes = sorted(gpu_nodes(cluster))
    found = [nodes[:2], nodes[2:]]
    for number, rack in enumerate(found):
        for node in rack:
            label(cluster, node, f"rack-{number}")
    with submitted(cluster, gang("before", "blue", 1, 1)):
        (pod,) = placed(cluster, "before", 1)
        standing.up("dev", lambda project: declared(project, [LEVEL]))
        project.unchanged()
        (still,) = placed(cluster, "before", 1)
        assert still["metadata"]["uid"] == pod["metadata"]["uid"]
    yield found
    for node in nodes:
        label(cluster, node, None)


def label(cluster: Cluster, node: str, rack: str | None) -> None:
    cluster.patch("v1", "Node", node, {"metadata": {"labels": {LEVEL: rack}}})


def placed(cluster: Cluster, name: str, pods: int) -> list[dict[str, Any]]:
    """Wait until this many pods of a job run; return them."""
    return eventually(
        f"{name} runs",
        lambda: [pod for pod in pods_of(cluster, "blue", name) if pod["status"].get("phase") == "Running"],
        lambda found: len(found) == pods,
    )


def job(name: str, pods: int, gpus: int, how: str | None = None, node: str | None = None) -> dict[str, Any]:
    wrapper = gang(name, "blue", pods, gpus)
    template = wrapper["spec"]["components"][0]["template"]["spec"]["template"]
    if how is not None:
        template["metadata"] = {"annotations": {NEAR.format(how): LEVEL}}
    if node is not None:
        template["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return wrapper


@contextlib.contextmanager
def running(cluster: Cluster, wrapper: dict[str, Any], pods: int) -> Iterator[set[str]]:
    """Yield the nodes of a job's pods while it runs."""
    with submitted(cluster, wrapper):
        yield {pod["spec"]["nodeName"] for pod in placed(cluster, wrapper["metadata"]["name"], pods)}


def test_a_gang_that_requires_one_rack_gets_it_or_waits(cluster: Cluster, racks: list[list[str]]) -> None:
    """One GPU of the first rack is in use. Only the second rack has two whole nodes, and the first one has room for two
    pods of five GPUs, not for three.
    """
    first, second = racks
    with (
        running(cluster, job("small", 1, 1, node=first[0]), 1) as node,
        running(cluster, job("gang", 2, 8, "required"), 2) as nodes,
        submitted(cluster, job("late", 3, 5, "required")),
    ):
        assert (node, nodes) == ({first[0]}, set(second))
        said = eventually("Kueue reports why", lambda: refusal(cluster, "late"))
        assert "topology" in said
        assert pods_of(cluster, "blue", "late") == []


def test_a_gang_that_prefers_one_rack_uses_two_if_necessary(cluster: Cluster, racks: list[list[str]]) -> None:
    first, second = racks
    with running(cluster, job("small", 1, 1, node=first[0]), 1):
        with running(cluster, job("near", 2, 8, "preferred"), 2) as nodes:
            assert nodes == set(second)
        with running(cluster, job("far", 3, 8, "preferred"), 3) as nodes:
            assert nodes == {first[1], *second}


def refusal(cluster: Cluster, name: str) -> str:
    """Return Kueue's reason why a job has no quota, "" before it reports one."""
    for item in cluster.list(KUEUE, "Workload", "blue"):
        if item["metadata"]["name"].startswith(f"appwrapper-{name}-"):
            conditions = (item.get("status") or {}).get("conditions") or []
            return next(
                (c["message"] for c in conditions if (c["type"], c["status"]) == ("QuotaReserved", "False")), ""
            )
    return ""
