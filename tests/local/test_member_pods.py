"""Attacks of members on nodes, quota and network, on the real API server, Kueue and AppWrapper.

Rules for one field are tested with a dry run of a pod by an administrator, because they apply to all pods of a team and
members cannot create pods. Submissions of members go through a real AppWrapper.
"""

import copy
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError

from attack.attacks import attacks
from components.kubernetes.fabric import NO_RDMA, Fabric
from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup
from components.nodes import nvme_scratch
from components.tenancy import own_volumes, pod_policy
from components.tenancy.bounds import APPWRAPPERS, POD_GROUPS, Bounds, job_quotas, quotas
from components.tenancy.pod_policy import PodRules
from components.workloads import jupyterlab, logs, metaseq, nccl, olmo, vllm
from components.workloads.interface import Storage
from components.workloads.pods import NodePods
from components.workloads.submission import Submission, SubmissionMode
from emulator.paths import Paths
from tests.local.environment import Cluster, eventually, gang, member_settings
from tests.local.jobs import KUEUE, pods_of, running
from tests.local.member import as_member, dry_run, refused
from tests.local.member import message as reason_of
from tests.local.standing import Standing
from tests.local.submission import submitted

APPWRAPPER = "workload.codeflare.dev/v1beta2"
POLICY = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"
UNLABELLED = "attacked"
"""A team's namespace without Pod Security labels, which would reject some pods before the policy."""
ROOMY = "roomy"
"""A namespace under the rules of a pool with RDMA and scratch disks."""
JOINED = "k8s.v1.cni.cncf.io/networks"
RDMA = Fabric(resource="nvidia.com/roce_gdr", devices=2)


@pytest.fixture(scope="module", autouse=True)
def platform(standing: Standing, cluster: Cluster) -> Iterator[None]:
    """The members' stack, and two namespaces for dry runs of pods."""
    standing.up("dev", member_settings)
    roomy = PodRules(
        tolerations=[GPU_TOLERATION],
        devices=["nvidia.com/gpu", "nvidia.com/roce_gdr"],
        pinned_memory=True,
        scratch_folder=nvme_scratch.FOLDER,
    )
    policy = replace(pod_policy.policy(roomy), name="roomy", namespaces={"roomy": "true"})
    made = [
        namespace(UNLABELLED, {"mlbatch-team-namespace": "true"}),
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "default-queue", "namespace": UNLABELLED},
            "spec": {"clusterQueue": "blue-cluster-queue"},
        },
        bound("alice", UNLABELLED, role="mlbatch-edit", kind="User"),
        namespace(ROOMY, {"roomy": "true"}),
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "nvidia"},
            "handler": "nvidia",
        },
        *policy.documents(),
    ]
    for document in made:
        cluster.create(document)
    for where in (UNLABELLED, ROOMY):
        eventually(f"service accounts of {where}", lambda w=where: cluster.get("v1", "ServiceAccount", "default", w))
        eventually(
            f"the policy of {where}",
            lambda w=where: refusal(cluster, pod(w, hostNetwork=True)),
            lambda said: "spec.hostNetwork" in said,
        )
    yield
    for document in reversed(made):
        metadata = document["metadata"]
        cluster.delete(document["apiVersion"], document["kind"], metadata["name"], metadata.get("namespace"))


@pytest.fixture(scope="module")
def alice(paths: Paths) -> Cluster:
    return as_member(paths, "alice")


@pytest.fixture(scope="module")
def bob(paths: Paths) -> Cluster:
    return as_member(paths, "bob")


def namespace(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def bound(subject: str, where: str, *, role: str, kind: str) -> dict[str, Any]:
    """Return the binding of a ClusterRole in a namespace."""
    account = {"namespace": where} if kind == "ServiceAccount" else {"apiGroup": "rbac.authorization.k8s.io"}
    return {
        "apiVersion": RBAC,
        "kind": "RoleBinding",
        "metadata": {"name": subject, "namespace": where},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": kind, "name": subject, **account}],
    }


def refusal(cluster: Cluster, document: dict[str, Any]) -> str:
    """Return the API server's reason for rejecting an object, empty if it accepts it."""
    try:
        dry_run(cluster, document)
    except (ApiException, DynamicApiError) as error:
        return reason_of(error)
    return ""


def container(**fields: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    return {"name": "main", "image": "busybox:1.37.0", "resources": resources, **fields}


def pod(where: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "attack", "namespace": where},
        "spec": {"restartPolicy": "Never", "containers": [container()], **spec},
    }


def contained(**fields: Any) -> dict[str, Any]:
    return {"containers": [container(**fields)]}


def secured(**context: Any) -> dict[str, Any]:
    return contained(securityContext=context)


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


def tolerating(**toleration: Any) -> dict[str, Any]:
    return {"tolerations": [toleration]}


def near(kind: str, **term: Any) -> dict[str, Any]:
    """Return a pod's affinity to other pods, with defaults for missing fields."""
    topology = {"topologyKey": "kubernetes.io/os", "labelSelector": {}, **term}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [topology]}}}


PODS = {each.name: each for each in attacks() if each.pod is not None}
JOBS = ("AppWrapper", "PodGroup", "PyTorchJob", "RayCluster", "RayJob", "TrainJob")
OBJECTS = {each.name: each for each in attacks() if each.object is not None and each.object["kind"] not in JOBS}


@pytest.mark.parametrize("attack", PODS)
def test_no_pod_of_a_team_has(cluster: Cluster, attack: str) -> None:
    document = copy.deepcopy(PODS[attack].pod or {})
    document["metadata"]["namespace"] = UNLABELLED
    said = refused(dry_run, cluster, document)
    assert "mlbatch-team-pod-isolation" in said
    assert PODS[attack].refusal in said


