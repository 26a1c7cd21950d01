"""The exact answers about a job for messages of the replica's Kueue and API server."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from ask.answer import Answer, Verdict
from ask.manifest import Job
from ask.question import Question
from tests.local.environment import gang

LACKS = "insufficient unused quota for {} in flavor default-flavor, {} more needed"
FULL = "couldn't assign flavors to pod set train-0: "
MOST = (
    "insufficient quota for nvidia.com/gpu in flavor default-flavor, previously considered podsets requests (0) + "
    "current podset request (24) > maximum capacity (16)"
)


def queue(name: str, gpus: int, annotations: dict[str, str] | None = None, **limits: str) -> dict[str, Any]:
    """A ClusterQueue of the platform."""
    quota = {"name": "nvidia.com/gpu", "nominalQuota": str(gpus), **limits}
    group = {
        "coveredResources": ["cpu", "nvidia.com/gpu"],
        "flavors": [{"name": "default-flavor", "resources": [quota]}],
    }
    metadata = {"name": f"{name}-cluster-queue", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"cohort": "default-cohort", "resourceGroups": [group]}}


class Replica:
    """A client of a replica whose Kueue has one message about the job. refusal: the API server's rejection."""

    def __init__(self, said: str = "", refusal: ApiException | None = None) -> None:
        self.said, self.refusal, self.made = said, refusal, list[dict[str, Any]]()
        self.resources = self
        allocatable = {"cpu": "224", "memory": "2000Gi", "nvidia.com/gpu": "8", "pods": "110"}
        nodes = [
            {"metadata": {"name": f"gpu-{n}", "labels": {"gpu": "true"}}, "status": {"allocatable": allocatable}}
            for n in range(3)
        ]
        large = {"metadata": {"name": "system", "labels": {}}, "status": {"allocatable": {"cpu": "999", "pods": "999"}}}
        self.objects: dict[str, list[dict[str, Any]]] = {
            "Node": [*nodes, large, {**large, "metadata": {"name": "local-controllers", "labels": {"gpu": "true"}}}],
            "LocalQueue": [{"metadata": {"name": "default-queue"}, "spec": {"clusterQueue": "blue-cluster-queue"}}],
            "ClusterQueue": [queue("blue", 8), queue("red", 8), queue("slack", 8)],
            "ResourceFlavor": [{"metadata": {"name": "default-flavor"}, "spec": {"nodeLabels": {"gpu": "true"}}}],
            "Workload": [],
        }

    def get(self, *kinds: Any, kind: str = "", **options: Any) -> Any:
        if "api_version" in options:
            return kind
        items = self.objects.get(kinds[0], [])
        return {"items": items}

    def create(self, kind: str, **options: Any) -> Any:
        self.made.append(options)
        if self.refusal is not None:
            raise self.refusal
        pods: list[Any] = [
            {"name": part["template"]["metadata"]["name"], "count": part["template"]["spec"].get("parallelism", 1)}
            | {"template": part["template"]["spec"]["template"]}
            for part in options["body"]["spec"].get("components", ())
        ]
        condition = {"type": "QuotaReserved", "status": "False", "message": self.said}
        workload = {
            "metadata": {
                "name": "w",
                "namespace": "blue",
                "uid": "w",
                "creationTimestamp": "2026",
                "ownerReferences": [{"uid": "1", "name": "job"}],
            },
            "spec": {"queueName": "default-queue", "podSets": pods},
            "status": {"conditions": [condition]},
        }
        if kind == "AppWrapper":
            noted = [{"podSets": [{"path": "template.spec.template"}]}] * len(options["body"]["spec"]["components"])
            metadata = {**options["body"]["metadata"], "uid": "1"}
            made = {**options["body"], "metadata": metadata, "status": {"componentStatus": noted}}
            self.objects["AppWrapper"] = [made]
            self.objects["Workload"] = [workload]
        return SimpleNamespace(metadata=SimpleNamespace(uid="1"))

    def delete(self, kind: str, **options: Any) -> None:
        self.objects["Workload"] = []


def asked(replica: Replica, pods: int = 1, gpus: int = 1) -> Answer:
    client: Any = replica
    return Question(client, Job(gang("job", "blue", pods=pods, gpus=gpus)), "blue", "alice", "readers").ask()


def refused(status: int, message: str) -> ApiException:
    error = ApiException(status=status, reason="x")
    error.body = json.dumps({"message": message})
    return error


def test_a_job_is_submitted_as_kubectl_does_in_the_members_name() -> None:
    replica = Replica(FULL + LACKS.format("nvidia.com/gpu", 8))
    asked(replica)
    first = replica.made[0]
    assert first["query_params"] == [("fieldValidation", "Strict")]
    assert first["header_params"] == {"Impersonate-User": "alice", "Impersonate-Group": "readers"}


