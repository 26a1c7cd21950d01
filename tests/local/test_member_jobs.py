"""Attacks of members that would run outside the queue, on the real API server and controllers.

Each attack is rejected with a reason, and legitimate jobs still work.
"""

import copy
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError, ResourceNotFoundError

from attack.attacks import Attack, attacks, valid_jobs
from emulator.paths import Paths
from tests.local.environment import Cluster, eventually, gang, member_settings
from tests.local.member import as_member, dry_run, refused
from tests.local.paused import paused
from tests.local.standing import Standing
from tests.local.submission import submitted

APPWRAPPER = "workload.codeflare.dev/v1beta2"
ANNOTATION = "workload.codeflare.dev.appwrapper/"
Document = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def platform(standing: Standing) -> None:
    standing.up("dev", member_settings)


@pytest.fixture(scope="module")
def alice(paths: Paths, platform: None) -> Cluster:
    """Return the cluster with the rights of a member of team blue."""
    return as_member(paths, "alice")


@pytest.fixture(scope="module")
def bob(paths: Paths, platform: None) -> Cluster:
    """Return the cluster with the rights of a member of team red."""
    return as_member(paths, "bob")


def job(change: Callable[[Document], object] = lambda wrapper: None) -> Document:
    """Return an AppWrapper with one pod and one GPU, changed."""
    wrapper = copy.deepcopy(gang("job", "blue", pods=1, gpus=1))
    change(wrapper)
    return wrapper


def wrapped(wrapper: Document) -> Document:
    return dict(wrapper["spec"]["components"][0]["template"])


def pod(**spec: Any) -> Document:
    return job(lambda wrapper: wrapped(wrapper)["spec"]["template"]["spec"].update(spec))


def pods_metadata(**metadata: Any) -> Document:
    return job(lambda wrapper: wrapped(wrapper)["spec"]["template"].update(metadata=metadata))


def metadata(**fields: Any) -> Document:
    return job(lambda wrapper: wrapper["metadata"].update(fields))


def beside(api_version: str, kind: str, **fields: Any) -> Document:
    """Return a job with one more object."""
    item = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "beside"}, **fields}
    return job(lambda wrapper: wrapper["spec"]["components"].append({"template": item}))


def phase(cluster: Cluster, name: str, namespace: str = "blue") -> str | None:
    wrapper = cluster.get(APPWRAPPER, "AppWrapper", name, namespace)
    return (wrapper.get("status") or {}).get("phase") if wrapper else None


def runs(cluster: Cluster, name: str, namespace: str = "blue") -> None:
    eventually(f"{namespace}/{name} runs", lambda: phase(cluster, name, namespace), lambda found: found == "Running")
    eventually(f"the pods of {name} run", lambda: pods_of(cluster, name, namespace), all_running)


def pods_of(cluster: Cluster, name: str, namespace: str = "blue") -> list[Document]:
    return cluster.list("v1", "Pod", namespace, label_selector=f"workload.codeflare.dev/appwrapper={name}")


def all_running(pods: list[Document]) -> bool:
    return bool(pods) and all(item["status"]["phase"] == "Running" for item in pods)


EMPTY_PODS = {"template": {"spec": {"containers": []}}}
WORKERS = {"groupName": "workers", "replicas": 1, "minReplicas": 1, "maxReplicas": 1, **EMPTY_PODS}


def ray(**workers: Any) -> Document:
    return {"headGroupSpec": EMPTY_PODS, "workerGroupSpecs": [{**WORKERS, **workers}]}


def asking(**resources: str | float) -> Document:
    """Return a container that requests these resources in addition to the required ones."""
    asked = {"cpu": "1", "memory": "1Gi", **resources}
    return {"name": "main", "image": "x", "resources": {"requests": asked, "limits": asked}}


CLAIMS_FINALIZER = "kubernetes.io/pvc-protection"
"""A finalizer that Kubernetes adds to claims, and removes only from claims."""


