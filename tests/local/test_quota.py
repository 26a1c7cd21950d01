"""Quotas as members of teams meet them: an owner's GPUs come back to it whatever it borrows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from emulator.paths import Paths
from tests.local.environment import Cluster, Project, dev_settings, eventually, gang
from tests.local.member import as_member
from tests.local.standing import Standing
from tests.local.submission import submitted

KUEUE = "kueue.x-k8s.io/v1beta1"
APPWRAPPER = "workload.codeflare.dev/v1beta2"
QUOTA = {"cpu": 224, "memory": "2000G", "nvidia.com/gpu": 8, "pods": 100}
KUEUE_THAT_RUNS_HERE = "v0.15.2"


@pytest.fixture(scope="module", autouse=True)
def project(standing: Standing) -> Project:
    return standing.up("dev", declared)


@pytest.fixture
def settings(project: Project) -> dict[str, Any]:
    return declared(project)


def declared(project: Project) -> dict[str, Any]:
    """Four nodes of eight GPUs: the slack queue has one, each of three teams one."""
    settings = dev_settings(project.mirror)
    settings["nodes"]["count"] = 4
    settings["queueing"] |= {"slack": QUOTA, "kueueVersion": KUEUE_THAT_RUNS_HERE}
    settings["teams"] = [
        {"name": team, "users": [user], "quota": QUOTA}
        for team, user in (("blue", "alice"), ("green", "carol"), ("red", "bob"))
    ]
    settings["samples"] = {}
    return settings


def cpus(name: str, namespace: str, amount: int) -> dict[str, Any]:
    """An AppWrapper around one pod with this many CPUs and no GPU."""
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
    """Blue and green run twice their quota, in jobs of this many GPUs: they have the slack queue's and red's GPUs."""
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


def test_an_owner_gets_its_gpus_back_while_it_borrows_cpus(cluster: Cluster, paths: Paths) -> None:
    """The owner has used none of its GPUs, and of its neighbours' CPUs as many as it was let."""
    bob = as_member(paths, "bob")
    hungry = [cpus(f"cpus-{index}", "red", 200) for index in range(3)]
    with everything_is_lent(paths, cluster, gpus=8), submitted(bob, *hungry):
        eventually("red borrows CPUs", lambda: borrowed(cluster, "cpu"), lambda amount: amount == 176)
        with submitted(bob, gang("own", "red", pods=1, gpus=8)):
            eventually("red's job has its GPUs", lambda: phases(cluster, "red")["own"], lambda p: p == "Running")
            eventually(
                "one borrower gave way",
                lambda: sorted(str(phase) for team in ("blue", "green") for phase in phases(cluster, team).values()),
                lambda found: found == ["Running", "Running", "Running", "Suspended"],
            )


def test_with_a_limit_below_one_gpus_part_it_gets_them_back_from_the_smallest_jobs(
    cluster: Cluster, paths: Paths, project: Project, settings: dict[str, Any]
) -> None:
    blue, green, red = settings["teams"]
    limit = {"cpu": 27, "memory": "200G", "pods": 12}  # one of 32 GPUs has 28 CPUs, 250G, 12.5 pods
    project.configure({**settings, "teams": [blue, green, {**red, "borrowingLimit": limit}]})
    project.up()
    bob = as_member(paths, "bob")
    with everything_is_lent(paths, cluster, gpus=1), submitted(bob, cpus("cpus", "red", 240)):
        eventually("red borrows CPUs", lambda: borrowed(cluster, "cpu"), lambda amount: amount == 16)
        with submitted(bob, gang("own", "red", pods=1, gpus=8)):
            eventually("red's job has its GPUs", lambda: phases(cluster, "red")["own"], lambda p: p == "Running")


def borrowed(cluster: Cluster, resource: str) -> int:
    """How much red's queue says that it borrows."""
    queue = cluster.get(KUEUE, "ClusterQueue", "red-cluster-queue")
    assert queue is not None
    flavors = (queue.get("status") or {}).get("flavorsReservation") or []
    used = {item["name"]: item.get("borrowed", "0") for flavor in flavors for item in flavor["resources"]}
    return int(used.get(resource, 0))
