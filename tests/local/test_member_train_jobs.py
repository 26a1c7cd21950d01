"""TrainJobs of a member, and TrainJobs that would run outside the quota or use resources of others.

Kueue, Trainer, JobSet and the scheduler are real. The pods are simulated, and end when a test ends them.
"""

import contextlib
import copy
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError

from attack.attacks import attacks, valid_jobs
from components.tenancy import bounds, train_jobs
from components.tenancy.callers import APPWRAPPER
from components.tenancy.prompt_deletion import APPWRAPPERS_LABEL
from emulator.paths import Paths
from tests.local import printed
from tests.local.environment import ROOT, Cluster, Project, eventually, gang, operators_settings
from tests.local.jobs import KUEUE, pods_of
from tests.local.member import as_member, dry_run, refused
from tests.local.standing import Standing
from tests.local.submission import submitted

TRAINER = "trainer.kubeflow.org/v1alpha1"
MERGE = "application/merge-patch+json"
JOB_SET = "jobset.x-k8s.io/v1alpha2"
POD_GROUP = "scheduling.x-k8s.io/v1alpha1"
Document = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def project(standing: Standing) -> Project:
    return standing.up("dev", operators_settings)


@pytest.fixture(scope="module")
def bob(paths: Paths, project: Project) -> Cluster:
    """Return the cluster with the rights of a member of team red, once a new Trainer finds its runtimes."""
    bob = as_member(paths, "bob")
    eventually("Trainer finds its runtimes", lambda: admitted(bob, train_job()))
    return bob


def admitted(member: Cluster, document: Document) -> bool:
    try:
        dry_run(member, document)
    except (ApiException, DynamicApiError):
        return False
    return True


def train_job(name: str = "train", nodes: int = 1, gpus: int = 8, namespace: str = "red", **spec: Any) -> Document:
    """Return a TrainJob with this many pods and GPUs per pod, and changed fields."""
    resources = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(gpus)}
    trainer = {
        "image": "docker.io/library/busybox:1.37.0",
        "command": ["torchrun", "train.py"],
        "numNodes": nodes,
        "resourcesPerNode": {"requests": resources, "limits": resources},
    }
    return {
        "apiVersion": TRAINER,
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"kueue.x-k8s.io/queue-name": "default-queue"},
        },
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer, **spec},
    }


def pods(cluster: Cluster, name: str, namespace: str = "red", phase: str | None = None) -> list[Document]:
    """Return a TrainJob's pods, optionally only those in a phase."""
    found = cluster.list("v1", "Pod", namespace, label_selector=f"jobset.sigs.k8s.io/jobset-name={name}")
    return [pod for pod in found if phase in (None, pod["status"]["phase"])]


def workloads(cluster: Cluster, namespace: str = "red") -> list[Document]:
    """Return Kueue's Workloads in a namespace."""
    return cluster.list(KUEUE, "Workload", namespace)