def pods(**resources: str) -> Document:
    """Return a template of pods that request these resources in addition to the required ones."""
    return {"spec": {"containers": [asking(**resources)]}}


ATTACKS = {each.name: each for each in attacks() if (each.object or {}).get("kind") in ("AppWrapper", "PodGroup")}
DIRECT_KINDS = ("PyTorchJob", "RayCluster", "RayJob")
DIRECT = {each.name: each for each in attacks() if (each.object or {}).get("kind") in DIRECT_KINDS}


def in_team(document: Document) -> Document:
    """Return an attack's object in team blue; other teams' objects are in team red."""
    found: Document = json.loads(json.dumps(document).replace("{other}", "red"))
    found["metadata"]["namespace"] = "blue"
    return found


def check_refused(member: Cluster, attack: Attack) -> None:
    said = refused(dry_run, member, in_team(attack.object or {}))
    assert any(text in said for text in attack.refusal.split("|")), said


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_job_that_would_run_outside_its_queue_is_refused(alice: Cluster, attack: str) -> None:
    check_refused(alice, ATTACKS[attack])


EMPTY = {
    "containers": pod(containers=None),
    "initContainers": pod(initContainers=None),
    "requests": pod(containers=[{"name": "main", "image": "x", "resources": {"requests": None}}]),
    "nvidia.com/gpu": pod(
        containers=[{"name": "main", "image": "x", "resources": {"requests": {"nvidia.com/gpu": None}}}]
    ),
    "finalizers": pods_metadata(finalizers=None),
    "labels": pods_metadata(labels=None),
    "template": job(lambda wrapper: wrapped(wrapper)["spec"].update(template=None)),
    "spec": job(lambda wrapper: wrapper["spec"]["components"][0]["template"].update(spec=None)),
    "parallelism": job(lambda wrapper: wrapped(wrapper)["spec"].update(parallelism=None)),
    "manualSelector": job(lambda wrapper: wrapped(wrapper)["spec"].update(manualSelector=None)),
    "replicas": beside(
        "kubeflow.org/v1", "PyTorchJob", spec={"pytorchReplicaSpecs": {"Worker": {"replicas": None, **EMPTY_PODS}}}
    ),
    "enableInTreeAutoscaling": beside("ray.io/v1", "RayCluster", spec={**ray(), "enableInTreeAutoscaling": None}),
    "minMember": beside("scheduling.x-k8s.io/v1alpha1", "PodGroup", spec={"minMember": None}),
}


@pytest.mark.parametrize("field", EMPTY)
def test_a_field_that_is_null_is_named_to_the_author(alice: Cluster, field: str) -> None:
    said = refused(dry_run, alice, EMPTY[field])
    assert f"a manifest has a field that is null: give a value to {field}, or leave it out" in said


@pytest.mark.parametrize(
    ("kind", "name"),
    [("ConfigMap", "kube-root-ca.crt"), ("Pod", "train-worker-0"), ("Pod", "ray-head"), ("Service", "ray-head-svc")],
)
def test_a_job_has_no_object_that_another_controller_makes_again(alice: Cluster, kind: str, name: str) -> None:
    """AppWrapper deletes it by name, and keeps the quota until it is gone. An owner would wait forever."""
    assert "again and again" in refused(dry_run, alice, beside("v1", kind, metadata={"name": name}))


