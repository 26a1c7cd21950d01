"""Placement of jobs' pods: whole nodes stay free for jobs that need them, and gangs start whole.

Each way of packing is installed on the same cluster, with the same jobs.
"""

import time
from collections import Counter
from typing import Any

import pytest

from components.scheduling.packing import Packing
from components.scheduling.pod_group import in_group, pod_group
from emulator.paths import Paths
from lab.scenarios.size import Size, settings
from tests.local.environment import Cluster, Project, eventually, gang
from tests.local.jobs import APPWRAPPER, gpu_nodes, pods_of
from tests.local.member import as_member
from tests.local.standing import Standing
from tests.local.submission import submitted

SOAK = pytest.mark.soak("a minute and a half; the scenarios packing and gangs use the dev stack's way")


@pytest.fixture(scope="module", params=[Packing.TOPOLOGY, pytest.param(Packing.COSCHEDULING, marks=SOAK)], ids=str)
def packing(request: pytest.FixtureRequest) -> Packing:
    """Return the way of packing; all tests run with each."""
    packing: Packing = request.param
    return packing


@pytest.fixture(scope="module", autouse=True)
def project(standing: Standing, packing: Packing) -> Project:
    """Four nodes and a way of packing, like test_topology.py before it adds racks."""
    return standing.up("dev", lambda project: {**settings(project, Size(4)), "scheduling": {"packing": str(packing)}})


def bound(cluster: Cluster, namespace: str, name: str) -> list[str]:
    """Return the node of each bound pod."""
    return [pod["spec"]["nodeName"] for pod in pods_of(cluster, namespace, name) if pod["spec"].get("nodeName")]


def runs(cluster: Cluster, namespace: str, name: str, pods: int = 1) -> list[str]:
    eventually(
        f"all pods of {name} run",
        lambda: [pod["status"]["phase"] for pod in pods_of(cluster, namespace, name)],
        lambda phases: phases == ["Running"] * pods,
    )
    return bound(cluster, namespace, name)


def grouped(name: str, namespace: str, pods: int, gpus: int, **metadata: Any) -> dict[str, Any]:
    """Return a gang with its PodGroup, as a user submits it."""
    wrapper = gang(name, namespace, pods, gpus, **metadata)
    job = wrapper["spec"]["components"][0]["template"]
    wrapper["spec"]["components"] = [{"template": item} for item in (pod_group(name, pods), in_group(name, job))]
    return wrapper


def on_node(wrapper: dict[str, Any], node: str) -> dict[str, Any]:
    """Return a job whose pods run only on this node."""
    template(wrapper)["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return wrapper


def template(wrapper: dict[str, Any]) -> dict[str, Any]:
    """Return the template of a wrapped job's pods."""
    found: dict[str, Any] = wrapper["spec"]["components"][0]["template"]["spec"]["template"]
    return found


def test_eight_small_jobs_leave_whole_nodes_free(packing: Packing, cluster: Cluster, paths: Paths) -> None:
    """Spread over all nodes, they would leave no whole node for another job, although 24 GPUs are idle.

    A Service selects all of them, which makes Kubernetes' own scheduler spread them even further.
    """
    alice, bob = as_member(paths, "alice"), as_member(paths, "bob")
    label = {"app": "small"}
    small = [gang(f"small-{index}", "blue", pods=1, gpus=1) for index in range(8)]
    for wrapper in small:
        template(wrapper)["metadata"] = {"labels": label}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "small", "namespace": "blue"}}
    alice.create({**service, "spec": {"clusterIP": "None", "selector": label}})
    with submitted(alice, *small):
        nodes = Counter(node for index in range(8) for node in runs(cluster, "blue", f"small-{index}"))
        assert list(nodes.values()) == [8], nodes
        with submitted(bob, gang("whole", "red", pods=1, gpus=8)):
            runs(cluster, "red", "whole")
    alice.delete("v1", "Service", "small", "blue")


def test_a_gang_never_half_starts(packing: Packing, cluster: Cluster, paths: Paths) -> None:
    """The quota fits both pods of the gang, but the nodes only one."""
    *used, _ = gpu_nodes(cluster)
    whole = grouped if packing is Packing.COSCHEDULING else gang
    in_the_way = [on_node(gang(f"{node}-small", "red", pods=1, gpus=1), node) for node in used]
    with submitted(as_member(paths, "bob"), *in_the_way):
        for node in used:
            assert runs(cluster, "red", f"{node}-small") == [node]
        with submitted(as_member(paths, "alice"), whole("gang", "blue", pods=2, gpus=8)):
            if packing is Packing.COSCHEDULING:
                eventually("Kueue admits it", lambda: pods_of(cluster, "blue", "gang"), lambda found: len(found) == 2)
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                assert bound(cluster, "blue", "gang") == []
                time.sleep(0.2)
            cluster.delete(APPWRAPPER, "AppWrapper", f"{used[0]}-small", "red")
            assert len(set(runs(cluster, "blue", "gang", pods=2))) == 2