def condition(item: Mapping[str, Any], kind: str) -> str | None:
    """Return the status of a condition."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return next((each["status"] for each in conditions if each["type"] == kind), None)


def is_admitted(cluster: Cluster, name: str, namespace: str = "red") -> bool:
    found = [item for item in workloads(cluster, namespace) if item["metadata"]["ownerReferences"][0]["name"] == name]
    return bool(found) and condition(found[0], "Admitted") == "True"


def suspended(cluster: Cluster, name: str, namespace: str = "red") -> bool:
    return bool(cluster.existing(TRAINER, "TrainJob", name, namespace)["spec"].get("suspend"))


@contextlib.contextmanager
def trained(member: Cluster, cluster: Cluster, *jobs: Document) -> Iterator[None]:
    """Submit TrainJobs for the length of the context; then wait until they are deleted completely."""
    try:
        for job in jobs:
            member.create(job)
        yield
    finally:
        for job in jobs:
            member.delete(TRAINER, "TrainJob", job["metadata"]["name"], job["metadata"]["namespace"])
        for job in jobs:
            name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
            eventually(
                f"{name} has no objects left",
                lambda name=name, namespace=namespace: (
                    pods(cluster, name, namespace)
                    + [
                        each
                        for each in workloads(cluster, namespace)
                        if f"trainjob-{name}-" in each["metadata"]["name"]
                    ]
                ),
                lambda left: not left,
            )


def runs(cluster: Cluster, name: str, nodes: int, namespace: str = "red") -> list[Document]:
    """Wait until all pods of a TrainJob run, and return them."""
    return eventually(
        f"{name} has {nodes} running pods",
        lambda: pods(cluster, name, namespace, "Running"),
        lambda found: len(found) == nodes,
    )


def finish(cluster: Cluster, pod: Document, phase: str = "Succeeded") -> None:
    """End a simulated pod."""
    status = {"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "False"}]}}
    resource = cluster.kind("v1", "Pod").subresources["status"]
    cluster.client.patch(
        resource,
        name=pod["metadata"]["name"],
        namespace=pod["metadata"]["namespace"],
        body=status,
        content_type=MERGE,
    )


def test_a_train_job_is_counted_once_runs_where_its_queue_says_and_ends(cluster: Cluster, bob: Cluster) -> None:
    with trained(bob, cluster, train_job(nodes=2)):
        found = runs(cluster, "train", nodes=2)
        (workload,) = workloads(cluster)
        assert workload["metadata"]["ownerReferences"][0]["kind"] == "TrainJob", "its JobSet is not counted again"
        assert [(each["name"], each["count"]) for each in workload["spec"]["podSets"]] == [("node", 2)]
        used = workload["status"]["admission"]["podSetAssignments"][0]["resourceUsage"]
        assert used["nvidia.com/gpu"] == "16"
        for pod in found:
            assert {"effect": "NoSchedule", "key": "nvidia.com/gpu", "operator": "Exists"} in pod["spec"]["tolerations"]
            assert pod["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
            assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "train"
            assert "EVICT" in str(pod["spec"]["affinity"]["nodeAffinity"])
            assert pod["spec"]["automountServiceAccountToken"] is False
        group = cluster.existing("scheduling.x-k8s.io/v1alpha1", "PodGroup", "train", "red")
        assert group["spec"]["minMember"] == 2
        for pod in found:
            finish(cluster, pod)
        eventually(
            "the TrainJob is complete",
            lambda: condition(cluster.existing(TRAINER, "TrainJob", "train", "red"), "Complete"),
            lambda status: status == "True",
        )
        eventually("no use is counted for it", lambda: condition(workloads(cluster)[0], "Finished"), bool)


def test_a_train_job_selects_among_the_nodes_of_its_queue(cluster: Cluster, bob: Cluster) -> None:
    def selecting(name: str, **labels: str) -> Document:
        patch = patched({"nodeSelector": labels})["spec"]["runtimePatches"]
        return train_job(name, runtimePatches=patch)

    here, elsewhere = {"kubernetes.io/hostname": "gpu-node-1"}, {"nvidia.com/gpu.present": "false"}
    with trained(bob, cluster, selecting("here", **here), selecting("elsewhere", **elsewhere)):
        (pod,) = runs(cluster, "here", nodes=1)
        assert pod["spec"]["nodeName"] == "gpu-node-1"
        assert pod["spec"]["nodeSelector"] == {**here, "nvidia.com/gpu.present": "true"}
        assert not is_admitted(cluster, "elsewhere")
        assert suspended(cluster, "elsewhere")


def test_a_train_job_waits_for_its_quota_and_returns_what_it_borrows(
    cluster: Cluster, bob: Cluster, paths: Paths
) -> None:
    """The stack has three nodes: one for red, one for blue, one for the slack queue."""
    alice = as_member(paths, "alice")
    with trained(bob, cluster, train_job("borrower", nodes=3)):
        runs(cluster, "borrower", nodes=3)
        with trained(bob, cluster, train_job("waiting")):
            eventually("it is counted", lambda: workloads(cluster), lambda found: len(found) == 2)
            with submitted(alice, gang("owner", "blue", pods=1, gpus=8)):
                eventually(
                    "the owner has its node",
                    lambda: [pod["status"]["phase"] for pod in pods_of(cluster, "blue", "owner")],
                    lambda found: found == ["Running"],
                )
                assert suspended(cluster, "borrower")
                assert not pods(cluster, "borrower", phase="Running")
                runs(cluster, "waiting", nodes=1)
        assert not [each for each in workloads(cluster) if "waiting" in each["metadata"]["name"]]
        runs(cluster, "borrower", nodes=3)


def test_a_train_job_that_is_not_admitted_has_no_pods(cluster: Cluster, bob: Cluster) -> None:
    with trained(bob, cluster, train_job("borrower", nodes=3), train_job("waiting", namespace="red")):
        runs(cluster, "borrower", nodes=3)
        eventually("it is counted", lambda: workloads(cluster), lambda found: len(found) == 2)
        assert suspended(cluster, "waiting")
        assert not is_admitted(cluster, "waiting")
        assert not pods(cluster, "waiting")


def test_all_pods_are_created_again_when_one_fails(cluster: Cluster, bob: Cluster) -> None:
    with trained(bob, cluster, train_job(nodes=2)):
        before = {pod["metadata"]["uid"] for pod in runs(cluster, "train", nodes=2)}
        finish(cluster, pods(cluster, "train")[0], phase="Failed")
        eventually(
            "two other pods run",
            lambda: {pod["metadata"]["uid"] for pod in pods(cluster, "train", phase="Running")},
            lambda found: len(found) == 2 and not found & before,
        )
        assert is_admitted(cluster, "train")


def test_a_priority_is_chosen_by_the_runtime(cluster: Cluster, bob: Cluster) -> None:
    with trained(bob, cluster, train_job(runtimeRef={"name": "torch-distributed-high-priority"})):
        (pod,) = runs(cluster, "train", nodes=1)
        assert pod["spec"]["priorityClassName"] == "high-priority"
        assert workloads(cluster)[0]["spec"]["priority"] == 10


def test_a_member_submits_a_training_as_it_is_printed(
    project: Project, cluster: Cluster, paths: Paths, bob: Cluster
) -> None:
    with printed.submitted(
        paths, operators_settings(project), "pretraining", {"name": "printed", "nodes": 2, "kind": "TrainJob"}
    ):
        found = runs(cluster, "printed", nodes=2)
        assert [printed.gpus(pod) for pod in found] == [8, 8]
        mounts = {each["mountPath"] for each in found[0]["spec"]["containers"][0]["volumeMounts"]}
        assert {"/dev/shm", "/etc/mlbatch", "/checkpoints"} <= mounts


def patched(pod: Mapping[str, Any] | None = None, manager: str = "example.org/me", **template: Any) -> Document:
    """Return a TrainJob that patches its runtime: the pods' specification, or the template of their Job."""
    inner = {"spec": {"template": {"spec": dict(pod or {})}}, **template}
    jobs = [{"name": "node", "template": inner}]
    return patching({"template": {"spec": {"replicatedJobs": jobs}}}, manager)