GOOD = {
    "plain": job(),
    "with its files": beside("v1", "ConfigMap", data={"train.py": "print()"}),
    "with a service": beside("v1", "Service", spec={"ports": [{"port": 80}]}),
    "with a pod group": beside("scheduling.x-k8s.io/v1alpha1", "PodGroup", spec={"minMember": 1}),
    "with Ray": beside("ray.io/v1", "RayCluster", spec=ray()),
    "with labels that Ray schedules by": beside(
        "ray.io/v1", "RayCluster", spec=ray(labels={"ray.io/market-type": "spot"})
    ),
    "with PyTorch": beside(
        "kubeflow.org/v1", "PyTorchJob", spec={"pytorchReplicaSpecs": {"Master": EMPTY_PODS, "Worker": EMPTY_PODS}}
    ),
    "with a Ray job": beside("ray.io/v1", "RayJob", spec={"rayClusterSpec": ray(), "submissionMode": "HTTPMode"}),
    "with a JobSet": beside(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        metadata={"name": "beside-jobset"},
        spec={
            "replicatedJobs": [
                {"name": "a", "replicas": 4, "template": {"spec": {"parallelism": 8, "completions": 8, **EMPTY_PODS}}}
            ]
        },
    ),
    "of many pods": job(lambda wrapper: wrapped(wrapper)["spec"].update(parallelism=4096, completions=4096)),
    "that ends with its first pod": job(lambda wrapper: wrapped(wrapper)["spec"].pop("completions")),
    "of a large node": pod(containers=[asking(**{"cpu": "384", "memory": "4Ti", "nvidia.com/gpu": "16"})]),
    "with nulls that have no effect": job(
        lambda wrapper: (
            wrapped(wrapper)["metadata"].update(creationTimestamp=None, labels=None),
            wrapped(wrapper)["spec"]["template"].update(metadata={"creationTimestamp": None}),
            wrapped(wrapper)["spec"]["template"]["spec"].update(nodeSelector=None, volumes=None),
            wrapped(wrapper)["spec"]["template"]["spec"]["containers"][0].update(
                command=["sh", "-c", 'echo \'{"containers": null, "limits": {"x": null}}\'']
            ),
        )
    ),
    "of MLBatch's tutorial, whose second container has no requests": pod(
        containers=[
            asking(**{"cpu": 4, "memory": "64Gi", "nvidia.com/gpu": 1}),
            {"name": "load-generator", "image": "x"},
        ]
    ),
    "with a larger disk": pod(containers=[asking(**{"ephemeral-storage": "200Gi"})]),
    "in numbers": pod(containers=[asking(**{"cpu": 0.5, "memory": 1073741824, "nvidia.com/gpu": 0})]),
    "with time to pull": metadata(annotations={f"{ANNOTATION}warmupGracePeriodDuration": "30m"}),
    "with exit codes": metadata(annotations={f"{ANNOTATION}terminalExitCodes": "1,2,137"}),
    "that hurries": metadata(
        annotations={f"{ANNOTATION}failureGracePeriodDuration": "1s", f"{ANNOTATION}retryPausePeriodDuration": "0.5s"}
    ),
    "of a priority": pod(priorityClassName="high-priority"),
    "that its author wants started": job(lambda wrapper: wrapper["spec"].update(suspend=False)),
    "near to each other": pods_metadata(annotations={"kueue.x-k8s.io/podset-preferred-topology": "rack"}),
}


@pytest.mark.parametrize("which", GOOD)
def test_a_correct_job_is_accepted(alice: Cluster, which: str) -> None:
    dry_run(alice, GOOD[which])


@pytest.mark.parametrize("document", [each for each in valid_jobs() if each["kind"] in ("AppWrapper", "PodGroup")])
def test_the_jobs_that_attacks_change_are_accepted(alice: Cluster, document: Document) -> None:
    dry_run(alice, in_team(document))