@pytest.mark.parametrize(
    ("said", "resource"),
    [
        (
            f"{LACKS.format('cpu', '500m')}, {LACKS.format('nvidia.com/gpu', 8)}",
            "500m cpu more, 8 nvidia.com/gpu more",
        ),
        (
            "insufficient unused quota in cohort for nvidia.com/gpu in flavor default-flavor, 8 more needed",
            "8 nvidia.com/gpu more",
        ),
    ],
    ids=["two resources", "Kueue of OpenShift AI"],
)
def test_what_waits_is_told_all_that_lacks(said: str, resource: str) -> None:
    answer = asked(Replica(FULL + said))
    assert (answer.verdict, answer.resource) == (Verdict.WAITS, resource)


def test_more_than_there_is_never_runs() -> None:
    replica = Replica(FULL + MOST)
    replica.objects["ClusterQueue"] = [queue("blue", 8), queue("red", 4), queue("slack", 4)]
    answer = asked(replica)
    assert (answer.verdict, answer.change) == (Verdict.NEVER, "ask for 16 nvidia.com/gpu in all, in place of 24")


@pytest.mark.parametrize(
    "said",
    [
        "insufficient unused quota in cohort for nvidia.com/gpu in flavor default-flavor, 8 more needed",
        "insufficient quota for nvidia.com/gpu in flavor default-flavor in ClusterQueue",
        "borrowing limit for nvidia.com/gpu in flavor default-flavor exceeded",
    ],
)
def test_kueue_of_openshift_ai_does_not_say_that_there_is_never_as_much(said: str) -> None:
    answer = asked(Replica(FULL + said), pods=3, gpus=8)
    assert answer.verdict is Verdict.WAITS
    replica = Replica(FULL + said)
    replica.objects["ClusterQueue"] = [queue("blue", 8), queue("red", 4), queue("slack", 4)]
    answer = asked(replica, pods=3, gpus=8)
    assert (answer.verdict, answer.change) == (Verdict.NEVER, "ask for 16 nvidia.com/gpu in all, in place of 24")
    assert asked(replica, pods=2, gpus=8).verdict is Verdict.WAITS


def test_what_queues_lend_less_of_because_nodes_are_lost_comes_back() -> None:
    """Kueue's maximum follows the lending limits, which the slack controller lowers and raises again."""
    replica = Replica(FULL + MOST)
    replica.objects["ClusterQueue"][2] = queue("slack", 8, lendingLimit="0")
    answer = asked(replica)
    assert answer.verdict is Verdict.WAITS
    assert answer.resource == "nodes that are lost now: the queues lend 16 nvidia.com/gpu until they are back"
    declared = {"mlbatch/lending-limits": json.dumps({"nvidia.com/gpu": "0"})}
    replica.objects["ClusterQueue"][1] = queue("red", 8, annotations=declared, lendingLimit="0")
    assert asked(replica).verdict is Verdict.NEVER, "red never lends any"
    replica.objects["ClusterQueue"] = [queue("blue", 8, borrowingLimit="8"), queue("red", 8), queue("slack", 8)]
    assert asked(replica).verdict is Verdict.NEVER, "blue may not borrow as much"


@pytest.mark.parametrize(
    "said",
    [
        "flavor default-flavor doesn't match node affinity",
        "untolerated taint {a b NoSchedule <nil>} in flavor default-flavor",
    ],
)
def test_who_selects_nodes_without_quota_never_runs(said: str) -> None:
    answer = asked(Replica(FULL + said))
    assert (answer.verdict, answer.resource) == (Verdict.NEVER, "nodes")


def test_a_resource_that_no_queue_covers_is_told_the_one_that_was_meant() -> None:
    answer = asked(Replica(FULL + "resource nvidia.com/gpus unavailable in ClusterQueue"))
    assert answer.verdict is Verdict.NEVER
    assert answer.change is not None
    assert answer.change.startswith("did you mean nvidia.com/gpu? Else leave nvidia.com/gpus out")


def test_nodes_without_quota_are_no_room() -> None:
    """Neither the cluster's own nodes nor the one of the replica's controllers take what queues admit."""
    answer = asked(Replica("whatever"), pods=331, gpus=0)
    assert (answer.verdict, answer.change) == (Verdict.NEVER, "run 330 pods, in place of 331, or ask for less in each")


@pytest.mark.parametrize(
    ("status", "message"),
    [(500, "failed calling webhook x: no endpoints"), (503, "busy"), (429, "too many requests"), (504, "timeout")],
)
def test_a_replica_that_fails_refuses_nobody(status: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ask.question.SECONDS", 0)
    with pytest.raises(ApiException):
        asked(Replica(refusal=refused(status, message)))


def test_a_refusal_is_told_with_its_rule() -> None:
    answer = asked(Replica(refusal=refused(403, 'appwrappers is forbidden: User "alice" cannot create resource')))
    assert (answer.verdict, answer.rule) == (Verdict.REFUSED, "RBAC")
    answer = asked(Replica(refusal=refused(400, 'strict decoding error: unknown field "spec.componets"')))
    assert (answer.verdict, answer.rule) == (Verdict.REFUSED, "validation")