def patching(specification: Mapping[str, Any], manager: str = "example.org/me") -> Document:
    return train_job(runtimePatches=[{"manager": manager, "trainingRuntimeSpec": dict(specification)}])


def trainer(**fields: Any) -> Document:
    job = train_job()
    return {**job, "spec": {**job["spec"], "trainer": {**job["spec"]["trainer"], **fields}}}


def asking(**amounts: Any) -> Document:
    asked = {"cpu": "1", "memory": "1Gi", **amounts}
    return trainer(resourcesPerNode={"requests": asked, "limits": asked})


def labelled(**metadata: Any) -> Document:
    job = train_job()
    return {**job, "metadata": {**job["metadata"], **metadata}}


def mounted(**source: Any) -> Document:
    volume = {"name": "files", **source}
    return patched({"volumes": [volume], "containers": [{"name": "node", "volumeMounts": [MOUNT]}]})


MOUNT = {"name": "files", "mountPath": "/files", "readOnly": True}
SLICES = {"metadata": {"annotations": {"kueue.x-k8s.io/podset-slice-size": "0"}}}
PATCHES = "runtimePatches add configMap, secret, emptyDir, persistentVolumeClaim as volumes"

ATTACKS = {each.name: each for each in attacks() if (each.object or {}).get("kind") == "TrainJob"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused(bob: Cluster, attack: str) -> None:
    document = copy.deepcopy(ATTACKS[attack].object or {})
    document["metadata"]["namespace"] = "red"
    assert ATTACKS[attack].refusal in refused(dry_run, bob, document)


@pytest.mark.parametrize("document", [each for each in valid_jobs() if each["kind"] == "TrainJob"])
def test_the_job_that_attacks_change_is_accepted(bob: Cluster, document: Document) -> None:
    dry_run(bob, {**document, "metadata": {**document["metadata"], "namespace": "red"}})


WRONG: Mapping[str, tuple[Document, str]] = {
    "a runtime of another API": (train_job(runtimeRef={"name": "torch-distributed", "apiGroup": "example.org"}), ""),
    "a runtime that is not the platform's": (train_job(runtimeRef={"name": "deepspeed-distributed"}), ""),
    "no image": (train_job(trainer={"numNodes": 1}), "set trainer.image"),
    "nodes beyond 32 bits": (trainer(numNodes=2**32 + 1), ""),
    "half a node": (trainer(numNodes=1.5), ""),
    "processes beyond 32 bits": (trainer(numProcPerNode=2**31), ""),
    "an invalid amount": (asking(cpu="1e99999999999999999999"), ""),
    "a variable with an amount": (
        trainer(
            env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1e9999"}}}]
        ),
        "",
    ),
    "an invalid size": (mounted(emptyDir={"sizeLimit": "1e99999999999999999999"}), ""),
    "init containers": (patched({"initContainers": [{"name": "node"}]}), ""),
    "pods that Kueue divides by zero": (
        patching(
            {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": SLICES}}}]}}}
        ),
        PATCHES,
    ),
    "labels of its Job": (patched(metadata={"labels": {"kueue.x-k8s.io/queue-name": "other"}}), PATCHES),
    "Kueue's patch": (patched({"tolerations": [{"operator": "Exists"}]}, manager="kueue.x-k8s.io/manager"), ""),
    "a variable without a value": (trainer(env=[{"name": "A", "value": ""}]), "empty or false"),
    "arguments without one": (trainer(args=[]), "empty or false"),
    "a mount that is not read-only": (
        patched({"containers": [{"name": "node", "volumeMounts": [{**MOUNT, "readOnly": False}]}]}),
        "empty or false",
    ),
    "a name that leaves its pods none": (labelled(name="x" * 49), "at most 48 characters"),
    "more than the store has room for": (trainer(args=["x" * 300_000]), ""),
}


@pytest.mark.parametrize("field", WRONG)
def test_a_train_job_has_only_known_fields(bob: Cluster, field: str) -> None:
    document, reason = WRONG[field]
    assert reason in refused(dry_run, bob, document)


HONEST: Mapping[str, Document] = {
    "a file": mounted(configMap={"name": "files", "items": [{"key": "a", "path": "b/a"}]}),
    "a secret": mounted(secret={"secretName": "token"}),
    "a claim": mounted(persistentVolumeClaim={"claimName": "checkpoints"}),
    "memory": mounted(emptyDir={"medium": "Memory"}),
    "images of a registry that asks who": patched({"imagePullSecrets": [{"name": "registry"}]}),
    "nodes of a pool": patched({"nodeSelector": {"mlbatch/pool": "spot"}}),
    "variables": trainer(
        env=[
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "token", "key": "a"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ]
    ),
    "processes": trainer(numProcPerNode=8, args=["--steps=1"]),
    "what is left out": train_job(trainer={"image": "x"}),
    "a longest time": labelled(
        labels={"kueue.x-k8s.io/queue-name": "default-queue", "kueue.x-k8s.io/max-exec-time-seconds": "60"}
    ),
}


@pytest.mark.parametrize("job", HONEST)
def test_a_train_job_with_objects_of_its_team_is_admitted(bob: Cluster, job: str) -> None:
    dry_run(bob, HONEST[job])


def service(name: str) -> Document:
    """Return a Service without pods in team red."""
    metadata = {"name": name, "namespace": "red"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"clusterIP": "None", "selector": {"a": "b"}},
    }


def test_a_member_cannot_keep_the_pods_of_a_train_job_without_its_objects(
    cluster: Cluster, bob: Cluster, paths: Paths
) -> None:
    """JobSet suspends a job only if it can create the job's Service, so other Services leave room for this one."""
    alice, quota, groups = as_member(paths, "alice"), *(("v1", "ResourceQuota", n) for n in ("bounds", "podgroups"))
    annotations, most = (cluster.existing(*each, "red")["metadata"]["annotations"] for each in (quota, groups))
    metadata = {"name": "other", "namespace": "red"}
    group = {"apiVersion": POD_GROUP, "kind": "PodGroup", "metadata": metadata, "spec": {"minMember": 1}}
    bob.create(service("borrower"))
    try:
        cluster.patch(*groups, {"metadata": {"annotations": {bounds.OWN: "0"}}}, "red")
        eventually("the team has all its PodGroups", lambda: not admitted(bob, group))
        assert "exceeded quota: podgroups, requested: count/podgroups" in refused(dry_run, bob, group)
        cluster.patch(*quota, {"metadata": {"annotations": {bounds.OWN: "1"}}}, "red")
        eventually("the team has all its Services", lambda: not admitted(bob, service("other")))
        said = refused(dry_run, bob, service("other"))
        assert "exceeded quota: bounds, requested: services=1, used: services=1, limited: services=1" in said
        with trained(bob, cluster, train_job("borrower", nodes=3)):
            runs(cluster, "borrower", nodes=3)
            cluster.patch(*quota, {"metadata": {"annotations": {bounds.OWN: "0"}}}, "red")
            eventually("its Services are all counted", lambda: "services=0" in refused(dry_run, bob, service("other")))
            bob.delete("v1", "Service", "borrower", "red")
            with submitted(alice, gang("owner", "blue", pods=1, gpus=8)):
                eventually(
                    "the owner has its node",
                    lambda: [pod["status"]["phase"] for pod in pods_of(cluster, "blue", "owner")],
                    lambda found: found == ["Running"],
                )
                assert not pods(cluster, "borrower", phase="Running")
                assert cluster.existing("v1", "Service", "borrower", "red")["metadata"]["ownerReferences"]
    finally:
        cluster.patch(*quota, {"metadata": {"annotations": annotations}}, "red")
        cluster.patch(*groups, {"metadata": {"annotations": most}}, "red")


def test_members_cannot_change_the_objects_of_a_train_job(cluster: Cluster, bob: Cluster, paths: Paths) -> None:
    with trained(bob, cluster, train_job()):
        (pod,) = runs(cluster, "train", nodes=1)
        other = {"metadata": {"name": "other-runtime-snapshot", "namespace": "red"}, "data": {"runtime": "{}"}}
        assert "choose another name" in refused(bob.create, {"apiVersion": "v1", "kind": "ConfigMap", **other})
        for kind, name, change, reason in (
            (("v1", "ConfigMap"), "train-runtime-snapshot", {"data": {"runtime": "{}"}}, "denied request"),
            ((JOB_SET, "JobSet"), "train", {"spec": {"suspend": True}}, "cannot patch resource"),
            ((POD_GROUP, "PodGroup"), "train", {"metadata": {"annotations": {"a": ""}}}, "this belongs to a job"),
            (("batch/v1", "Job"), "train-node-0", {"spec": {"parallelism": 9}}, "cannot patch resource"),
            ((TRAINER, "TrainJob"), "train", {"spec": {"suspend": True}}, "by its queue alone"),
            ((TRAINER, "TrainJob"), "train", {"spec": {"runtimePatches": []}}, "a submitted job is not changed"),
            ((TRAINER, "TrainJob"), "train", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "a"}}}, ""),
        ):
            assert reason in refused(bob.patch, *kind, name, change, "red"), name
        for kind, name, reason in (
            ((JOB_SET, "JobSet"), "train", "cannot delete resource"),
            (("batch/v1", "Job"), "train-node-0", "mlbatch-team-prompt-deletion"),
            (("v1", "Pod"), pod["metadata"]["name"], "this belongs to a job"),
            (("v1", "ConfigMap"), "train-runtime-snapshot", "this belongs to a job"),
            (("v1", "Service"), "train", "this belongs to a job"),
            ((POD_GROUP, "PodGroup"), "train", "this belongs to a job"),
        ):
            assert reason in refused(bob.delete, *kind, name, "red"), name
        long = {"name": pod["metadata"]["name"], "namespace": "red", "body": {"gracePeriodSeconds": 31}}
        assert "outside an AppWrapper within 30" in refused(bob.client.delete, bob.kind("v1", "Pod"), **long)
        cluster.patch(POD_GROUP, "PodGroup", "train", {"metadata": {"labels": {APPWRAPPERS_LABEL: "other"}}}, "red")
        wrapper = as_member(paths, APPWRAPPER)
        for kind in (("v1", "Service"), (POD_GROUP, "PodGroup")):
            assert "another controller would start again" in refused(wrapper.delete, *kind, "train", "red")
        made = bob.existing(JOB_SET, "JobSet", "train", "red")
        owner = {"apiVersion": JOB_SET, "kind": "JobSet", "name": "train", "uid": made["metadata"]["uid"]}
        owned = labelled(name="other", ownerReferences=[{**owner, "controller": True}])
        assert "ownerReferences" in refused(dry_run, bob, owned)
        assert made["spec"]["suspend"] is False
        status = bob.kind(TRAINER, "TrainJob").subresources["status"]
        done = {"status": {"conditions": []}}
        reason = refused(bob.client.patch, status, name="train", namespace="red", body=done, content_type=MERGE)
        assert "cannot patch resource" in reason