@pytest.fixture(scope="module")
def direct_kinds(cluster: Cluster, platform: None) -> Iterator[None]:
    """Define the kinds of jobs that members may submit without an AppWrapper, without validation."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definitions = []
    for group, kind in (("kubeflow.org", "PyTorchJob"), ("ray.io", "RayCluster"), ("ray.io", "RayJob")):
        plural = f"{kind.lower()}s"
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
        definitions.append(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{group}"},
                "spec": {
                    "group": group,
                    "scope": "Namespaced",
                    "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                    "versions": [version],
                },
            }
        )
    for definition in definitions:
        cluster.create(definition)
    for definition in definitions:
        kind, group = definition["spec"]["names"]["kind"], definition["spec"]["group"]
        eventually(f"{kind} is served", lambda g=group, k=kind: served(cluster, f"{g}/v1", k))
    for team in ("blue", "red"):  # the API server rejects objects of a kind in a quota until the quota counts them
        mine = {f"count/{definition['metadata']['name']}" for definition in definitions}
        eventually("they are counted", lambda t=team: counted(cluster, t), mine.issubset)
    yield
    for definition in definitions:
        cluster.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition["metadata"]["name"])


def counted(cluster: Cluster, namespace: str) -> set[str]:
    """Return the job kinds that a team's quota for undefined kinds counts."""
    quota = cluster.get("v1", "ResourceQuota", "other-jobs", namespace) or {}
    return set((quota.get("status") or {}).get("used") or {})


def served(cluster: Cluster, api_version: str, kind: str) -> bool:
    try:
        cluster.list(api_version, kind, "blue")
    except (ApiException, DynamicApiError, ResourceNotFoundError):
        return False
    return True


