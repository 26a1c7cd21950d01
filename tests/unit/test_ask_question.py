"""How the messages of Kueue, the API server and the scheduler become answers."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import api_exception

from ask import question, wrapped
from ask.answer import Answer, Verdict
from ask.manifest import read
from ask.question import Question
from tests.local.environment import gang

POD = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "1"}}}]}
NODE = {
    "metadata": {"name": "gpu-node-0", "labels": {}},
    "status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "9", "pods": "110"}},
}


TOO_MUCH = (
    "insufficient quota for nvidia.com/gpu in flavor default-flavor, previously considered podsets requests (8) + "
    "current podset request (24) > maximum capacity (24)"
)


def workload(name: str, uid: str, *conditions: tuple[str, str, str], created: str = "2", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "blue",
            "name": f"appwrapper-{name}",
            "uid": f"workload-{uid}",
            "creationTimestamp": created,
            "ownerReferences": [{"uid": uid, "name": name}],
        },
        "spec": {"queueName": "default-queue", "podSets": [{"count": 1, "template": {"spec": POD}}], **spec},
        "status": {
            "conditions": [
                {"type": kind, "status": status, "message": said, "lastTransitionTime": created}
                for kind, status, said in conditions
            ]
        },
    }


def waiting(said: str) -> dict[str, Any]:
    return workload("job", "asked", ("QuotaReserved", "False", said))


RAY_JOB = {
    "apiVersion": "ray.io/v1",
    "kind": "RayJob",
    "metadata": {"name": "job", "labels": {"kueue.x-k8s.io/queue-name": "default-queue"}},
    "spec": {"entrypoint": "true"},
}


class Replica:
    """A cluster that has these objects after the job is submitted, until the job is deleted.

    refused: its answer to objects of a kind. gives_way: what Kueue has evicted by then, which stays. tried: the
    requests that it received.
    """

    gives_way: Sequence[dict[str, Any]] = ()
    query: list[tuple[str, str]] | None = None

    def __init__(self, refused: dict[str, tuple[int, str]] | None = None, **objects: list[dict[str, Any]]) -> None:
        self.refused, self.objects = refused or {}, {"Node": [NODE], **objects}
        self.before = self.objects
        self.resources = SimpleNamespace(get=lambda api_version, kind: kind)
        self.headers: dict[str, str] = {}
        self.tried: list[dict[str, Any]] = []

    def get(self, kind: str, **_: Any) -> Any:
        return {"items": self.objects.get(kind, [])}

    def create(
        self,
        kind: str,
        body: dict[str, Any],
        header_params: dict[str, str] | None = None,
        query_params: list[tuple[str, str]] | None = None,
        dry_run: str | None = None,
        **_: Any,
    ) -> Any:
        if dry_run:
            self.tried.append(body)
        else:
            self.headers |= header_params or {}
            self.query = query_params
            status = {"componentStatus": [{"podSets": [{"path": "template.spec.template"}]}]}
            made = {**body, "metadata": {**body["metadata"], "uid": "asked"}, "status": status}
            self.objects = {**self.objects, kind: [made]}
            self.objects["Workload"] = [*self.objects.get("Workload", ()), *self.gives_way]
        if kind in self.refused:
            status, said = self.refused[kind]
            error = ApiException(status=status)
            error.body = json.dumps({"message": said})
            raise error
        return SimpleNamespace(metadata=SimpleNamespace(uid="asked"))

    def delete(self, kind: str, **_: Any) -> None:
        self.objects = {"Workload": list(self.gives_way)}


def asked(replica: Any, user: str = "alice", group: str | None = None) -> Answer:
    job = read(yaml.safe_dump(gang("job", "blue", pods=1, gpus=8)), "blue")
    return Question(replica, job, "blue", user, group).ask()


def test_a_job_is_submitted_as_kubectl_does_in_the_members_name() -> None:
    """The name is UTF-8, in a header that the client writes as Latin-1."""
    replica = Replica(Workload=[waiting("no")])
    asked(replica, "Łukasz", "Forschung für alle")
    assert replica.query == [("fieldValidation", "Strict")]
    sent = {header: value.encode("latin-1").decode() for header, value in replica.headers.items()}
    assert sent == {"Impersonate-User": "Łukasz", "Impersonate-Group": "Forschung für alle"}


def test_missing_quota_is_told_with_those_who_come_first() -> None:
    said = "insufficient unused quota for nvidia.com/gpu in flavor default-flavor, 8 more needed"
    others = [
        workload("older", "1", ("QuotaReserved", "False", "x"), created="1"),
        workload("newer", "2", ("QuotaReserved", "False", "x"), created="3"),
        workload("urgent", "3", ("QuotaReserved", "False", "x"), created="4", priority=10),
        workload("runs", "4", ("QuotaReserved", "True", "x"), created="1"),
        workload("over", "5", ("QuotaReserved", "False", "x"), ("Finished", "True", "x"), created="1"),
    ]
    answer = asked(Replica(Workload=[*others, waiting(said)]))
    assert (answer.verdict, answer.resource) == (Verdict.WAITS, "8 nvidia.com/gpu more")
    assert answer.behind == ["blue/urgent", "blue/older"]


@pytest.mark.parametrize(
    ("scope", "behind"),
    [
        ({"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}, ["blue/light", "blue/older"]),
        ({}, ["blue/urgent", "blue/older"]),
    ],
)
def test_jobs_of_users_who_have_used_less_come_first(scope: dict[str, Any], behind: list[str]) -> None:
    said = "insufficient unused quota for nvidia.com/gpu in flavor default-flavor, 8 more needed"
    pending = ("QuotaReserved", "False", "x")
    others = [
        workload("older", "1", pending, created="1"),
        workload("light", "2", pending, created="3", queueName="user-carol"),
        workload("urgent", "3", pending, created="4", priority=10, queueName="user-heavy"),
        workload("elsewhere", "4", pending, created="1", queueName="other"),
    ]
    queue = {"metadata": {"name": "blue-cluster-queue"}, "spec": scope}
    locals_ = [
        {
            "metadata": {"name": name, "namespace": "blue"},
            "spec": {"clusterQueue": target},
            "status": {
                "fairSharing": {
                    "admissionFairSharingStatus": {"consumedResources": {"nvidia.com/gpu": used, "memory": "9Ti"}}
                }
            },
        }
        for name, target, used in (
            ("default-queue", "blue-cluster-queue", "5"),
            ("user-carol", "blue-cluster-queue", "4500m"),
            ("user-heavy", "blue-cluster-queue", "80"),
            ("other", "red-cluster-queue", "0"),
        )
    ]
    answer = asked(Replica(Workload=[*others, waiting(said)], ClusterQueue=[queue], LocalQueue=locals_))
    assert answer.behind == behind


@pytest.mark.parametrize(
    ("said", "change"),
    [
        (TOO_MUCH, "ask for 24 nvidia.com/gpu in all, in place of 32"),
        ("resource example.org/fpga unavailable in ClusterQueue", "leave example.org/fpga out of the job's requests"),
    ],
)
def test_what_no_queue_ever_has_is_never(said: str, change: str) -> None:
    answer = asked(Replica(Workload=[waiting(said)]))
    assert answer.verdict is Verdict.NEVER
    assert answer.change is not None
    assert answer.change.startswith(change)


def test_a_pod_that_no_node_holds_is_never_though_quota_may_come() -> None:
    item = waiting("insufficient unused quota for cpu in flavor default-flavor, 8 more needed")
    item["spec"]["podSets"][0]["count"] = 2
    answer = asked(Replica(Workload=[item]))
    assert (answer.verdict, answer.change) == (Verdict.NEVER, "run 1 pods, in place of 2, or ask for less in each")


def test_what_runs_says_where_and_at_whose_cost() -> None:
    admitted = workload("job", "asked", ("QuotaReserved", "True", "x"))
    pod = {"metadata": {"namespace": "blue"}, "spec": {**POD, "nodeName": "gpu-node-0"}, "status": {}}
    team = {"metadata": {"name": "blue"}}
    answer = asked(Replica(Workload=[admitted], Pod=[pod], Namespace=[team]))
    assert (answer.verdict, answer.nodes, answer.preempts) == (Verdict.ADMITTED, {"gpu-node-0": 1}, [])


def test_a_pod_without_a_place_waits_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "SETTLED", 0.0)
    admitted = workload("job", "asked", ("QuotaReserved", "True", "x"))
    homeless = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]
    pod = {"metadata": {"namespace": "blue"}, "spec": POD, "status": {"conditions": homeless}}
    answer = asked(Replica(Workload=[admitted], Pod=[pod], Namespace=[{"metadata": {"name": "blue"}}]))
    assert (answer.verdict, answer.reason) == (Verdict.WAITS, "0/1 nodes are available")


DENIED = "x is forbidden: ValidatingAdmissionPolicy '{0}' with binding '{0}' denied request: {1}"
NO_RIGHT = 'User "alice" cannot create resource'
REFUSALS = {
    "a policy": ("AppWrapper", 422, DENIED.format("mlbatch-team-quota-gate", "no"), "mlbatch-team-quota-gate", "no"),
    "a policy for its pods": (
        "Pod",
        422,
        DENIED.format("mlbatch-team-pod-isolation", "spec.nodeName: no"),
        "mlbatch-team-pod-isolation",
        "spec.nodeName: no",
    ),
    "rights": ("AppWrapper", 403, NO_RIGHT, "RBAC", NO_RIGHT),
    "a number": ("AppWrapper", 403, "exceeded quota: bounds", "ResourceQuota", "exceeded quota: bounds"),
    "its name": ("AppWrapper", 409, "job already exists", "name", "job already exists"),
    "its form": ("AppWrapper", 400, "unknown field", "validation", "unknown field"),
}


@pytest.mark.parametrize(("kind", "status", "said", "rule", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_names_its_rule(kind: str, status: int, said: str, rule: str, reason: str) -> None:
    answer = asked(Replica({kind: (status, said)}, Workload=[waiting("no")]))
    assert (answer.verdict, answer.rule, answer.reason) == (Verdict.REFUSED, rule, reason)
    assert answer.change


def test_an_appwrappers_pods_are_tried_as_they_stand_in_it_and_not_as_kueue_copies_them() -> None:
    document = gang("job", "blue", pods=1, gpus=8)
    template = document["spec"]["components"][0]["template"]["spec"]["template"]
    template["spec"]["hostNetwork"] = True
    template["metadata"] = {"annotations": {"k8s.v1.cni.cncf.io/networks": "another"}}
    replica = Replica(Workload=[waiting("no")])
    Question(replica, read(yaml.safe_dump(document), "blue"), "blue", "alice").ask()
    (pod,) = [body for body in replica.tried if body["kind"] == "Pod"]
    assert pod["spec"]["hostNetwork"] is True
    assert pod["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "another"}


def test_what_an_appwrapper_makes_is_tried_as_it_makes_it() -> None:
    """For example, a Job without restartPolicy is created after its AppWrapper is admitted, and is never valid."""
    said = 'Job.batch "job" is invalid: spec.template.spec.restartPolicy: Required value'
    replica = Replica({"Job": (422, said)}, Workload=[waiting("no")])
    answer = asked(replica)
    assert (answer.verdict, answer.rule, answer.reason) == (Verdict.REFUSED, "validation", said)
    (job,) = [each for each in replica.tried if each["kind"] == "Job"]
    labels = {"workload.codeflare.dev/appwrapper": "job"}
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"] == labels
    assert job["metadata"]["namespace"] == "blue"
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("AppWrapper", "job", "asked", True)
    for status, of_others in (
        (409, "exists"),
        (403, "forbidden"),
        (500, "webhook"),
        (422, DENIED.format("gate", "no")),
    ):
        other = Replica({"Job": (status, of_others)}, Workload=[waiting(TOO_MUCH)])
        assert asked(other).verdict is Verdict.NEVER, "it is not invalid by itself"


def test_a_wrapped_object_that_the_api_server_cannot_read_is_refused() -> None:
    """AppWrapper retries without end. For example, `backoffLimit: "3"` in a Job is never admitted."""
    said = 'Job in version "v1" cannot be handled as a Job: json: cannot unmarshal string into Go struct field'
    answer = asked(Replica({"Job": (400, said)}, Workload=[workload("job", "asked", ("QuotaReserved", "True", "x"))]))
    assert (answer.verdict, answer.rule, answer.reason) == (Verdict.REFUSED, "validation", said)
    dry = Replica({"Job": (400, "the webhook does not support dry run")}, Workload=[waiting(TOO_MUCH)])
    assert asked(dry).verdict is Verdict.NEVER, "it says nothing of the job"


@pytest.mark.parametrize(
    ("owner", "is_refused"),
    [
        (None, True),
        ({"name": "another", "controller": True}, True),
        ({"name": "job"}, True),
        ({"name": "job", "controller": True}, False),
    ],
)
def test_a_wrapped_object_whose_name_is_taken_is_refused(owner: dict[str, Any] | None, is_refused: bool) -> None:
    """AppWrapper fails for good at an object that it does not control. Its own object exists after admission."""
    said = 'jobs.batch "job" already exists'
    there = {"metadata": {"name": "job", **({"ownerReferences": [owner]} if owner else {})}}
    admitted = workload("job", "asked", ("QuotaReserved", "True", "x"))
    pod = {"metadata": {"namespace": "blue"}, "spec": {**POD, "nodeName": "gpu-node-0"}, "status": {}}
    team = {"metadata": {"name": "blue"}}
    replica = Replica({"Job": (409, said)}, Workload=[admitted], Pod=[pod], Namespace=[team], Job=[there])
    answer = asked(replica)
    if is_refused:
        assert (answer.verdict, answer.rule, answer.reason) == (Verdict.REFUSED, "name", said)
    else:
        assert answer.verdict is Verdict.ADMITTED


LATER = "insufficient unused quota for nvidia.com/gpu in flavor default-flavor, 8 more needed"
COUNTED_OUT = 'services "job" is forbidden: exceeded quota: bounds, requested: {}, used: {}, limited: {}'


@pytest.mark.parametrize(
    ("amounts", "change"),
    [
        (
            ("services.nodeports=1", "services.nodeports=0", "services.nodeports=0"),
            "take out what the ResourceQuota bounds counts (services.nodeports): the team has none of it",
        ),
        (
            ("count/x=1,requests.storage=30Ti", "count/x=500,requests.storage=0", "count/x=500,requests.storage=20Ti"),
            "ask for at most 20Ti requests.storage, in place of 30Ti",
        ),
        (
            ("configmaps=1", "configmaps=500", "configmaps=500"),
            "delete configmaps that the team no longer needs, delete jobs of the team that are over, or ask for less",
        ),
    ],
)
def test_a_wrapped_object_that_is_more_than_a_team_may_have_is_refused(
    amounts: tuple[str, str, str], change: str
) -> None:
    """AppWrapper retries the creation until it gives up the job."""
    said = COUNTED_OUT.format(*amounts)
    admitted = workload("job", "asked", ("QuotaReserved", "True", "x"))
    answer = asked(Replica({"Job": (403, said)}, Workload=[admitted]))
    assert (answer.verdict, answer.rule, answer.reason) == (Verdict.REFUSED, "ResourceQuota", said)
    assert answer.change == change


@pytest.mark.parametrize(
    ("amounts", "said", "verdict"),
    [
        (("services=1", "services=500", "services=500"), LATER, Verdict.WAITS),
        (("services=1", "services=500", "services=500"), TOO_MUCH, Verdict.NEVER),
        (("services=1", "services=500", "services=500"), "Pending the preemption of 1 workload(s)", Verdict.REFUSED),
        (("services.nodeports=1", "services.nodeports=0", "services.nodeports=0"), LATER, Verdict.REFUSED),
    ],
)
def test_a_job_that_waits_may_find_room_in_a_quota_that_is_full_now(
    amounts: tuple[str, str, str], said: str, verdict: Verdict
) -> None:
    """What it has in it is made when it is admitted, and those who go before it take with them what they have."""
    answer = asked(Replica({"Job": (403, COUNTED_OUT.format(*amounts))}, Workload=[waiting(said)]))
    assert answer.verdict is verdict


@pytest.mark.parametrize("owner", ["job", "another"])
@pytest.mark.parametrize(
    ("wanted", "made"), [({"name": "job"}, {"name": "job"}), ({"generateName": "job-"}, {"generateName": "job-"})]
)
def test_a_wrapped_object_that_is_there_already_does_not_count_twice(
    wanted: dict[str, str], made: dict[str, str], owner: str
) -> None:
    said = COUNTED_OUT.format("services=1", "services=500", "services=500")
    admitted = workload("job", "asked", ("QuotaReserved", "True", "x"))
    pod = {"metadata": {"namespace": "blue"}, "spec": {**POD, "nodeName": "gpu-node-0"}, "status": {}}
    there = {"metadata": {"name": "job-x7k2p", **made, "ownerReferences": [{"name": owner, "controller": True}]}}
    team = {"metadata": {"name": "blue"}}
    replica = Replica({"Job": (403, said)}, Workload=[admitted], Pod=[pod], Namespace=[team], Job=[there])
    document = gang("job", "blue", pods=1, gpus=8)
    document["spec"]["components"][0]["template"]["metadata"] = wanted
    client: Any = replica
    answer = Question(client, read(yaml.safe_dump(document), "blue"), "blue", "alice").ask()
    assert answer.verdict is (Verdict.ADMITTED if owner == "job" else Verdict.REFUSED)


def test_a_job_that_no_queue_counts_is_refused_for_what_is_wrong_with_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "SECONDS", 0.2)
    said = 'Pod "x" is invalid: spec.containers[0].resources.limits[nvidia.com/gpu]: must be an integer'
    answer = asked(Replica({"Pod": (422, said)}))
    assert (answer.verdict, answer.reason) == (Verdict.REFUSED, said)
    answer = asked(Replica())
    assert (answer.verdict, answer.reason) == (Verdict.WAITS, "no queue has decided about it")


def test_pods_that_are_refused_come_to_nothing_where_the_job_is_never_admitted() -> None:
    refused = {"Pod": (422, DENIED.format("mlbatch-team-pod-isolation", "spec.nodeName: no"))}
    assert asked(Replica(refused, Workload=[waiting(TOO_MUCH)])).verdict is Verdict.NEVER


def test_a_replica_on_which_somebody_gave_way_is_another_one_also_for_a_job_that_is_refused() -> None:
    def changed(*gives_way: dict[str, Any]) -> bool:
        replica = Replica({"Pod": (422, "no")}, Workload=[waiting("Pending the preemption of 1 workload(s)")])
        replica.gives_way = gives_way
        found = Question(replica, read(yaml.safe_dump(gang("job", "blue", 1, 8)), "blue"), "blue", "alice")
        assert found.ask().verdict is Verdict.REFUSED
        return found.changed

    assert not changed()
    assert changed(workload("loan", "1", ("Preempted", "True", "to make room")))


class Slow(Replica):
    """A replica whose AppWrapper looks at a job that ends only when somebody touches the job, once its pods are gone.

    ending: how often its pods are still found.
    """

    ending, touched = 0, 0

    def delete(self, kind: str, **_: Any) -> None:
        self.ending = 2

    def get(self, kind: str, **options: Any) -> Any:
        if kind == "Pod" and self.ending:
            self.ending -= 1
            if not self.ending:
                del self.objects["Pod"]
        return super().get(kind, **options)

    def patch(self, kind: str, body: dict[str, Any], name: str, namespace: str, **_: Any) -> None:
        assert (kind, name, namespace, self.ending) == ("AppWrapper", "job", "blue", 0)
        self.touched += 1
        self.objects = {}


def test_a_question_does_not_wait_until_appwrapper_looks_again_by_itself() -> None:
    """It checks a job that is being deleted every five seconds: twice as long as the rest of a question."""
    admitted = workload("job", "asked", ("QuotaReserved", "True", "x"))
    pod = {"metadata": {"namespace": "blue"}, "spec": {**POD, "nodeName": "gpu-node-0"}, "status": {}}
    replica = Slow(Workload=[admitted], Pod=[pod], Namespace=[{"metadata": {"name": "blue"}}])
    assert asked(replica).verdict is Verdict.ADMITTED
    assert replica.touched == 1


@pytest.mark.parametrize("status", [403, 404, 409, 422, 500])
def test_an_answer_stands_where_the_job_cannot_be_touched(status: int) -> None:
    """AppWrapper may just have deleted it, and a site may forbid the change. AppWrapper then checks by itself."""

    class Stubborn(Slow):
        def patch(self, *_: Any, **__: Any) -> None:
            self.touched += 1
            self.objects = {}
            raise api_exception(ApiException(status=status, reason="no"))

    admitted = workload("job", "asked", ("QuotaReserved", "True", "x"))
    pod = {"metadata": {"namespace": "blue"}, "spec": {**POD, "nodeName": "gpu-node-0"}, "status": {}}
    replica = Stubborn(Workload=[admitted], Pod=[pod], Namespace=[{"metadata": {"name": "blue"}}])
    assert asked(replica).verdict is Verdict.ADMITTED
    assert replica.touched == 1


def test_templates_are_found_where_appwrapper_notes_them() -> None:
    def pods(name: str) -> dict[str, Any]:
        return {"spec": {"containers": [{"name": name}]}}

    ray = {"spec": {"headGroupSpec": {"template": pods("head")}, "workerGroupSpecs": [{}, {"template": pods("two")}]}}
    components = [{"template": {"kind": "PodGroup"}}, {"template": ray}, {"template": {"kind": "Pod", **pods("one")}}]
    paths = [[], ["template.spec.headGroupSpec.template", "template.spec.workerGroupSpecs[1].template"], ["template"]]
    status = {"componentStatus": [{"podSets": [{"path": path} for path in each]} if each else {} for each in paths]}
    found = wrapped.templates({"spec": {"components": components}, "status": status})
    assert [each["spec"]["containers"][0]["name"] for each in found] == ["head", "two", "one"]
    assert wrapped.templates({"spec": {"components": components}}) == []


def test_pods_of_a_ray_job_are_those_of_its_cluster_and_its_submitter() -> None:
    made = {"metadata": {"name": "job"}, "status": {"rayClusterName": "job-x7k2p"}}
    replica = Replica(RayJob=[made, {"metadata": {"name": "another"}, "status": {"rayClusterName": "another-1"}}])
    found = Question(replica, read(yaml.safe_dump(RAY_JOB), "blue"), "blue", "alice")
    assert found._selectors() == ["ray.io/cluster=job-x7k2p", "job-name=job"]
    replica.objects = {}
    assert found._selectors() == ["ray.io/cluster=job-x7k2p", "job-name=job"]


def test_pods_of_a_ray_cluster_name_it() -> None:
    document = {**RAY_JOB, "kind": "RayCluster"}
    found = Question(Replica(), read(yaml.safe_dump(document), "blue"), "blue", "alice")
    assert found._selectors() == ["ray.io/cluster=job"]


def beyond(flavor: str, asked_for: int, most: int) -> str:
    return (
        f"insufficient quota for nvidia.com/gpu in flavor {flavor}, previously considered podsets requests (0) + "
        f"current podset request ({asked_for}) > maximum capacity ({most})"
    )


OTHER_NODES = "flavor default-flavor doesn't match node affinity"


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (f"{OTHER_NODES}, {beyond('spot', 16, 8)}", Verdict.NEVER),
        (f"{OTHER_NODES}, {beyond('spot', 8, 4)}", Verdict.WAITS),  # nodes of the pool are lost
        (f"{beyond('default-flavor', 32, 24)}, {beyond('spot', 32, 8)}", Verdict.NEVER),
        (f"{beyond('default-flavor', 32, 24)}, {LATER.replace('default-flavor', 'spot')}", Verdict.WAITS),
        (f"{OTHER_NODES}, topology nodes doesn't allow to fit any of 1 pod(s)", Verdict.WAITS),
        (f"{OTHER_NODES}, flavor spot doesn't match node affinity", Verdict.NEVER),
    ],
)
def test_a_job_never_runs_if_no_pool_ever_has_what_it_asks_for(said: str, verdict: Verdict) -> None:
    flavors = [
        {"name": name, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": amount}]}
        for name, amount in (("default-flavor", "24"), ("spot", "8"))
    ]
    queue = {"metadata": {"name": "blue-cluster-queue"}, "spec": {"resourceGroups": [{"flavors": flavors}]}}
    local = {"metadata": {"name": "default-queue", "namespace": "blue"}, "spec": {"clusterQueue": "blue-cluster-queue"}}
    answer = asked(Replica(Workload=[waiting(said)], ClusterQueue=[queue], LocalQueue=[local]))
    assert answer.verdict is verdict


def test_like_pods_have_to_fit_into_one_pool() -> None:
    """Two nodes of each pool hold one pod each: four in all, and no pool three."""
    nodes = [
        {**NODE, "metadata": {"name": f"{pool}-{index}", "labels": {"pool": pool}}}
        for pool in ("first", "spot")
        for index in range(2)
    ]
    flavors = [{"metadata": {"name": pool}, "spec": {"nodeLabels": {"pool": pool}}} for pool in ("first", "spot")]
    queue = {
        "metadata": {"name": "blue-cluster-queue"},
        "spec": {"resourceGroups": [{"flavors": [{"name": name, "resources": []} for name in ("first", "spot")]}]},
    }
    local = {"metadata": {"name": "default-queue", "namespace": "blue"}, "spec": {"clusterQueue": "blue-cluster-queue"}}
    item = waiting(LATER)
    (pods,) = item["spec"]["podSets"]
    there = {"Node": nodes, "ResourceFlavor": flavors, "ClusterQueue": [queue], "LocalQueue": [local]}
    for count, verdict in ((2, Verdict.WAITS), (3, Verdict.NEVER)):
        pods["count"] = count
        assert asked(Replica(Workload=[item], **there)).verdict is verdict


LACKS = "insufficient unused quota for {} in flavor default-flavor, {} more needed"
MOST = TOO_MUCH.replace("requests (8)", "requests (0)").replace("capacity (24)", "capacity (16)")


def queue(name: str, gpus: int, annotations: dict[str, str] | None = None, **limits: str) -> dict[str, Any]:
    """A ClusterQueue of the platform."""
    quota = {"name": "nvidia.com/gpu", "nominalQuota": str(gpus), **limits}
    group = {
        "coveredResources": ["cpu", "nvidia.com/gpu"],
        "flavors": [{"name": "default-flavor", "resources": [quota]}],
    }
    metadata = {"name": f"{name}-cluster-queue", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"cohort": "default-cohort", "resourceGroups": [group]}}


def platform(said: str, *queues: dict[str, Any], pods: int = 3) -> Replica:
    """Return a replica of three GPU nodes, whose Kueue says this about a job of pods with 8 GPUs each."""
    item = waiting(f"couldn't assign flavors to pod set train-0: {said}")
    item["spec"]["podSets"][0]["count"] = pods
    allocatable = {"cpu": "224", "memory": "2000Gi", "nvidia.com/gpu": "8", "pods": "110"}
    names = {
        **{f"gpu-{number}": {"gpu": "true"} for number in range(3)},
        "system": {},
        "local-controllers": {"gpu": "true"},
    }
    flavor = {"metadata": {"name": "default-flavor"}, "spec": {"nodeLabels": {"gpu": "true"}}}
    local = {"metadata": {"name": "default-queue"}, "spec": {"clusterQueue": "blue-cluster-queue"}}
    return Replica(
        Workload=[item],
        Node=[
            {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}
            for name, labels in names.items()
        ],
        LocalQueue=[local],
        ClusterQueue=list(queues) or [queue(name, 8) for name in ("blue", "red", "slack")],
        ResourceFlavor=[flavor],
    )


def test_a_job_that_waits_says_all_that_it_lacks() -> None:
    """Kueue of OpenShift AI adds `in cohort`."""
    gpus = LACKS.format("nvidia.com/gpu", 8).replace(" for ", " in cohort for ")
    answer = asked(platform(f"{LACKS.format('cpu', '500m')}, {gpus}"))
    assert (answer.verdict, answer.resource) == (Verdict.WAITS, "500m cpu more, 8 nvidia.com/gpu more")


@pytest.mark.parametrize(
    "said",
    [
        MOST,
        "insufficient unused quota in cohort for nvidia.com/gpu in flavor default-flavor, 8 more needed",
        "insufficient quota for nvidia.com/gpu in flavor default-flavor in ClusterQueue",
        "borrowing limit for nvidia.com/gpu in flavor default-flavor exceeded",
    ],
)
def test_a_job_that_needs_more_than_all_queues_lend_never_runs(said: str) -> None:
    """Kueue of OpenShift AI does not say which amount never exists."""
    queues = queue("blue", 8), queue("red", 4), queue("slack", 4)
    answer = asked(platform(said, *queues))
    assert (answer.verdict, answer.change) == (Verdict.NEVER, "ask for 16 nvidia.com/gpu in all, in place of 24")
    if said != MOST:
        assert asked(platform(said)).verdict is Verdict.WAITS
        assert asked(platform(said, *queues, pods=2)).verdict is Verdict.WAITS


def test_what_queues_lend_less_of_because_nodes_are_lost_comes_back() -> None:
    """Kueue's maximum follows the lending limits, which the slack controller lowers and raises again."""
    blue, slack = queue("blue", 8), queue("slack", 8, lendingLimit="0")
    answer = asked(platform(MOST, blue, queue("red", 8), slack))
    assert answer.verdict is Verdict.WAITS
    assert answer.resource == "nodes that are lost now: the queues lend 16 nvidia.com/gpu until they are back"
    declared = {"mlbatch/lending-limits": json.dumps({"nvidia.com/gpu": "0"})}
    never = queue("red", 8, annotations=declared, lendingLimit="0")
    assert asked(platform(MOST, blue, never, slack)).verdict is Verdict.NEVER, "red never lends any"
    bounded = queue("blue", 8, borrowingLimit="8")
    assert asked(platform(MOST, bounded, queue("red", 8), queue("slack", 8))).verdict is Verdict.NEVER