@pytest.mark.parametrize("attack", OBJECTS)
def test_no_member_creates(alice: Cluster, attack: str) -> None:
    document = copy.deepcopy(OBJECTS[attack].object or {})
    where = {"{other}": "red"}.get(document["metadata"].get("namespace"), "blue")
    document["metadata"]["namespace"] = where
    assert OBJECTS[attack].refusal in refused(dry_run, alice, document)


def test_a_pod_joins_networks_that_an_administrator_made_in_its_namespace(cluster: Cluster) -> None:
    document = pod(UNLABELLED)
    document["metadata"]["annotations"] = {JOINED: "lab, storage@net2"}
    dry_run(cluster, document)


HARMLESS: dict[str, dict[str, Any]] = {
    "plain": {},
    "limits alone": contained(resources={"limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}}),
    "the GPU nodes' taint": tolerating(**GPU_TOLERATION),
    "the GPU nodes' taint by value": tolerating(key="nvidia.com/gpu", value="present", effect="NoSchedule"),
    "a node that is down for a while": tolerating(
        key="node.kubernetes.io/unreachable", operator="Exists", effect="NoExecute", tolerationSeconds=60
    ),
    "the volumes of a job": {
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "files", "configMap": {"name": "files"}},
            {"name": "token", "secret": {"secretName": "token"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "pod", "downwardAPI": {"items": []}},
        ]
    },
    "an init container": {"initContainers": [container(name="i")]},
    "high priority": {"priorityClassName": "high-priority"},
    "two minutes to end": {"terminationGracePeriodSeconds": 120},
    "root in its own container": {"securityContext": {"runAsUser": 0}, **secured(capabilities={"add": ["CHOWN"]})},
    "a separate probe": contained(readinessProbe={"httpGet": {"port": 80}}),
    "what KubeRay's submitter has": contained(
        resources={"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    ),
    "a larger disk": contained(
        resources={part: {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Ti"} for part in ("requests", "limits")}
    ),
}


@pytest.mark.parametrize("spec", HARMLESS.values(), ids=HARMLESS)
def test_a_pod_of_a_team_may_have(cluster: Cluster, spec: dict[str, Any]) -> None:
    for where in (UNLABELLED, "blue"):
        dry_run(cluster, pod(where, **copy.deepcopy(spec)))


class TestPlatformsOwnPods:
    """The policies admit all pods that the platform's workloads create in a team's namespace."""

    def node_pods(self, fabric: Fabric) -> NodePods:
        return NodePods(
            image="registry.example.org/image:1",
            nodes=2,
            placement=NodeGroup(tolerations=[GPU_TOLERATION]),
            gpus=8,
            cpu="64",
            memory="1000Gi",
            fabric=fabric,
            shared_memory="8Gi",
            deadline_seconds=3600,
        )

    def documents(self, where: str, fabric: Fabric, *, scratch: bool) -> list[dict[str, Any]]:
        team = Submission(mode=SubmissionMode.MLBATCH, namespace=where, priority_class="default-priority")
        pods = self.node_pods(fabric)
        lab = jupyterlab.JupyterLabArgs(
            submission=team, pods=pods, token="t", storage=Storage(storage_class=None, size="1Ti"), scratch=scratch
        )
        batch = vllm.VllmArgs(
            submission=team,
            image="i:1",
            cpu="4",
            memory="64Gi",
            generator_cpu="1",
            generator_memory="4Gi",
            placement=pods.placement,
            claim="weights",
            storage=Storage(storage_class=None, size="50Gi"),
            start_seconds=3600,
            deadline_seconds=7200,
        )
        return [
            *nccl.documents("nccl", nccl.NcclArgs(submission=team, pods=pods)),
            *metaseq.documents(
                "metaseq", metaseq.MetaseqArgs(submission=team, pods=pods, model=metaseq.SIZES["1.3b"], logs="logs")
            ),
            *(olmo.documents("olmo", olmo.OlmoArgs(submission=team, pods=pods, data="data")) if scratch else []),
            *vllm.documents("batch", batch),
            jupyterlab.server("lab", lab),
            *logs.aim("aim", logs.LogViewerArgs(namespace=where, logs="logs", image="i:1")),
            *logs.tensorboard("board", logs.LogViewerArgs(namespace=where, logs="logs", image="i:1")),
        ]

    def templates(self, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        inner = [
            component["template"]
            for document in documents
            if document["kind"] == "AppWrapper"
            for component in document["spec"]["components"]
        ]
        running = [item for item in [*documents, *inner] if item["kind"] in ("Job", "Deployment")]
        return [item["spec"]["template"] for item in running]

    @pytest.mark.parametrize(
        ("where", "fabric", "scratch", "count"), [("blue", NO_RDMA, False, 6), (ROOMY, RDMA, True, 7)]
    )
    def test_all_of_them(self, cluster: Cluster, where: str, fabric: Fabric, *, scratch: bool, count: int) -> None:
        templates = self.templates(self.documents(where, fabric, scratch=scratch))
        assert len(templates) == count
        for template in templates:
            spec = {"restartPolicy": "Always", **template["spec"]}
            document = {**pod(where), "spec": spec}
            document["metadata"] = {**document["metadata"], "labels": template["metadata"]["labels"]}
            dry_run(cluster, document)

    def test_a_pool_with_rdma_and_scratch_gives_these_and_no_more(self, cluster: Cluster) -> None:
        pinned = secured(capabilities={"add": ["IPC_LOCK"]})
        dry_run(cluster, pod(ROOMY, **pinned))
        other = volume(hostPath={"path": f"{nvme_scratch.FOLDER}/others"})
        assert f"mount is {nvme_scratch.FOLDER}" in refused(dry_run, cluster, pod(ROOMY, **other))
        assert "capabilities.add" in refused(dry_run, cluster, pod(ROOMY, **secured(capabilities={"add": ["ALL"]})))


def wrapper(name: str, where: str, **spec: Any) -> dict[str, Any]:
    template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod("", **spec)["spec"]}
    return {
        "apiVersion": APPWRAPPER,
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": where},
        "spec": {"components": [{"template": template}]},
    }


def outcome(cluster: Cluster, name: str, where: str) -> str:
    """Return the messages in an AppWrapper's status."""
    found = cluster.get(APPWRAPPER, "AppWrapper", name, where) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return " ".join(str(item.get("message")) for item in conditions)


ROOT: dict[str, Any] = {
    "hostNetwork": True,
    "hostPID": True,
    "nodeName": "gpu-node-0",
    "tolerations": [{"operator": "Exists"}],
    "volumes": [{"name": "root", "hostPath": {"path": "/"}}],
    **secured(privileged=True),
}


@pytest.mark.parametrize("name", ["root", "tolerant"])
def test_no_member_gets_to_a_node_through_an_appwrapper(cluster: Cluster, alice: Cluster, name: str) -> None:
    spec = ROOT if name == "root" else tolerating(operator="Exists")
    with submitted(alice, wrapper(name, UNLABELLED, **spec)):
        said = eventually(
            "the policy refuses it",
            lambda: outcome(cluster, name, UNLABELLED),
            lambda text: "mlbatch-team-pod-isolation" in text,
        )
        assert ("spec.hostNetwork" if name == "root" else "spec.tolerations") in said
        assert cluster.list("v1", "Pod", UNLABELLED) == []


def test_pod_security_refuses_root_by_itself(cluster: Cluster) -> None:
    assert 'violates PodSecurity "baseline' in refused(dry_run, cluster, pod("blue", **ROOT))


@pytest.mark.parametrize("where", ["blue", UNLABELLED])
def test_a_harmless_appwrapper_of_a_member_runs(cluster: Cluster, alice: Cluster, where: str) -> None:
    """In the team's namespace, and in one without a team, which a queue is open to and whose pods have no defaults."""
    amounts = {"cpu": "1", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts} if where == UNLABELLED else {}
    with submitted(alice, wrapper("harmless", where, **contained(resources=resources))):
        eventually("it runs", lambda: [p["status"].get("phase") for p in cluster.list("v1", "Pod", where)], bool)


def delete(as_whom: Cluster, name: str, grace: int | None) -> None:
    """Dry-run a pod's deletion. A request body replaces all query parameters."""
    pods = as_whom.kind("v1", "Pod")
    body = {"dryRun": ["All"], **({} if grace is None else {"gracePeriodSeconds": grace})}
    as_whom.client.delete(pods, name=name, namespace="blue", body=body)


def running_pod(cluster: Cluster, job: str) -> str:
    """Return the name of a job's only pod once it runs."""
    selector = f"workload.codeflare.dev/appwrapper={job}"
    (found,) = eventually(
        f"{job} runs",
        lambda: cluster.list("v1", "Pod", "blue", label_selector=selector),
        lambda pods: [each["status"].get("phase") for each in pods] == ["Running"],
    )
    return str(found["metadata"]["name"])


def test_deleting_a_pod_does_not_keep_it_beyond_its_job(cluster: Cluster, alice: Cluster) -> None:
    """Otherwise it would run on uncounted for the grace period, while the job gets another pod."""
    with submitted(alice, gang("steady", "blue", pods=1, gpus=1)):
        name = running_pod(cluster, "steady")
        for member in (alice, cluster):
            assert "a pod ends within 120 seconds" in refused(delete, member, name, 86400)
        assert "runs on uncounted" in refused(delete, alice, name, 0)
        for grace in (None, 1, 120):
            assert "this belongs to a job" in refused(delete, alice, name, grace)
            delete(cluster, name, grace)
        delete(cluster, name, 0)  # like the deletion of a pod on a lost node
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": "blue"},
            "deleteOptions": {"gracePeriodSeconds": 86400, "dryRun": ["All"]},
        }
        evictions = cluster.kind("v1", "Pod").subresources["eviction"]
        said = refused(evictions.create, body=eviction, name=name, namespace="blue")
        assert "a pod ends within 120 seconds" in said
        stripped = {"metadata": {"finalizers": None}}
        said = refused(alice.patch, APPWRAPPER, "AppWrapper", "steady", stripped, "blue")
        assert "finalizers are taken off by the controller" in said


def test_members_delete_a_pod_that_no_controller_replaces(cluster: Cluster, alice: Cluster) -> None:
    with submitted(alice, wrapper("single", "blue")):
        name = running_pod(cluster, "single")
        for grace in (None, 1, 120):
            delete(alice, name, grace)
        assert "runs on uncounted" in refused(delete, alice, name, 0)
        assert "a pod ends within 120 seconds" in refused(delete, alice, name, 121)


def test_missing_requests_of_a_job_are_counted_by_the_default(cluster: Cluster, alice: Cluster) -> None:
    job = gang("silent", "blue", pods=1, gpus=1)
    (main,) = job["spec"]["components"][0]["template"]["spec"]["template"]["spec"]["containers"]
    main["resources"] = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    with submitted(alice, job):
        running(cluster, "blue", "silent", pods=1)
        (workload,) = cluster.list(KUEUE, "Workload", "blue")
        (usage,) = [item["resourceUsage"] for item in workload["status"]["admission"]["podSetAssignments"]]
        assert (usage["cpu"], usage["memory"]) == ("1", "4Gi")
        (made,) = pods_of(cluster, "blue", "silent")
        resources = made["spec"]["containers"][0]["resources"]
        requests, limits = resources["requests"], resources["limits"]
        assert (requests["cpu"], requests["memory"]) == ("1", "4Gi")
        assert (limits["memory"], limits["ephemeral-storage"]) == ("4Gi", "50Gi")
        assert "cpu" not in limits


def test_members_create_no_pod_themselves(alice: Cluster) -> None:
    assert 'cannot create resource "pods"' in refused(dry_run, alice, pod("blue"))


def test_a_teams_service_account_creates_no_pod(cluster: Cluster, paths: Paths) -> None:
    """Operators grant rights to such accounts, for example Ray's autoscaler, and queues do not count their pods."""
    cluster.create(bound("default", "blue", role="cluster-admin", kind="ServiceAccount"))
    try:
        account = as_member(paths, "system:serviceaccount:blue:default")
        eventually("it has the right", lambda: "no queue would count" in refused(dry_run, account, pod("blue")))
    finally:
        cluster.delete(RBAC, "RoleBinding", "default", "blue")


def test_later_additions_to_a_pod_are_checked(cluster: Cluster) -> None:
    cluster.create(pod(UNLABELLED, nodeSelector={"is": "nowhere"}))  # a node's kubelet would handle the resize
    try:
        pods = cluster.kind("v1", "Pod")
        debugger = {"name": "d", "image": "busybox:1.37.0", "securityContext": {"privileged": True}}
        for subresource, change, message in (
            ("ephemeralcontainers", {"ephemeralContainers": [debugger]}, "securityContext.privileged"),
            (
                "resize",
                {"containers": [{"name": "main", "resources": {"requests": {"cpu": "64", "memory": "1Gi"}}}]},
                "pods/resize",
            ),
        ):
            said = refused(
                cluster.client.patch,
                pods.subresources[subresource],
                name="attack",
                namespace=UNLABELLED,
                body={"spec": change},
                content_type="application/strategic-merge-patch+json",
            )
            assert message in said
        cluster.patch("v1", "Pod", "attack", {"metadata": {"labels": {"may": "change"}}}, UNLABELLED)
    finally:
        cluster.delete("v1", "Pod", "attack", UNLABELLED)


def test_no_pod_has_kubernetes_own_priority_or_keeps_others_away_where_there_are_no_policies(cluster: Cluster) -> None:
    """The ResourceQuotas alone enforce it in a namespace without policies."""
    cluster.create(namespace("plain", {}))
    try:
        for quota in quotas("plain", Bounds()):
            cluster.create(quota)
        for name in ("no-system-pods", "no-foreign-affinity"):
            eventually("the quota counts", lambda name=name: counted(cluster, name, "plain"))
        eventually("there is an account", lambda: cluster.get("v1", "ServiceAccount", "default", "plain"))
        dry_run(cluster, pod("plain", **near("podAntiAffinity")))
        for name in ("system-node-critical", "system-cluster-critical"):
            assert "exceeded quota: no-system-pods" in refused(dry_run, cluster, pod("plain", priorityClassName=name))
        for where in ({"namespaces": ["red"]}, {"namespaceSelector": {}}):
            attack = pod("plain", **near("podAntiAffinity", **where))
            assert "exceeded quota: no-foreign-affinity" in refused(dry_run, cluster, attack)
    finally:
        cluster.delete("v1", "Namespace", "plain")


def patched(as_whom: Cluster, version: str, kind: str, name: str, where: str, body: dict[str, Any]) -> None:
    """Dry-run a strategic merge patch."""
    as_whom.client.patch(
        as_whom.kind(version, kind),
        name=name,
        namespace=where,
        body=body,
        content_type="application/strategic-merge-patch+json",
        dry_run="All",
    )


def counted(cluster: Cluster, quota: str, where: str) -> dict[str, str] | None:
    found = cluster.get("v1", "ResourceQuota", quota, where) or {}
    return (found.get("status") or {}).get("used")


def service(where: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mine", "namespace": where},
        "spec": {"selector": {"app": "mine"}, "ports": [{"port": 80}], **spec},
    }


class TestServices:
    def test_a_service_cannot_have_labels_of_ray(self, alice: Cluster) -> None:
        of_ray = {"labels": {"ray.io/cluster": "another", "ray.io/node-type": "head"}}
        alice.create(service("blue"))
        try:
            assert "ray.io/" in refused(alice.patch, "v1", "Service", "mine", {"metadata": of_ray}, "blue")
        finally:
            alice.delete("v1", "Service", "mine", "blue")

    def test_objects_of_a_job_stay_as_its_operator_created_them(self, alice: Cluster, cluster: Cluster) -> None:
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job", "namespace": "blue"}})
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "job", "controller": True}
        owner["uid"] = cluster.existing("v1", "ConfigMap", "job", "blue")["metadata"]["uid"]
        document = service("blue")
        document["metadata"] |= {"ownerReferences": [owner], "labels": {"of": "job"}}
        cluster.create(document)
        try:
            for change in ({"labels": {"of": None}}, {"ownerReferences": []}):
                said = refused(alice.patch, "v1", "Service", "mine", {"metadata": change}, "blue")
                assert "belongs to a job" in said
        finally:
            cluster.delete("v1", "Service", "mine", "blue")
            cluster.delete("v1", "ConfigMap", "job", "blue")

    def test_names_for_a_jobs_pods_are_free(self, alice: Cluster) -> None:
        dry_run(alice, service("blue"))
        dry_run(alice, service("blue", clusterIP="None"))

    def test_an_existing_service_cannot_be_changed_into_a_refused_one(self, alice: Cluster) -> None:
        alice.create(service("blue"))
        try:
            change = {"spec": {"externalIPs": ["203.0.113.7"]}}
            assert "spec.externalIPs" in refused(alice.patch, "v1", "Service", "mine", change, "blue")
        finally:
            alice.delete("v1", "Service", "mine", "blue")

    def test_a_team_that_may_names_the_addresses(self, bob: Cluster) -> None:
        dry_run(bob, service("red", type="NodePort"))
        open_to_all = service("red", type="LoadBalancer")
        assert "spec.loadBalancerSourceRanges" in refused(dry_run, bob, open_to_all)
        for everybody in (["0.0.0.0/0"], ["0.0.0.0/1", "128.0.0.0/1"]):
            open_to_all["spec"]["loadBalancerSourceRanges"] = everybody
            assert "spec.loadBalancerSourceRanges" in refused(dry_run, bob, open_to_all)
        narrow = service("red", type="LoadBalancer", loadBalancerSourceRanges=["203.0.113.0/24"])
        dry_run(bob, narrow)
        narrow["metadata"]["annotations"] = {"service.beta.kubernetes.io/azure-allowed-service-tags": "Internet"}
        assert "metadata.annotations" in refused(dry_run, bob, narrow)

    def test_external_addresses_are_refused(self, bob: Cluster) -> None:
        assert "spec.externalIPs" in refused(dry_run, bob, service("red", externalIPs=["203.0.113.7"]))

    def test_as_many_load_balancers_as_the_settings_allow(self, bob: Cluster) -> None:
        ranges = {"type": "LoadBalancer", "loadBalancerSourceRanges": ["203.0.113.0/24"]}
        bob.create(service("red", **ranges))
        try:
            second = service("red", **ranges)
            second["metadata"]["name"] = "second"
            assert "exceeded quota: bounds" in refused(bob.create, second)
        finally:
            bob.delete("v1", "Service", "mine", "red")


def claim(size: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "claim", "namespace": "blue"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
    }


def test_volumes_end_at_the_teams_storage(alice: Cluster) -> None:
    assert "exceeded quota: bounds" in refused(dry_run, alice, claim("21Ti"))


def test_an_administrator_names_the_volume_of_a_claim(alice: Cluster, cluster: Cluster) -> None:
    dry_run(alice, claim("1Gi"))
    dry_run(cluster, claim("1Gi", volumeName="of-blue", storageClassName=""))


def test_no_key_of_a_storage_account_is_put_where_a_teams_pods_mount_it(cluster: Cluster) -> None:
    """Azure's provisioners create such Secrets for a claim, with the rights of their accounts."""
    stored = {"azurestorageaccountname": "shared", "azurestorageaccountkey": "c2VjcmV0"}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "azure-storage-account-shared-secret"}}
    for data in ({"stringData": stored}, {"data": dict.fromkeys(stored, "c2VjcmV0")}):
        secret = {**body, **data, "metadata": {**body["metadata"], "namespace": "blue"}}
        assert "secretNamespace: kube-system" in refused(dry_run, cluster, secret)
        dry_run(cluster, {**secret, "metadata": {**body["metadata"], "namespace": "kube-system"}})


def test_a_claim_does_not_get_a_volume_by_a_class_without_a_provisioner(alice: Cluster, cluster: Cluster) -> None:
    """No provisioner serves such a claim. The real controller binds it to a volume with this class name, or none."""
    cluster.create(persistent_volume("of-red"))
    cluster.create(persistent_volume("of-all", labels={own_volumes.FOR_ANY_TEAM: "true"}, storageClassName="shared"))
    kinds = ("v1", "PersistentVolumeClaim")
    try:
        alice.create(claim("1Gi", storageClassName="by-hand"))
        said = refused(alice.patch, *kinds, "claim", {"spec": {"volumeName": "of-red"}}, "blue")
        assert "mlbatch-team-own-volumes" in said
        alice.patch(*kinds, "claim", {"metadata": {"labels": {"may": "change"}}}, "blue")
        other = claim("1Gi", storageClassName="shared")
        other["metadata"]["name"] = "other"
        alice.create(other)
        eventually("it has what is for all", lambda: phase_of(cluster, "other"), lambda found: found == "Bound")
        assert phase_of(cluster, "claim") == "Pending", "the same controller has looked at it before"
        assert "claimRef" not in cluster.existing("v1", "PersistentVolume", "of-red")["spec"]
    finally:
        for name in ("claim", "other"):
            cluster.delete(*kinds, name, "blue")
        for name in ("of-red", "of-all"):
            cluster.delete("v1", "PersistentVolume", name)


def phase_of(cluster: Cluster, name: str) -> object:
    return cluster.existing("v1", "PersistentVolumeClaim", name, "blue")["status"]["phase"]


def persistent_volume(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a volume without a claim, as administrators create them."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "by-hand",
            "hostPath": {"path": f"/srv/{name}"},
            **spec,
        },
    }