def direct(api_version: str, kind: str, **spec: Any) -> Document:
    meta = {"name": "direct", "namespace": "blue", "labels": {"kueue.x-k8s.io/queue-name": "default-queue"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def pytorch(clean: str | None = "Running", scheduling: Document | None = None, **spec: Any) -> Document:
    policy = {"suspend": True, "cleanPodPolicy": clean, "schedulingPolicy": scheduling or {}}
    policy = {key: value for key, value in policy.items() if value}
    replicas = spec.pop("replicas", {"Master": {"replicas": 1, **EMPTY_PODS}})
    return direct("kubeflow.org/v1", "PyTorchJob", runPolicy=policy, pytorchReplicaSpecs=replicas, **spec)


def ray_job(**spec: Any) -> Document:
    own = {"submissionMode": "HTTPMode", "shutdownAfterJobFinishes": True, "rayClusterSpec": ray()}
    return direct("ray.io/v1", "RayJob", suspend=True, **{**own, **spec})


WAITS = {"template": pods(**{"nvidia.com/gpu": "1000"})}
"""Pods that no queue can ever admit. Kueue notices a new kind quickly and starts what it can."""


@pytest.mark.usefixtures("direct_kinds")
class TestDirectJobs:
    """Jobs that members submit without an AppWrapper."""

    @pytest.mark.parametrize("attack", DIRECT)
    def test_uncounted_pods_are_refused(self, alice: Cluster, attack: str) -> None:
        check_refused(alice, DIRECT[attack])

    @pytest.mark.parametrize("document", [each for each in valid_jobs() if each["kind"] in DIRECT_KINDS])
    def test_the_jobs_that_attacks_change_are_accepted(self, alice: Cluster, document: Document) -> None:
        dry_run(alice, in_team(document))

    @pytest.mark.parametrize(
        "document",
        [
            pytorch(replicas={"Master": {"replicas": 1, **WAITS}}),
            ray_job(rayClusterSpec=ray(**WAITS)),
            direct("ray.io/v1", "RayCluster", suspend=True, **ray(**WAITS)),
        ],
        ids=lambda document: document["kind"],
    )
    def test_a_waiting_job_is_accepted_and_its_author_cannot_start_it(self, alice: Cluster, document: Document) -> None:
        alice.create(document)
        version, kind = document["apiVersion"], document["kind"]
        try:
            start = {"spec": {"suspend": False, "runPolicy": {"suspend": False}}}
            assert "by its queue alone" in refused(alice.patch, version, kind, "direct", start, "blue")
            more = {"spec": {"workerGroupSpecs": [], "pytorchReplicaSpecs": {}}}
            assert "is not changed" in refused(alice.patch, version, kind, "direct", more, "blue")
            held = {"metadata": {"finalizers": [CLAIMS_FINALIZER]}}
            assert "finalizers would hold back" in refused(alice.patch, version, kind, "direct", held, "blue")
            for told in (
                {"annotations": {"ray.io/ft-enabled": "true"}},
                {"annotations": {"ray.io/enable-serve-service": "true"}},
                {"labels": {"ray.io/originated-from-crd": "RayJob"}},
            ):
                said = refused(alice.patch, version, kind, "direct", {"metadata": told}, "blue")
                assert "tells Kueue and KubeRay is not changed" in said
            for policy, reason in (("Orphan", "deleted with its pods"), ("Foreground", "before its pods have ended")):
                resource, body = alice.kind(version, kind), {"propagationPolicy": policy}
                said = refused(alice.client.delete, resource, name="direct", namespace="blue", body=body)
                assert reason in said
        finally:
            alice.delete(version, kind, "direct", "blue")


def test_a_loop_cannot_start_a_job(alice: Cluster, cluster: Cluster) -> None:
    with submitted(alice, gang("greedy", "blue", pods=4, gpus=8)):
        eventually("the job waits", lambda: phase(cluster, "greedy"), lambda found: found == "Suspended")
        for _ in range(30):
            said = refused(alice.patch, APPWRAPPER, "AppWrapper", "greedy", {"spec": {"suspend": False}}, "blue")
            assert "by its queue alone" in said
        assert phase(cluster, "greedy") == "Suspended"
        assert pods_of(cluster, "greedy") == []


def test_a_job_does_not_run_on_the_quota_of_another(alice: Cluster, cluster: Cluster) -> None:
    with submitted(alice, gang("small", "blue", pods=1, gpus=1)):
        runs(cluster, "small")
        owner = cluster.get(APPWRAPPER, "AppWrapper", "small", "blue")
        assert owner is not None
        reference = {
            "apiVersion": APPWRAPPER,
            "kind": "AppWrapper",
            "name": "small",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        parasite = gang("parasite", "blue", pods=4, gpus=8, ownerReferences=[reference])
        assert "ownerReferences" in refused(alice.create, parasite)
        parasite["spec"]["suspend"] = True
        assert "ownerReferences" in refused(alice.create, parasite)
        del parasite["metadata"]["ownerReferences"]
        with submitted(alice, parasite):
            later = {"metadata": {"ownerReferences": [reference]}}
            said = refused(alice.patch, APPWRAPPER, "AppWrapper", "parasite", later, "blue")
            assert "ownerReferences" in said
            assert phase(cluster, "parasite") in (None, "Suspended")


CHANGES: Mapping[str, tuple[Document, str]] = {
    "another queue": ({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}}, "tells Kueue"),
    "no queue": ({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}}, "tells Kueue"),
    "a higher priority": ({"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "high"}}}, "tells Kueue"),
    "a finalizer": ({"metadata": {"finalizers": ["example.org/hold"]}}, "finalizers would hold back"),
    "a finalizer of claims": ({"metadata": {"finalizers": [CLAIMS_FINALIZER]}}, "finalizers would hold back"),
    "a day to go": (
        {"metadata": {"annotations": {f"{ANNOTATION}forcefulDeletionGracePeriodDuration": "24h"}}},
        "at most 2m",
    ),
    "many exit codes": (
        {"metadata": {"annotations": {f"{ANNOTATION}terminalExitCodes": ",".join(["1"] * 33)}}},
        "at most 32 numbers",
    ),
    "another time to keep it after a failure": (
        {"metadata": {"annotations": {f"{ANNOTATION}deletionOnFailureGracePeriodDuration": "60s"}}},
        "is not changed",
    ),
    "a pause": ({"spec": {"suspend": True}}, "by its queue alone"),
}


@pytest.fixture(scope="class")
def running_job(alice: Cluster, cluster: Cluster) -> Iterator[str]:
    with submitted(alice, gang("steady", "blue", pods=1, gpus=1)):
        runs(cluster, "steady")
        yield "steady"


class TestARunningJob:
    @pytest.mark.parametrize("change", CHANGES)
    def test_it_is_not_changed(self, alice: Cluster, running_job: str, change: str) -> None:
        patch, reason = CHANGES[change]
        assert reason in refused(alice.patch, APPWRAPPER, "AppWrapper", running_job, patch, "blue")

    def test_it_accepts_labels_that_the_queue_ignores(self, alice: Cluster, running_job: str) -> None:
        alice.patch(APPWRAPPER, "AppWrapper", running_job, {"metadata": {"labels": {"experiment": "7"}}}, "blue")

    def test_its_pods_are_not_left_behind(self, alice: Cluster, running_job: str) -> None:
        jobs, wrappers = alice.kind("batch/v1", "Job"), alice.kind(APPWRAPPER, "AppWrapper")
        orphan = {"propagationPolicy": "Orphan"}
        for resource, body in (
            (jobs, None),
            (jobs, orphan),
            (wrappers, orphan),
            (wrappers, {"orphanDependents": True}),
        ):
            said = refused(alice.client.delete, resource, name=running_job, namespace="blue", body=body, dry_run="All")
            assert "deleted with its pods" in said
        foreground = {"propagationPolicy": "Foreground", "dryRun": ["All"]}
        for resource in (jobs, wrappers):
            said = refused(alice.client.delete, resource, name=running_job, namespace="blue", body=foreground)
            assert "before its pods have ended" in said
        whole = {"propagationPolicy": "Background", "dryRun": ["All"]}  # a body replaces the query parameters
        alice.client.delete(jobs, name=running_job, namespace="blue", body=whole)


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret", "Service", "PersistentVolumeClaim"])
def test_contents_of_a_job_cannot_delay_their_deletion(alice: Cluster, kind: str) -> None:
    specs = {
        "Service": {"ports": [{"port": 80}]},
        "PersistentVolumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    name = f"held-{kind.lower()}"
    document: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "blue"}}
    document |= {"spec": specs[kind]} if kind in specs else {}
    alice.create(document)
    try:
        foreign = [] if kind == "PersistentVolumeClaim" else [CLAIMS_FINALIZER]
        for finalizer in ("example.org/hold", *foreign):
            held = {"metadata": {"finalizers": [finalizer]}}
            anew = {**document, "metadata": {**document["metadata"], "name": f"{name}-anew", "finalizers": [finalizer]}}
            assert "finalizers would hold back" in refused(alice.create, anew)
            if kind != "Secret":  # members cannot change Secrets
                assert "finalizers would hold back" in refused(alice.patch, "v1", kind, name, held, "blue")
        body = {"propagationPolicy": "Foreground"}  # the garbage collector would delete a job's object in the same way
        said = refused(alice.client.delete, alice.kind("v1", kind), name=name, namespace="blue", body=body)
        assert "before its pods have ended" in said
    finally:
        alice.delete("v1", kind, name, "blue")


def test_a_job_with_its_files_runs_and_is_deleted_with_them(alice: Cluster, cluster: Cluster) -> None:
    wrapper = gang("whole", "blue", pods=2, gpus=1)
    files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "whole"}, "data": {"a": "b"}}
    wrapper["spec"]["components"].append({"template": files})
    with submitted(alice, wrapper):
        runs(cluster, "whole")
        assert cluster.get("v1", "ConfigMap", "whole", "blue") is not None
    assert cluster.get("v1", "ConfigMap", "whole", "blue") is None
    assert pods_of(cluster, "whole") == []


