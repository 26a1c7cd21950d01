"""Two node pools: choice of a job's pool, and the quota of each pool."""

from collections.abc import Mapping
from typing import Any

import pytest

from emulator.paths import Paths
from tests.local.environment import Cluster, Project, dev_settings, eventually, gang
from tests.local.jobs import GPU, SLACK, cordon, pods_of, running
from tests.local.jobs import phase as phase_of
from tests.local.member import as_member
from tests.local.standing import Standing
from tests.local.submission import submitted

KUEUE = "kueue.x-k8s.io/v1beta2"
RESERVED, SPOT = "default-flavor", "spot"
POOL = "mlbatch/pool"


def quota(gpus: int) -> dict[str, Any]:
    return {"cpu": 10 * gpus, "memory": "200G", GPU: gpus, "pods": 20}


@pytest.fixture(scope="module", autouse=True)
def project(standing: Standing) -> Project:
    return standing.up("dev", declared)


def declared(project: Project) -> dict[str, Any]:
    """Return two reserved nodes and two spot nodes with eight GPUs. One node of each pool belongs to the slack
    queue.
    """
    settings = dev_settings(project.mirror)
    spot = {"name": SPOT, "count": 2, "instanceType": "Standard_ND96amsr_A100_v4", "slack": quota(8)}
    settings["nodes"] |= {"count": 2, "morePools": [spot]}
    settings["queueing"] |= {"slack": quota(8)}
    settings["teams"] = [
        {"name": "blue", "users": ["alice"], "quota": quota(4), "pools": [{"name": SPOT, "quota": quota(8)}]},
        {"name": "red", "users": ["bob"], "quota": quota(4)},
    ]
    settings["samples"] = {}
    return settings


def on(pool: str, job: dict[str, Any]) -> dict[str, Any]:
    """Return the job, restricted to nodes of a pool."""
    template = job["spec"]["components"][0]["template"]["spec"]["template"]
    template["spec"]["nodeSelector"] = {POOL: pool}
    return job


def pools_of(cluster: Cluster, team: str, job: str) -> set[str]:
    """Return the pools of a job's nodes."""
    nodes = {pod["spec"]["nodeName"] for pod in pods_of(cluster, team, job)}
    return {cluster.existing("v1", "Node", node)["metadata"]["labels"][POOL] for node in nodes}


def held(cluster: Cluster, team: str) -> Mapping[str, tuple[str, str]]:
    """Return the GPUs of each flavor that a team holds, and how many of them are borrowed."""
    queue = cluster.existing(KUEUE, "ClusterQueue", f"{team}-cluster-queue")
    return {
        flavor["name"]: next(
            (str(each["total"]), str(each["borrowed"])) for each in flavor["resources"] if each["name"] == GPU
        )
        for flavor in queue["status"]["flavorsReservation"]
    }


def holds(cluster: Cluster, team: str, expected: Mapping[str, tuple[str, str]]) -> None:
    """Wait until a queue's status shows what a team holds, a moment after the admission."""
    eventually(f"{team} holds {expected}", lambda: held(cluster, team), lambda found: expected.items() <= found.items())


def lent(cluster: Cluster, queue: str = SLACK) -> list[str | None]:
    """Return the largest number of GPUs of each flavor that a queue lends, None for its whole quota."""
    (group,) = cluster.existing(KUEUE, "ClusterQueue", queue)["spec"]["resourceGroups"]
    return [
        next(each.get("lendingLimit") for each in flavor["resources"] if each["name"] == GPU)
        for flavor in group["flavors"]
    ]


@pytest.mark.soak("half a minute; test_platform.py previews twice, too")
def test_a_second_preview_plans_no_change(project: Project) -> None:
    project.unchanged()


def test_a_job_uses_the_first_pool_and_then_the_next(cluster: Cluster, paths: Paths) -> None:
    bob = as_member(paths, "bob")
    with submitted(bob, gang("first", "red", pods=2, gpus=8)):
        running(cluster, "red", "first", 2)
        assert pools_of(cluster, "red", "first") == {RESERVED}
        holds(cluster, "red", {RESERVED: ("16", "12"), SPOT: ("0", "0")})
        with submitted(bob, gang("second", "red", pods=1, gpus=8)):
            running(cluster, "red", "second", 1)
            assert pools_of(cluster, "red", "second") == {SPOT}
            holds(cluster, "red", {SPOT: ("8", "8")})


def test_a_job_uses_the_next_pool_before_it_evicts_a_borrower(cluster: Cluster, paths: Paths) -> None:
    alice, bob = as_member(paths, "alice"), as_member(paths, "bob")
    with submitted(bob, gang("borrower", "red", pods=2, gpus=8)):
        running(cluster, "red", "borrower", 2)
        with submitted(alice, gang("own", "blue", pods=1, gpus=4)):
            running(cluster, "blue", "own", 1)
            assert pools_of(cluster, "blue", "own") == {SPOT}
            assert phase_of(cluster, "red", "borrower") == "Running"


def test_a_job_that_selects_a_pool_waits_only_for_that_pools_quota(cluster: Cluster, paths: Paths) -> None:
    """Sixteen reserved GPUs are idle meanwhile."""
    bob = as_member(paths, "bob")
    with submitted(bob, on(SPOT, gang("all", "red", pods=2, gpus=8)), on(SPOT, gang("more", "red", pods=1, gpus=1))):
        running(cluster, "red", "all", 2)
        assert pools_of(cluster, "red", "all") == {SPOT}
        eventually(
            "Kueue says why the other waits",
            lambda: _said(cluster, "red", "more"),
            lambda said: "flavor spot" in said and "flavor default-flavor doesn't match node affinity" in said,
        )
        assert phase_of(cluster, "red", "more") == "Suspended"


def test_an_owner_takes_its_quota_of_a_pool_back(cluster: Cluster, paths: Paths) -> None:
    alice, bob = as_member(paths, "alice"), as_member(paths, "bob")
    borrowers = [on(SPOT, gang(f"borrower-{index}", "red", pods=1, gpus=8)) for index in range(2)]
    with submitted(bob, *borrowers):
        for index in range(2):
            running(cluster, "red", f"borrower-{index}", 1)
        with submitted(alice, on(SPOT, gang("own", "blue", pods=1, gpus=8))):
            running(cluster, "blue", "own", 1)
            holds(cluster, "blue", {SPOT: ("8", "0")})
            holds(cluster, "red", {SPOT: ("8", "8")})


def test_a_lost_node_lowers_only_its_pools_lending(cluster: Cluster) -> None:
    assert lent(cluster) == [None, None]
    cordon(cluster, "gpu-node-spot-0", is_cordoned=True)
    try:
        eventually("no spot GPU is lent", lambda: lent(cluster), lambda limits: limits == [None, "0"])
    finally:
        cordon(cluster, "gpu-node-spot-0", is_cordoned=False)
    eventually("all are lent again", lambda: lent(cluster), lambda limits: limits == [None, None])


def _said(cluster: Cluster, team: str, job: str) -> str:
    """Return Kueue's reason for not admitting a job, empty before it reports one."""
    for item in cluster.list(KUEUE, "Workload", team):
        if item["metadata"]["ownerReferences"][0]["name"] == job:
            conditions = (item.get("status") or {}).get("conditions") or ()
            return next((str(each["message"]) for each in conditions if each["type"] == "QuotaReserved"), "")
    return ""