def long_lived(where: str, account: str) -> dict[str, Any]:
    """Return a Secret for a long-lived service account token."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "token",
            "namespace": where,
            "annotations": {"kubernetes.io/service-account.name": account},
        },
        "type": "kubernetes.io/service-account-token",
    }


def test_no_user_creates_a_token_that_outlives_a_membership(alice: Cluster, cluster: Cluster) -> None:
    token = long_lived("blue", "default")
    assert "mlbatch-team-no-lasting-tokens" in refused(dry_run, alice, token)
    dry_run(cluster, token)
    dry_run(alice, {**token, "type": "Opaque"})


def _allowed(act: Callable[..., Any], *arguments: Any) -> bool:
    try:
        act(*arguments)
    except (ApiException, DynamicApiError):
        return False
    return True


class TestOperators:
    """Attacks with an operator's account, by impersonation, as if its pod were taken over."""

    def test_appwrapper_acts_only_for_teams(self, paths: Paths) -> None:
        account = as_member(paths, "system:serviceaccount:mlbatch-system:appwrapper-controller-manager")
        dry_run(account, pod("blue"))
        for where in ("kube-system", "mlbatch-system", "default"):
            assert "mlbatch-team-appwrapper-scope" in refused(dry_run, account, pod(where))
        token = long_lived("kube-system", "clusterrole-aggregation-controller")
        assert "cannot create" in refused(dry_run, account, token)
        for where in ("kube-system", "blue"):
            assert "cannot list" in refused(account.list, "v1", "Secret", where)

    def test_appwrapper_does_not_delete_what_is_started_again(self, paths: Paths, cluster: Cluster) -> None:
        """It may delete any other object of a team. If it could not, it would keep the quota of its job for ever."""
        account = as_member(paths, "system:serviceaccount:mlbatch-system:appwrapper-controller-manager")
        named = {"name": "replacer", "namespace": "blue"}
        labels = {"replaced": "yes"}
        template = {"metadata": {"labels": labels}, "spec": {**pod("blue")["spec"], "restartPolicy": "Always"}}
        owner = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        cluster.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": named, "spec": owner})
        try:
            uid = cluster.existing("apps/v1", "ReplicaSet", "replacer", "blue")["metadata"]["uid"]
            reference = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "replacer",
                "uid": uid,
                "controller": True,
            }
            owned = {"name": "owned", "namespace": "blue", "ownerReferences": [reference]}
            job = {"suspend": True, "template": {"spec": {**pod("blue")["spec"], "restartPolicy": "Never"}}}
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": owned})
            cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": owned, "spec": job})
            said = refused(account.delete, "batch/v1", "Job", "owned", "blue")
            assert "AppWrapper does not delete what another controller would start again" in said
            account.delete("v1", "ConfigMap", "owned", "blue")
        finally:
            cluster.delete("apps/v1", "ReplicaSet", "replacer", "blue")

    def test_kueue_acts_only_for_teams_and_on_its_queues(self, paths: Paths, cluster: Cluster) -> None:
        account = as_member(paths, "system:serviceaccount:mlbatch-system:kueue-controller-manager")
        image = {"spec": {"containers": [{"name": "main", "image": "mine"}]}}
        for where, allowed in (("kube-system", False), (UNLABELLED, True)):
            cluster.create(pod(where, nodeSelector={"is": "nowhere"}))
            try:
                if allowed:
                    patched(account, "v1", "Pod", "attack", where, image)
                else:
                    said = refused(patched, account, "v1", "Pod", "attack", where, image)
                    assert "mlbatch-team-kueue-scope" in said
            finally:
                cluster.delete("v1", "Pod", "attack", where)
        definitions = account.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        foreign = cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", APPWRAPPERS)
        said = refused(account.client.replace, definitions, body=foreign, dry_run="All")
        by_role, by_policy = "cannot update resource", "definitions of its own kinds"
        assert by_role in said or by_policy in said, "Kueue's role names its definitions since v0.19"

    def test_an_operator_of_others_does_not_open_a_teams_network(self, paths: Paths, cluster: Cluster) -> None:
        """KubeRay of OpenShift AI 3.4 writes such NetworkPolicies, and its Trainer one with a TrainJob's name."""
        api, kind, own = "networking.k8s.io/v1", "NetworkPolicy", {"podSelector": {}}
        subject = {"kind": "User", "apiGroup": RBAC.split("/")[0], "name": "system:serviceaccount:others:operator"}
        role = {"apiGroup": RBAC.split("/")[0], "kind": "ClusterRole", "name": "admin"}
        binding = {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": "others", "namespace": "blue"}}
        cluster.create({**binding, "roleRef": role, "subjects": [subject]})

        def opened(*peers: dict[str, Any], **rule: Any) -> dict[str, Any]:
            spec = {"podSelector": {}, "ingress": [{**({"from": list(peers)} if peers else {}), **rule}]}
            return {"apiVersion": api, "kind": kind, "metadata": {"name": "head", "namespace": "blue"}, "spec": spec}

        try:
            operator = as_member(paths, subject["name"])
            eventually("its rights hold", lambda: _allowed(dry_run, operator, opened(own)))
            for rule in (
                opened(ports=[{"port": 8443}]),
                opened(own, {"namespaceSelector": {}}),
                opened({"ipBlock": {"cidr": "0.0.0.0/0"}}),
            ):
                assert "open a team's network" in refused(dry_run, operator, rule)
                dry_run(cluster, rule)
            out = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}
            assert "open a team's network" in refused(dry_run, operator, {**opened(), "spec": out})
            of_a_job = {"spec": {"ingress": [{"from": [own]}]}}
            said = refused(patched, operator, api, kind, "network-boundary", "blue", of_a_job)
            assert "write NetworkPolicy network-boundary" in said
            said = refused(operator.delete, api, kind, "network-boundary", "blue")
            assert "delete NetworkPolicy network-boundary" in said
        finally:
            cluster.delete(RBAC, "RoleBinding", "others", "blue")

    def test_a_network_policy_is_deleted_with_its_namespace(self, cluster: Cluster) -> None:
        metadata = {"name": "network-boundary", "namespace": "ending"}
        spec = {"podSelector": {}, "policyTypes": ["Ingress"]}
        cluster.create(namespace("ending", {"mlbatch-team-namespace": "true"}))
        cluster.create(
            {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}
        )
        cluster.delete("v1", "Namespace", "ending")
        eventually("it is gone", lambda: cluster.get("v1", "Namespace", "ending"), lambda found: found is None)

    @pytest.mark.parametrize(
        "operator", ["kuberay-operator", "kubeflow-trainer-controller-manager", "training-operator"]
    )
    def test_operators_of_jobs_act_only_for_teams(self, paths: Paths, cluster: Cluster, operator: str) -> None:
        """With all rights, because upstream's roles include pods of all namespaces."""
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
        subject = {"kind": "ServiceAccount", "name": operator, "namespace": "mlbatch-system"}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": operator},
            "roleRef": role,
            "subjects": [subject],
        }
        cluster.create(binding)
        try:
            account = as_member(paths, f"system:serviceaccount:mlbatch-system:{operator}")
            eventually("its rights hold", lambda: _allowed(dry_run, account, pod("blue")))
            for where in ("kube-system", "mlbatch-system", "default"):
                assert "mlbatch-team-job-operator-scope" in refused(dry_run, account, pod(where))
        finally:
            cluster.delete("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", operator)

    @pytest.mark.parametrize("operator", ["kueue", "appwrapper"])
    def test_an_operator_changes_only_its_own_webhooks(self, paths: Paths, cluster: Cluster, operator: str) -> None:
        account = as_member(paths, f"system:serviceaccount:mlbatch-system:{operator}-controller-manager")
        kind = account.kind(POLICY, "MutatingWebhookConfiguration")
        for other in ("kueue", "appwrapper"):
            name = f"{other}-mutating-webhook-configuration"
            body = cluster.get(POLICY, "MutatingWebhookConfiguration", name)
            if other == operator:
                account.client.replace(kind, body=body, dry_run="All")
            else:
                assert "cannot update" in refused(account.client.replace, kind, body=body, dry_run="All")

    def test_the_slack_controller_changes_only_what_queues_lend(self, paths: Paths, cluster: Cluster) -> None:
        account = as_member(paths, "system:serviceaccount:mlbatch-system:slack-controller")
        kind, name = (KUEUE, "ClusterQueue"), "red-cluster-queue"
        groups = cluster.existing(*kind, name)["spec"]["resourceGroups"]
        lending, taken = copy.deepcopy(groups), copy.deepcopy(groups)
        lending[0]["flavors"][0]["resources"][2]["lendingLimit"] = "4"
        taken[0]["flavors"][0]["resources"][2]["nominalQuota"] = "0"
        for change in ({"resourceGroups": taken}, {"stopPolicy": "HoldAndDrain"}, {"cohortName": "mine"}):
            said = refused(account.patch, *kind, name, {"spec": change})
            assert "mlbatch-team-lending-scope" in said
        said = refused(account.patch, "kueue.x-k8s.io/v1beta1", "ClusterQueue", name, {"spec": {"cohort": "mine"}})
        assert "mlbatch-team-lending-scope" in said, "the same request in the API's other version"
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}
        for metadata in (
            {"ownerReferences": [owner]},
            {"finalizers": ["example.org/mine"]},
            {"labels": {"example.org/mine": ""}},
            {"annotations": {"mlbatch/lending-limits": "{}"}},
        ):
            assert "mlbatch-team-lending-scope" in refused(account.patch, *kind, name, {"metadata": metadata})
        account.patch(*kind, name, {"spec": {"resourceGroups": lending}})
        eventually("its own limit is back", lambda: cluster.existing(*kind, name)["spec"]["resourceGroups"] == groups)

    def test_the_slack_controller_ends_only_jobs_that_are_deleted_already(self, paths: Paths, cluster: Cluster) -> None:
        account = as_member(paths, "system:serviceaccount:mlbatch-system:slack-controller")
        kind = account.kind("workload.codeflare.dev/v1beta2", "AppWrapper")
        waiting = gang("waiting", "red", pods=100, gpus=8)
        with submitted(as_member(paths, "bob"), waiting):
            change = {"body": {"status": {"phase": "Failed"}}, "content_type": "application/merge-patch+json"}
            patch = account.client.patch
            said = refused(patch, kind.subresources["status"], name="waiting", namespace="red", **change)
            assert "mlbatch-team-lending-scope" in said


