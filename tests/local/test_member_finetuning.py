"""The fine-tuning job as printed for a member, on simulated nodes.

Kueue really admits the RayJob, KubeRay creates its head and workers, and the packing scheduler places them. The pods
are simulated, so Ray's dashboard never responds to KubeRay, and the job never ends.
"""

import copy
from collections import Counter
from typing import Any

import kubernetes
import pytest

from emulator.paths import Paths
from tests.local.environment import Cluster, Project, eventually, operators_settings
from tests.local.jobs import GPU, KUEUE
from tests.local.member import as_member, dry_run, refused
from tests.local.printed import TEAM, USER, gpus, pods, printed, submitted
from tests.local.standing import Standing

RAY = "ray.io/v1"
GROUPS = "scheduling.x-k8s.io/v1alpha1"
WORKERS = 6
"""More than each of three nodes has if they are spread, and fewer than one node has."""


@pytest.fixture(scope="module")
def project(standing: Standing) -> Project:
    return standing.up("dev", operators_settings)


def workload(cluster: Cluster, name: str) -> dict[str, Any] | None:
    """Return Kueue's Workload of a RayJob of the team."""
    for item in cluster.list(KUEUE, "Workload", TEAM):
        owners = [(owner["kind"], owner["name"]) for owner in item["metadata"].get("ownerReferences") or ()]
        if ("RayJob", name) in owners:
            return item
    return None


def admitted(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return Kueue's admission of a RayJob, as soon as it is admitted."""
    found = eventually(
        f"{name} is admitted",
        lambda: ((workload(cluster, name) or {}).get("status") or {}).get("admission") or {},
    )
    return dict(found)


def used_gpus(cluster: Cluster, queue: str) -> int:
    """Return the GPUs in use of a ClusterQueue, as counted by Kueue."""
    status = cluster.existing(KUEUE, "ClusterQueue", queue)["status"]
    found = [item for flavor in status["flavorsUsage"] for item in flavor["resources"] if item["name"] == GPU]
    return sum(int(item["total"]) for item in found)


def bound(cluster: Cluster, name: str, also: str = "") -> list[str]:
    return [pod["spec"]["nodeName"] for pod in pods(cluster, TEAM, name, also) if pod["spec"].get("nodeName")]


def gone(cluster: Cluster, name: str) -> None:
    eventually(f"no pod of {name} is left", lambda: pods(cluster, TEAM, name), lambda found: not found)
    eventually(f"{name} counts no more", lambda: workload(cluster, name), lambda found: found is None)


def test_it_is_admitted_by_its_gpus_and_packed(project: Project, cluster: Cluster, paths: Paths) -> None:
    """Spread over three nodes, its workers would leave no whole node for another job."""
    with submitted(paths, operators_settings(project), "finetuning", {"name": "tune", "workers": WORKERS}):
        admission = admitted(cluster, "tune")
        counted = {
            item["name"]: (item["count"], item["resourceUsage"].get(GPU, "0"))
            for item in admission["podSetAssignments"]
        }
        assert counted == {"head": (1, "0"), "workers": (WORKERS, str(WORKERS))}
        eventually(
            "all of its pods run",
            lambda: [pod["status"]["phase"] for pod in pods(cluster, TEAM, "tune")],
            lambda phases: phases == ["Running"] * (1 + WORKERS),
        )
        workers = pods(cluster, TEAM, "tune", ",ray.io/node-type=worker")
        assert [gpus(pod) for pod in workers] == [1] * WORKERS
        (head,) = pods(cluster, TEAM, "tune", ",ray.io/node-type=head")
        assert gpus(head) == 0
        assert list(Counter(bound(cluster, "tune", ",ray.io/node-type=worker")).values()) == [WORKERS]
        eventually(
            "its team's queue counts its GPUs",
            lambda: used_gpus(cluster, admission["clusterQueue"]),
            lambda found: found == WORKERS,
        )
        assert cluster.existing(GROUPS, "PodGroup", "tune", TEAM)["spec"]["minMember"] == 1 + WORKERS
    assert cluster.get(GROUPS, "PodGroup", "tune", TEAM) is None
    eventually(
        "no use is counted any more", lambda: used_gpus(cluster, admission["clusterQueue"]), lambda found: not found
    )


def test_kuberay_asks_the_dashboard_through_the_proxy(project: Project, cluster: Cluster, paths: Paths) -> None:
    """The proxy does not find the host here, and reports that. tests/unit/test_dashboard_proxy.py tests forwarding."""
    api = kubernetes.client.CoreV1Api(cluster.client.client)

    def said() -> str:
        found = cluster.list(
            "v1", "Pod", "mlbatch-system", label_selector="app.kubernetes.io/component=kuberay-operator"
        )
        read = api.read_namespaced_pod_log
        return "".join(read(pod["metadata"]["name"], "mlbatch-system", container="dashboard-proxy") for pod in found)

    with submitted(paths, operators_settings(project), "finetuning", {"name": "asked", "workers": 1}):
        eventually("KubeRay asks", said, lambda log: f"-head-svc.{TEAM}.svc" in log and "http://asked-" in log)


def autoscaled(job: dict[str, Any]) -> None:
    job["spec"]["rayClusterSpec"]["enableInTreeAutoscaling"] = True


def beside(job: dict[str, Any]) -> None:
    job["spec"]["submissionMode"] = "SidecarMode"


def at_least(job: dict[str, Any]) -> None:
    job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0] |= {"replicas": 1, "minReplicas": 6}


