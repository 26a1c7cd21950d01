"""Queues for the users of a team: a user can submit only to their own queue."""

from typing import Any

import pytest

from components import names
from emulator.paths import Paths
from lab.scenarios.size import Size, scenario_settings
from tests.local.environment import Cluster, Project, gang
from tests.local.member import as_member, dry_run, refused
from tests.local.standing import Standing
from tests.local.submission import submitted


@pytest.fixture(scope="module", autouse=True)
def project(standing: Standing) -> Project:
    return standing.up("dev", lambda project: scenario_settings(project, Size()))


def job(queue: str | None, team: str = "blue") -> dict[str, Any]:
    labels = {names.QUEUE_LABEL: queue} if queue is not None else {}
    return gang("train", team, 1, 1, labels=labels)


@pytest.mark.parametrize("queue", ["user-carol", "default-queue", None, "user-nobody", ""])
def test_a_users_jobs_go_through_the_users_own_queue(queue: str | None, paths: Paths) -> None:
    said = refused(dry_run, as_member(paths, "alice"), job(queue))
    assert "mlbatch-team-user-queues" in said
    assert f"set the label {names.QUEUE_LABEL} to user-alice" in said


def test_a_user_without_a_queue_uses_the_shared_one(paths: Paths, cluster: Cluster) -> None:
    """For example a service account of the team, with whose rights a pod submits jobs."""
    account = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "robot", "namespace": "blue"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": names.EDITOR_ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "blue"}],
    }
    cluster.create(account)
    try:
        robot = as_member(paths, "system:serviceaccount:blue:default")
        dry_run(robot, job(names.LOCAL_QUEUE))
        assert "to default-queue" in refused(dry_run, robot, job("user-alice"))
    finally:
        cluster.delete(account["apiVersion"], "RoleBinding", "robot", "blue")


def test_a_job_that_waits_stays_in_its_queue(paths: Paths, cluster: Cluster) -> None:
    alice = as_member(paths, "alice")
    large = gang("train", "blue", 1, 1000, labels={names.QUEUE_LABEL: "user-alice"})
    with submitted(cluster, large):
        change = {"metadata": {"labels": {names.QUEUE_LABEL: "user-carol"}}}
        refused(alice.patch, large["apiVersion"], "AppWrapper", "train", change, "blue")
        alice.patch(large["apiVersion"], "AppWrapper", "train", {"metadata": {"labels": {"mine": "yes"}}}, "blue")


def test_a_user_who_may_create_queues_submits_to_any(paths: Paths, cluster: Cluster) -> None:
    for queue in ("user-carol", names.LOCAL_QUEUE):
        dry_run(cluster, job(queue))


def test_a_team_without_such_queues_is_as_before(paths: Paths) -> None:
    dry_run(as_member(paths, "bob"), job(None, "red"))


def test_a_member_cannot_create_queues_or_write_annotations(paths: Paths) -> None:
    alice = as_member(paths, "alice")
    own = {
        "apiVersion": names.KUEUE_API,
        "kind": "LocalQueue",
        "metadata": {"name": "mine", "namespace": "blue"},
        "spec": {"clusterQueue": "blue-cluster-queue"},
    }
    assert "forbidden" in refused(dry_run, alice, own)
    change = {"metadata": {"annotations": {"mlbatch/user-queues": "user-alice=alice\nuser-carol=alice"}}}
    assert "forbidden" in refused(alice.patch, "v1", "Namespace", "blue", change)