def test_no_members_priority_takes_nodes_from_another_team(alice: Cluster, bob: Cluster, cluster: Cluster) -> None:
    """Red runs inside its own quota. Blue requests one of those GPUs with the highest priority."""
    with submitted(bob, gang("own", "red", pods=1, gpus=8)):
        running(cluster, "red", "own", pods=1)
        (theirs,) = pods_of(cluster, "red", "own")
        wanted = gang("wanted", "blue", pods=1, gpus=1)
        spec = wanted["spec"]["components"][0]["template"]["spec"]["template"]["spec"]
        spec |= {
            "priorityClassName": "high-priority",
            "nodeSelector": {"kubernetes.io/hostname": theirs["spec"]["nodeName"]},
        }
        with submitted(alice, wanted):
            eventually(
                "no node is found",
                lambda: [
                    condition
                    for item in pods_of(cluster, "blue", "wanted")
                    for condition in item["status"].get("conditions", [])
                    if condition["type"] == "PodScheduled" and condition["status"] == "False"
                ],
            )
            time.sleep(5)
            assert [item["metadata"]["uid"] for item in pods_of(cluster, "red", "own")] == [theirs["metadata"]["uid"]]


def test_jobs_end_at_a_number(cluster: Cluster, alice: Cluster) -> None:
    for name, kind, most in (("appwrappers", APPWRAPPERS, "1k"), ("podgroups", POD_GROUPS, "6k")):
        quota = cluster.get("v1", "ResourceQuota", name, "blue")
        assert quota is not None
        assert quota["spec"]["hard"] == {f"count/{kind}": most}
        assert set(quota["status"]["used"]) == {f"count/{kind}"}
    (one, _) = job_quotas(UNLABELLED, [APPWRAPPERS], Bounds())
    one["spec"]["hard"] = dict.fromkeys(one["spec"]["hard"], "1")
    cluster.create(one)
    try:
        eventually("the quota counts", lambda: counted(cluster, "appwrappers", UNLABELLED))
        with submitted(alice, wrapper("first", UNLABELLED)):
            assert "exceeded quota: appwrappers" in refused(dry_run, alice, wrapper("second", UNLABELLED))
    finally:
        cluster.delete("v1", "ResourceQuota", "appwrappers", UNLABELLED)