def wrapper(name: str, *components: Document) -> Document:
    """Return an AppWrapper with a small pod and components named like the objects of a TrainJob."""
    small = gang(name, "red", 1, 0)
    small["spec"]["components"] += [{"template": each} for each in components]
    return small


def test_an_app_wrapper_does_not_contain_the_copy_of_a_runtime(bob: Cluster) -> None:
    copy = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "train-runtime-snapshot"},
        "data": {"runtime": ""},
    }
    assert "another controller" in refused(bob.create, wrapper("thief", copy))


def test_a_job_that_has_ended_does_not_run_again(cluster: Cluster, bob: Cluster) -> None:
    """An AppWrapper cannot name its JobSet, and delete it. If an administrator does, its pods are not started again."""
    template = gang("x", "red", 1, 0)["spec"]["components"][0]["template"]["spec"]
    jobs = [{"name": "x", "template": {"spec": {**template, "backoffLimit": 0}}}]
    same = {"apiVersion": JOB_SET, "kind": "JobSet", "metadata": {"name": "train"}, "spec": {"replicatedJobs": jobs}}
    with trained(bob, cluster, train_job()):
        (pod,) = runs(cluster, "train", nodes=1)
        finish(cluster, pod)
        eventually(
            "it is not counted any more", lambda: workloads(cluster), lambda found: condition(found[0], "Finished")
        )
        assert "ends in -jobset" in refused(bob.create, wrapper("killer", same))
        cluster.delete(JOB_SET, "JobSet", "train", "red")
        eventually("it is gone", lambda: pods(cluster, "train"), lambda found: not found)
        bob.patch(TRAINER, "TrainJob", "train", {"metadata": {"annotations": {"again": "yes"}}}, "red")
        time.sleep(5)
        assert pods(cluster, "train") == []


