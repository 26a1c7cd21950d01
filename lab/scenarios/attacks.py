"""Attacks of members: running without their queue, and access to another team's objects."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kubernetes.client.exceptions import ApiException

from lab.scenarios.stage import Stage, asked, own_queue
from runner.report import message
from tests.local.environment import gang
from tests.local.jobs import APPWRAPPER, KUEUE
from tests.local.member import dry_run

RBAC: Final = "rbac.authorization.k8s.io/v1"
ADMITTED, PLACED = "Kueue's labels", "nodeName"
"""Part of the error for `admitted` and for `placed`."""
Document = dict[str, Any]


def quota_dodging(stage: Stage) -> None:
    """A member tries to run without a queue, without counting, or with more resources than counted."""
    alice = stage.members["blue"]
    stage.submit("blue", "honest", gpus=1)
    stage.runs("blue", "honest")
    wrapper = gang("dodge", "blue", pods=1, gpus=8, labels=own_queue("blue"))
    job = wrapper["spec"]["components"][0]["template"]
    plain = {"metadata": {"name": "dodge", "namespace": "blue"}}
    pod = {"apiVersion": "v1", "kind": "Pod", **plain, "spec": job["spec"]["template"]["spec"]}
    counted = {"template": job, "podSets": [{"path": "template.spec.template", "replicas": 1}]}
    larger = {**counted, "template": {**job, "spec": {**job["spec"], "parallelism": 2, "completions": 2}}}
    owner = stage.cluster.existing(APPWRAPPER, "AppWrapper", "honest", "blue")
    owned = {"name": "honest", "uid": owner["metadata"]["uid"], "controller": True}
    attempts: dict[str, tuple[Document, str]] = {
        "a pod without a queue": (pod, "cannot create"),
        "a Job without an AppWrapper": ({**job, **plain}, "cannot create"),
        "a job on another job's quota": (
            _with(wrapper, ownerReferences=[{"apiVersion": APPWRAPPER, "kind": "AppWrapper", **owned}]),
            "ownerReferences",
        ),
        "a job that says it is admitted": (admitted("dodge", "blue"), ADMITTED),
        "two pods that count as one": ({**wrapper, "spec": {"components": [larger]}}, "the pods of all"),
    }
    for what, (document, reason) in attempts.items():
        _fails(stage, f"{what} is refused", partial(dry_run, alice, document), reason)
    started = {**wrapper, "spec": {**wrapper["spec"], "suspend": False}}
    assert _stored(stage, "blue", started)["spec"].get("suspend") is True, "not so: a job is created suspended"
    stage.record.say("✓ a job that says it starts at once is suspended until its queue admits it")


def _stored(stage: Stage, team: str, document: Document) -> Document:
    """Return an object as the API server would store it for a member of a team."""
    cluster = stage.members[team]
    resource = cluster.kind(document["apiVersion"], document["kind"])
    return dict(cluster.client.create(resource, body=document, namespace=team, dry_run="All").to_dict())


def isolation(stage: Stage) -> None:
    """A member tries to read, submit and delete in another team's namespace, and to change nodes, queues and rights."""
    alice = stage.members["blue"]
    stage.submit("red", "own", gpus=1)
    stage.runs("red", "own")
    attempts: dict[str, Callable[[], object]] = {
        "look at red's jobs": lambda: alice.list(APPWRAPPER, "AppWrapper", "red"),
        "look at red's secrets": lambda: alice.list("v1", "Secret", "red"),
        "end red's job": lambda: alice.delete(APPWRAPPER, "AppWrapper", "own", "red"),
        "submit in red's name": lambda: alice.create(gang("foreign", "red", pods=1, gpus=1)),
        "raise blue's quota": lambda: alice.patch(KUEUE, "ClusterQueue", "blue-cluster-queue", {}),
        "cordon a node": lambda: alice.patch("v1", "Node", stage.nodes[0], {"spec": {"unschedulable": True}}),
        "let herself into red": lambda: alice.create(
            {
                "apiVersion": RBAC,
                "kind": "RoleBinding",
                "metadata": {"name": "x", "namespace": "red"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mlbatch-edit"},
                "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
            }
        ),
    }
    for what, attempt in attempts.items():
        _fails(stage, f"alice may not {what}", attempt, "cannot")
    pod = placed("placed", "blue", node=stage.nodes[0])
    _fails(stage, "no pod of blue takes a node past the scheduler", lambda: dry_run(stage.cluster, pod), PLACED)
    assert stage.up("red", "own"), "red's job runs no more"


def admitted(name: str, team: str) -> Document:
    """Return a job that claims to be admitted already."""
    return gang(name, team, pods=1, gpus=8, labels={"kueue.x-k8s.io/prebuilt-workload-name": "x", **own_queue(team)})


def placed(name: str, team: str, node: str) -> Document:
    """Return a pod that names its node, which only the scheduler may do."""
    job = gang(name, team, pods=1, gpus=1)["spec"]["components"][0]["template"]
    spec = {**job["spec"]["template"]["spec"], "nodeName": node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": team}, "spec": spec}


def _fails(stage: Stage, what: str, attempt: Callable[[], object], reason: str) -> None:
    error = _refusal(attempt)
    assert error is not None, f"not so: {what}"
    said = message(error)
    assert error.status in (400, 403, 422), f"no refusal but HTTP {error.status}: {said}"
    assert reason in said, f"refused for another reason: {said}"
    stage.record.say(f"✓ {what}: {said[:160]}")


def _refusal(attempt: Callable[[], object]) -> Any:
    try:
        asked(attempt)
    except ApiException as error:
        return error
    return None


def _with(wrapper: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**wrapper, "metadata": {**wrapper["metadata"], **metadata}}