def test_a_job_ends_at_a_size(alice: Cluster) -> None:
    """The size is that of the JSON that the API server stores, and that controllers keep in memory."""
    job = wrapper("large", "blue")
    files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"a": "x" * 60_000}}
    job["spec"]["components"].append({"template": files})
    dry_run(alice, job)
    for size, texts in {1: "x", 2: '"', 4: "\U0001f600", 6: "<\x01\x07\x0b\u2028"}.items():
        for text in texts:
            files["data"] = {"a": text * (66_000 // size)}
            assert "at most 64 KiB" in refused(dry_run, alice, job), repr(text)


def test_a_pod_template_ends_at_a_size(alice: Cluster) -> None:
    job = wrapper("large", "blue")
    (container,) = job["spec"]["components"][0]["template"]["spec"]["containers"]
    container["args"] = ["x" * 30_000]
    dry_run(alice, job)
    container["args"] = ["x" * 33_000]
    assert "at most 32 KiB" in refused(dry_run, alice, job)


def test_a_jobs_lists_end_at_a_number(alice: Cluster) -> None:
    """Kueue and AppWrapper keep all jobs in memory, and AppWrapper creates the components of all teams one by one."""
    job = wrapper("long", "blue")
    template = job["spec"]["components"][0]["template"]
    template["spec"]["tolerations"] = [{}] * 1_000
    assert "at most 1000 opening braces" in refused(dry_run, alice, job)
    del template["spec"]["tolerations"]
    for number in range(15):
        files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"files-{number}"}}
        job["spec"]["components"].append({"template": files})
    dry_run(alice, job)
    job["spec"]["components"].append({"template": {**files, "metadata": {"name": "one-more"}}})
    assert "at most 16 components" in refused(dry_run, alice, job)