@pytest.mark.parametrize("uid", [86 * "a", "aws:eks:1234", "auth0|abc", "x y"])
def test_a_member_of_any_identity_provider_submits_jobs(paths: Paths, cluster: Cluster, uid: str) -> None:
    """The uid of OpenShift's kube:admin has 86 characters; a label has at most 63 and a smaller alphabet."""
    with submitted(as_member(paths, "alice", uid=uid), gang("identified", "blue", pods=1, gpus=1)):
        runs(cluster, "identified")


def test_a_deleted_job_keeps_its_quota_until_its_pods_have_ended(
    alice: Cluster, cluster: Cluster, paths: Paths
) -> None:
    """Without the simulated kubelet, pods end as slowly as containers that ignore SIGTERM."""
    with submitted(alice, gang("first", "blue", pods=3, gpus=8)):
        runs(cluster, "first")
        with paused(paths, "kwok"):
            alice.delete(APPWRAPPER, "AppWrapper", "first", "blue")
            alice.create(gang("second", "blue", pods=3, gpus=8))
            eventually("the second one waits", lambda: phase(cluster, "second"), lambda found: found == "Suspended")
            time.sleep(5)
            assert phase(cluster, "second") == "Suspended"
            assert len(pods_of(cluster, "first")) == 3
    runs(cluster, "second")
    alice.delete(APPWRAPPER, "AppWrapper", "second", "blue")
    eventually("the second one is gone", lambda: pods_of(cluster, "second"), lambda left: not left)