@pytest.mark.parametrize(
    ("said", "resource", "change"),
    [
        ("flavor default-flavor doesn't match node affinity", "nodes", None),
        ("untolerated taint {a b NoSchedule <nil>} in flavor default-flavor", "nodes", None),
        (
            "resource nvidia.com/gpus unavailable in ClusterQueue",
            "nvidia.com/gpus",
            "did you mean nvidia.com/gpu? Else leave nvidia.com/gpus out of the job's requests and limits",
        ),
    ],
)
def test_a_job_that_asks_for_what_no_queue_has_never_runs(said: str, resource: str, change: str | None) -> None:
    answer = asked(platform(said))
    assert (answer.verdict, answer.resource) == (Verdict.NEVER, resource)
    assert change is None or str(answer.change).startswith(change)


def test_nodes_without_quota_are_no_room() -> None:
    """Neither the cluster's own nodes nor the one of the replica's controllers take what queues admit."""
    answer = asked(platform("whatever", pods=4))
    assert (answer.verdict, answer.change) == (Verdict.NEVER, "run 3 pods, in place of 4, or ask for less in each")


@pytest.mark.parametrize("status", [500, 503, 429, 504])
def test_a_replica_that_fails_refuses_no_job(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ask.question.SECONDS", 0)
    with pytest.raises(ApiException):
        asked(Replica({"AppWrapper": (status, "busy")}))