def test_an_object_ends_at_a_number_of_items(alice: Cluster) -> None:
    """The API server would work for many seconds on rules that loop over so many items, also of a rejected object."""
    files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "many", "namespace": "blue"}}
    texts = {"a": json.dumps([{"b": 1}] * 8_000)}
    dry_run(alice, {**files, "data": texts})
    job = wrapper("many", "blue")
    job["spec"]["components"][0]["template"]["spec"]["containers"] = [{}] * 16_000
    started = time.monotonic()
    for many in (job, {**files, "data": {f"k{number}": "" for number in range(6_000)}}):
        assert "at most 10000 fields and items" in refused(dry_run, alice, many)
    assert time.monotonic() - started < 10


def test_an_object_ends_at_a_number_of_levels(alice: Cluster) -> None:
    """CEL copies a text once for each level around it. One request kept the API server busy for half a minute."""
    nested: Any = "x" * 1_000_000
    fields: dict[str, Any] = {"f:a": {}}
    for _ in range(400):  # the client's own parser does not go much deeper
        nested, fields = {"a": nested}, {"f:a": fields}
    job = wrapper("deep", "blue")
    job["spec"]["components"][0]["template"]["deep"] = nested
    written = {"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    metadata = {"name": "deep", "namespace": "blue", "managedFields": [written]}
    started = time.monotonic()
    for deep in (job, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}):
        assert "24 levels" in refused(dry_run, alice, deep)
    assert time.monotonic() - started < 10