def outliving(job: dict[str, Any]) -> None:
    job["spec"]["ttlSecondsAfterFinished"] = 86400


def managed(job: dict[str, Any]) -> None:
    job["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"


def negative(job: dict[str, Any]) -> None:
    template = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]
    for amounts in template["spec"]["containers"][0]["resources"].values():
        amounts[GPU] = "-6"


DODGES = {
    "workers that an autoscaler adds": (autoscaled, "autoscal"),
    "a container that is not counted": (beside, "submissionMode to HTTPMode"),
    "workers below the number that is counted": (at_least, "minReplicas is at most"),
    "a cluster that outlives the job": (outliving, "outlives its RayJob"),
    "another controller": (managed, "leave managedBy out"),
    "a head that takes GPUs back": (negative, "nothing less than 0"),
}


@pytest.mark.parametrize("dodge", DODGES)
def test_a_printed_job_that_would_take_more_than_is_counted_is_refused(
    project: Project, paths: Paths, dodge: str
) -> None:
    *_, job = printed(paths, operators_settings(project), "finetuning", {"name": "tune"})
    bob = as_member(paths, USER)
    dry_run(bob, job)
    change, reason = DODGES[dodge]
    changed = copy.deepcopy(job)
    change(changed)
    assert reason in refused(dry_run, bob, changed)


def test_without_its_queue_it_never_starts(project: Project, cluster: Cluster, paths: Paths) -> None:
    """Kueue stops it as a job of a managed namespace, and does not put it into a queue."""
    *_, job = printed(paths, operators_settings(project), "finetuning", {"name": "stray"})
    del job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    bob = as_member(paths, USER)
    bob.create(job)
    try:
        stray = cluster.existing(RAY, "RayJob", "stray", TEAM)
        assert stray["spec"]["suspend"] is True
        start = {"spec": {"suspend": False}}
        assert "by its queue alone" in refused(bob.patch, RAY, "RayJob", "stray", start, TEAM)
        assert pods(cluster, TEAM, "stray") == []
    finally:
        bob.delete(RAY, "RayJob", "stray", TEAM)


def test_its_pods_use_only_schedulers_of_the_platform(project: Project, cluster: Cluster, paths: Paths) -> None:
    """KubeRay gets an error when it creates the pods, and none exists."""
    documents = printed(paths, operators_settings(project), "finetuning", {"name": "other", "workers": 1})
    *beside_it, job = documents
    for part in (job["spec"]["rayClusterSpec"]["headGroupSpec"], *job["spec"]["rayClusterSpec"]["workerGroupSpecs"]):
        part["template"]["spec"]["schedulerName"] = "another"
    bob = as_member(paths, USER)
    for document in (*beside_it, job):
        bob.create(document)
    try:
        eventually(
            "its pods are refused",
            lambda: [event.get("message") or "" for event in cluster.list("v1", "Event", TEAM)],
            lambda said: any("spec.schedulerName: pods of a team are placed by" in each for each in said),
        )
        assert pods(cluster, TEAM, "other") == []
    finally:
        for document in (job, *reversed(beside_it)):
            bob.delete(document["apiVersion"], document["kind"], document["metadata"]["name"], TEAM)
    gone(cluster, "other")
