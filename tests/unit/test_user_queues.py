"""Queues for the users of a team: their names, the team's objects, and how Kueue weighs use."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components import names
from components.artifacts import Mirror
from components.queueing.kueue import FairSharing
from components.tenancy.user_queues import annotation, queue_name
from stacks.deploy import deploy
from stacks.job_manifests import manifest
from tests.unit.configurations import errors_of
from tests.unit.harness import Record, build
from tests.unit.test_aks import settings
from tests.unit.test_openshift_ai import chosen
from tests.unit.test_stack import dev, stack_of

QUOTA = {"cpu": 8, "memory": "100Gi", "nvidia.com/gpu": 8}
BLUE = {"name": "blue", "users": ["alice", "carol@example.org"], "groups": ["lab"], "quota": QUOTA}
RED = {"name": "red", "users": ["bob"], "quota": QUOTA}


@given(st.lists(st.text(st.characters(blacklist_categories=("Cc", "Cs")), min_size=1, max_size=120), unique=True))
def test_each_user_has_a_queue_that_a_label_can_name(users: list[str]) -> None:
    found = [queue_name(user) for user in users]
    assert len(set(found)) == len(users)
    assert all(re.fullmatch(r"user-[a-z0-9-]*[a-z0-9]", name) and len(name) <= 63 for name in found)
    assert names.LOCAL_QUEUE not in found


def test_a_plain_name_stays_as_it_is() -> None:
    assert queue_name("alice") == "user-alice"
    assert annotation(["alice", "bob"]) == "user-alice=alice\nuser-bob=bob"


@pytest.fixture(scope="module")
def record(mirror: Mirror, same_kubeconfig: Path) -> Record:
    raw = {**dev(), "teams": [{**BLUE, "userFairSharing": True}, RED], "queueing": {"fairSharingHalfLifeMinutes": 60}}
    return build(lambda: deploy(stack_of(raw, mirror, same_kubeconfig)))


class TestTeam:
    def test_each_user_has_a_queue_and_the_others_share_one(self, record: Record) -> None:
        found = {(item.inputs["metadata"]["namespace"], item.object_name) for item in record.of("LocalQueue")}
        other = queue_name("carol@example.org")
        assert found == {*(("blue", name) for name in ("default-queue", "user-alice", other)), ("red", "default-queue")}
        told = record.one("Namespace", "blue").inputs["metadata"]["annotations"][names.USER_QUEUES]
        assert told.splitlines() == ["user-alice=alice", f"{other}=carol@example.org"]
        assert names.USER_QUEUES not in (record.one("Namespace", "red").inputs["metadata"].get("annotations") or {})

    def test_no_job_takes_the_place_of_another_one(self, record: Record) -> None:
        blue, red = (record.one("ClusterQueue", f"{team}-cluster-queue").inputs["spec"] for team in ("blue", "red"))
        assert blue["admissionScope"] == {"admissionMode": "UsageBasedAdmissionFairSharing"}
        assert blue["preemption"]["withinClusterQueue"] == "Never"
        assert "admissionScope" not in red
        assert red["preemption"]["withinClusterQueue"] == "LowerOrNewerEqualPriority"

    def test_gpus_alone_are_weighed(self, record: Record) -> None:
        (config,) = (
            item.inputs["data"] for item in record.of("ConfigMap") if item.object_name == "kueue-manager-config"
        )
        found: dict[str, Any] = yaml.safe_load(config["controller_manager_config.yaml"])["admissionFairSharing"]
        assert (found["usageHalfLifeTime"], found["usageSamplingInterval"]) == ("60m", "180s")
        assert {name for name, weight in found["resourceWeights"].items() if weight} == {names.GPU}
        assert set(names.RESOURCES) <= set(found["resourceWeights"])


@pytest.mark.parametrize(("minutes", "sampling"), [(1, "3s"), (100, "300s"), (7 * 24 * 60, "300s")])
def test_use_is_sampled_often_enough(minutes: int, sampling: str) -> None:
    assert FairSharing(half_life_minutes=minutes).body()["usageSamplingInterval"] == sampling


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({**dev(), "teams": [{**BLUE, "users": [], "userFairSharing": True}]}, "the team lists none"),
        (chosen({"teams": [{**BLUE, "userFairSharing": True}]}), "does not record the usage of users correctly"),
    ],
)
def test_where_there_is_none_it_is_refused(raw: dict[str, Any], said: str) -> None:
    assert any(said in str(error) for error in errors_of(raw))


@pytest.mark.parametrize(("user", "queue"), [("alice", "user-alice"), (None, names.LOCAL_QUEUE)])
@pytest.mark.parametrize(
    ("job", "changes"), [("nccl", {"tag": "1"}), ("synthetic", {"trace": "reference/examples/trace.csv"})]
)
def test_a_printed_job_goes_through_its_users_queue(
    user: str | None, queue: str, job: str, changes: dict[str, Any]
) -> None:
    blue, red = ({**team, "quota": None, "share": 1} for team in (BLUE, RED))
    raw = settings(teams=[{**blue, "users": ["alice"], "userFairSharing": True}, red])
    found = yaml.safe_load_all(manifest(raw, job, changes, {"team": "blue", "user": user}))
    jobs = [each for each in found if each["kind"] == "AppWrapper"]
    assert {each["metadata"]["labels"][names.QUEUE_LABEL] for each in jobs} == {queue}