def test_labels_count_as_a_part_of_an_objects_size(alice: Cluster) -> None:
    """The API server limits only annotations. If an object has no space for its status, AppWrapper repeats its work."""
    labels = {f"example.org/{'x' * 55}-{number}": "y" * 60 for number in range(2_000)}
    documents: list[dict[str, Any]] = [
        wrapper("large", "blue"),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large", "namespace": "blue"}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "large", "namespace": "blue"},
            "spec": {"ports": [{"port": 80}]},
        },
    ]
    for document in documents:
        metadata = document["metadata"]
        dry_run(alice, {**document, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), "a": "b"}}})
        large = {**document, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}
        assert "at most 64 KiB" in refused(dry_run, alice, large), document["kind"]
    alice.create(documents[1])
    try:
        assert "Secret 256 KiB" in refused(
            alice.patch, "v1", "ConfigMap", "large", {"metadata": {"labels": labels}}, "blue"
        )
    finally:
        alice.delete("v1", "ConfigMap", "large", "blue")


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_a_file_ends_at_a_size(kind: str, alice: Cluster) -> None:
    file = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "files", "namespace": "blue"}}
    dry_run(alice, {**file, "data": {"a": "eHh4" * 60_000}})
    assert "Secret 256 KiB" in refused(dry_run, alice, {**file, "data": {"a": "eHh4" * 70_000}})


def test_a_secrets_type_counts_as_a_part_of_its_size(alice: Cluster) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "typed", "namespace": "blue"}, "type": "a/b"}
    dry_run(alice, secret)
    assert "Secret 256 KiB" in refused(dry_run, alice, {**secret, "type": "a/" + "b" * 270_000})


def test_members_cannot_change_their_restrictions(alice: Cluster) -> None:
    for version, kind, name, where in (
        ("v1", "ResourceQuota", "bounds", "blue"),
        ("v1", "Namespace", "blue", None),
        (POLICY, "ValidatingAdmissionPolicyBinding", "mlbatch-team-pod-isolation", None),
    ):
        assert "forbidden" in refused(alice.patch, version, kind, name, {"metadata": {"labels": {"x": "y"}}}, where)