def test_members_cannot_create_runtimes(bob: Cluster) -> None:
    runtime = {"apiVersion": TRAINER, "kind": "TrainingRuntime", "metadata": {"name": "own", "namespace": "red"}}
    assert "cannot create resource" in refused(bob.create, runtime)


BOUNDED = {"spec.trainer.numNodes", "spec.trainer.numProcPerNode"}


def schema(cluster: Cluster) -> Document:
    definition = cluster.existing(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "trainjobs.trainer.kubeflow.org"
    )
    return dict(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])


def sample(field: Mapping[str, Any]) -> Any:
    """Return the smallest value that the schema of a field allows."""
    if field.get("x-kubernetes-int-or-string"):
        return 1
    if field["type"] == "object":
        return {name: sample(field["properties"][name]) for name in field.get("required", ())}
    if field["type"] == "array":
        return [sample(field["items"])]
    return {"integer": 1, "boolean": True, "string": "hf://x"}[field["type"]]


def others(fields: Mapping[str, Any], known: Any, path: str = "spec") -> Iterator[tuple[str, Any]]:
    """Yield each unknown field of a schema, with its path and a value. Asserts that numbers are bounded."""
    if isinstance(known, list):
        yield from ((where, [value]) for where, value in others(fields["items"], known[0], path))
        return
    assert not set(known or ()) - set(fields["properties"]), f"{path} has none of {known}"
    required = sample(fields)
    for name, field in fields["properties"].items():
        where = f"{path}.{name}"
        if name not in known:
            yield where, {**required, name: sample(field)}
        elif known[name]:
            yield from ((inner, {**required, name: value}) for inner, value in others(field, known[name], where))
        else:
            numbers = field.get("type") in ("integer", "number") or "x-kubernetes-int-or-string" in field
            assert not numbers or where in BOUNDED, f"no rule bounds {where}"


def test_every_other_field_of_the_definition_is_refused(cluster: Cluster, bob: Cluster) -> None:
    found = dict(others(schema(cluster), train_jobs.FIELDS))
    refusals = {where: refused(dry_run, bob, with_field(value)) for where, value in found.items()}
    elsewhere = {where: said for where, said in refusals.items() if "mlbatch-team-" not in said}
    assert len(refusals) - len(elsewhere) > 40
    assert not [said for said in elsewhere.values() if "Invalid value" not in said and "webhook" not in said], elsewhere


def with_field(spec: Mapping[str, Any]) -> Document:
    """Return a complete TrainJob with some fields changed."""
    own = train_job()["spec"]
    trainer = {**own["trainer"], **spec.get("trainer", {})}
    return train_job(**{**spec, "trainer": trainer, "runtimeRef": {**spec.get("runtimeRef", {}), **own["runtimeRef"]}})


def test_the_job_of_the_page_is_admitted(bob: Cluster) -> None:
    page = (ROOT / "docs" / "workloads" / "trainjob.md").read_text()
    job = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    dry_run(bob, {**job, "metadata": {**job["metadata"], "namespace": "red"}})