def test_a_job_that_fails_is_started_again(alice: Cluster, cluster: Cluster) -> None:
    quick = {f"{ANNOTATION}failureGracePeriodDuration": "1s", f"{ANNOTATION}retryPausePeriodDuration": "1s"}
    wrapper = gang("retried", "blue", pods=1, gpus=1, annotations=quick)
    wrapped(wrapper)["spec"]["backoffLimit"] = 0
    with submitted(alice, wrapper):
        runs(cluster, "retried")
        (first,) = pods_of(cluster, "retried")
        failed = {"status": {"phase": "Failed"}}
        resource = cluster.kind("v1", "Pod").subresources["status"]
        cluster.client.patch(
            resource,
            name=first["metadata"]["name"],
            namespace="blue",
            body=failed,
            content_type="application/merge-patch+json",
        )
        eventually(
            "another pod runs",
            lambda: pods_of(cluster, "retried"),
            lambda pods: all_running(pods) and pods[0]["metadata"]["uid"] != first["metadata"]["uid"],
        )


def test_an_owner_gets_back_what_a_member_borrowed(alice: Cluster, bob: Cluster, cluster: Cluster) -> None:
    with submitted(alice, *(gang(f"loan-{index}", "blue", pods=1, gpus=8) for index in range(3))):
        for index in range(3):
            runs(cluster, f"loan-{index}")
        with submitted(bob, gang("owner", "red", pods=1, gpus=8)):
            runs(cluster, "owner", "red")
            # The preempted job's pods are deleted; AppWrapper reports it a moment later.
            eventually(
                "one of the borrowers has given way, and the two others run",
                lambda: sorted(str(phase(cluster, f"loan-{index}")) for index in range(3)),
                lambda phases: phases == ["Running", "Running", "Suspended"],
            )


@pytest.mark.soak("a minute and a half; tests/unit/test_ending_jobs.py has the status that frees the quota")
def test_a_job_whose_object_comes_back_does_not_keep_what_it_borrowed(
    alice: Cluster, bob: Cluster, cluster: Cluster, paths: Paths
) -> None:
    """A finalizer keeps the ConfigMap. AppWrapper sees the same if a member creates it again after each deletion."""
    files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}
    greedy = gang("greedy", "blue", pods=3, gpus=8)
    greedy["spec"]["components"].append({"template": files})
    keeper = as_member(paths, "system:admin", ["system:masters"])
    with submitted(alice, greedy):
        runs(cluster, "greedy")
        keeper.patch("v1", "ConfigMap", "kept", {"metadata": {"finalizers": ["example.org/kept"]}}, "blue")
        try:
            with submitted(bob, gang("mine", "red", pods=1, gpus=8)):
                runs(cluster, "mine", "red")
                states = cluster.existing(APPWRAPPER, "AppWrapper", "greedy", "blue")["status"]["conditions"]
                assert {"ObjectsCameBack"} <= {each["reason"] for each in states}
        finally:
            keeper.patch("v1", "ConfigMap", "kept", {"metadata": {"finalizers": None}}, "blue")
