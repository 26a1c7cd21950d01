"""Quotas for members of teams: an owner gets its GPUs back, even if it borrows other resources."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from emulator.paths import Paths
from tests.local.environment import Cluster, Project, eventually, gang
from tests.local.member import as_member
from tests.local.standing import Standing
from tests.local.submission import submitted
from tests.local.test_recovery import declared

KUEUE = "kueue.x-k8s.io/v1beta2"
APPWRAPPER = "workload.codeflare.dev/v1beta2"


@pytest.fixture(scope="module", autouse=True)
def project(standing: Standing) -> Project:
    return standing.up("dev", declared)


def cpus(name: str, namespace: str, amount: int) -> dict[str, Any]:
    """Return an AppWrapper with one pod with this many CPUs and no GPU."""
    wrapper = gang(name, namespace, pods=1, gpus=0)
    template = wrapper["spec"]["components"][0]["template"]["spec"]["template"]
    resources = {"cpu": str(amount), "memory": "1Gi"}
    template["spec"]["containers"][0]["resources"] = {"requests": resources, "limits": resources}
    return wrapper


def phases(cluster: Cluster, namespace: str) -> dict[str, str | None]:
    found = cluster.list(APPWRAPPER, "AppWrapper", namespace)
    return {item["metadata"]["name"]: (item.get("status") or {}).get("phase") for item in found}


@contextlib.contextmanager
def everything_is_lent(paths: Paths, cluster: Cluster, gpus: int) -> Iterator[None]:
    """Let blue and green run twice their quota, in jobs of this many GPUs. They borrow slack's and red's GPUs."""
    teams = {"blue": as_member(paths, "alice"), "green": as_member(paths, "carol")}
    jobs = {team: [gang(f"gpus-{index}", team, pods=1, gpus=gpus) for index in range(16 // gpus)] for team in teams}
    with submitted(teams["blue"], *jobs["blue"]), submitted(teams["green"], *jobs["green"]):
        for team in teams:
            eventually(
                f"{team} runs beyond its quota",
                lambda team=team: phases(cluster, team),
                lambda found: set(found.values()) == {"Running"},
            )
        yield


@pytest.mark.parametrize("gpus", [8, pytest.param(1, marks=pytest.mark.soak("a minute; eight GPUs are the same rule"))])
def test_an_owner_gets_its_gpus_back_while_it_borrows_cpus(cluster: Cluster, paths: Paths, gpus: int) -> None:
    """The owner uses none of its GPUs, and all CPUs of other teams. Each borrower's job has this many GPUs."""
    bob = as_member(paths, "bob")
    hungry = [cpus(f"cpus-{index}", "red", 200) for index in range(3)]
    with everything_is_lent(paths, cluster, gpus), submitted(bob, *hungry):
        eventually("red borrows CPUs", lambda: borrowed(cluster, "cpu"), lambda amount: amount == 376)
        with submitted(bob, gang("own", "red", pods=1, gpus=8)):
            eventually("red's job has its GPUs", lambda: phases(cluster, "red")["own"], lambda p: p == "Running")
            eventually(
                "as few borrowers gave way as have its GPUs",
                lambda: [str(phase) for team in ("blue", "green") for phase in phases(cluster, team).values()],
                lambda found: found.count("Suspended") == 8 // gpus and found.count("Running") == 24 // gpus,
            )


def borrowed(cluster: Cluster, resource: str) -> int:
    """Return the amount that red's queue borrows."""
    queue = cluster.get(KUEUE, "ClusterQueue", "red-cluster-queue")
    assert queue is not None
    flavors = (queue.get("status") or {}).get("flavorsReservation") or []
    used = {item["name"]: item.get("borrowed", "0") for flavor in flavors for item in flavor["resources"]}
    return int(used.get(resource, 0))
