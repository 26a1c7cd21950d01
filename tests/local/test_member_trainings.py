"""Training jobs on simulated nodes, from the stack and from members.

Kueue really admits them, the training operator creates their pods, and the scheduler places them. The pods are
simulated. The fine-tuning is in `test_member_finetuning.py`.
"""

from typing import Any

import pytest

from emulator.paths import Paths
from tests.local.environment import Cluster, Project, eventually, gang, operators_settings
from tests.local.jobs import KUEUE, phase, pods_of, running
from tests.local.member import as_member
from tests.local.printed import gpus, pods, submitted
from tests.local.standing import Standing
from tests.local.submission import submitted as wrapped

KUBEFLOW = "kubeflow.org/v1"


@pytest.fixture(scope="module")
def project(standing: Standing) -> Project:
    return standing.up("dev", operators_settings)


def bound(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    """Return a claim's specification, once it is bound."""
    found = eventually(
        f"claim {name} is bound",
        lambda: cluster.get("v1", "PersistentVolumeClaim", name, namespace) or {},
        lambda claim: (claim.get("status") or {}).get("phase") == "Bound",
    )
    return dict(found["spec"])


def test_a_second_preview_plans_no_change(project: Project) -> None:
    project.unchanged()


def test_a_member_submits_a_training_as_it_is_printed(project: Project, cluster: Cluster, paths: Paths) -> None:
    with submitted(paths, operators_settings(project), "pretraining", {"name": "train", "nodes": 1}):
        running(cluster, "red", "train", pods=1)
        assert cluster.existing(KUBEFLOW, "PyTorchJob", "train", "red")["spec"]["nprocPerNode"] == "8"
        bound(cluster, "red", "train-checkpoints")
    eventually(
        "its volume is gone with it",
        lambda: [
            volume["spec"]["claimRef"]["name"]
            for volume in cluster.list("v1", "PersistentVolume")
            if volume["spec"]["claimRef"]["namespace"] == "red"
        ],
        lambda left: not left,
    )


def job_set(name: str, namespace: str) -> dict[str, Any]:
    """Return an AppWrapper with a JobSet: a launcher without GPUs, and two workers with two GPUs."""
    wrapper = gang(name, namespace, pods=2, gpus=2)
    workers = wrapper["spec"]["components"][0]["template"]["spec"]
    launcher = gang(name, namespace, pods=1, gpus=0)["spec"]["components"][0]["template"]["spec"]
    sets = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": f"{name}-jobset"},
        "spec": {
            "replicatedJobs": [
                {"name": "launcher", "template": {"spec": launcher}},
                {"name": "worker", "template": {"spec": workers}},
            ]
        },
    }
    return {**wrapper, "spec": {"components": [{"template": sets}]}}


def test_a_member_submits_a_job_set_that_is_counted_and_runs_as_one(
    project: Project, cluster: Cluster, paths: Paths
) -> None:
    with wrapped(as_member(paths, "bob"), job_set("sets", "red")):
        running(cluster, "red", "sets", pods=3)
        found = [each for each in cluster.list(KUEUE, "Workload", "red") if "-sets-" in each["metadata"]["name"]]
        (workload,) = found
        assert workload["metadata"]["name"].startswith("appwrapper-sets-"), "the JobSet itself is not counted again"
        counted = {each["name"]: each["count"] for each in workload["spec"]["podSets"]}
        assert sorted(counted.values()) == [1, 2]
        owners = {
            owner["kind"] for pod in pods_of(cluster, "red", "sets") for owner in pod["metadata"]["ownerReferences"]
        }
        assert owners == {"Job"}
        (made,) = cluster.list("jobset.x-k8s.io/v1alpha2", "JobSet", "red")
        assert not made["spec"].get("suspend")
    eventually("it has ended", lambda: pods_of(cluster, "red", "sets"), lambda left: not left)


def kept(cluster: Cluster, name: str) -> list[str]:
    """Return the Workloads of a job in red that keep quota."""
    found = [each for each in cluster.list(KUEUE, "Workload", "red") if f"-{name}-" in each["metadata"]["name"]]
    return [
        each["metadata"]["name"]
        for each in found
        if not any(c["type"] == "Finished" and c["status"] == "True" for c in each["status"]["conditions"])
    ]


@pytest.mark.parametrize("labelled", [False, True], ids=["exists already", "loses its label"])
def test_a_job_frees_its_quota_if_a_member_has_its_files(
    project: Project, cluster: Cluster, paths: Paths, labelled: bool
) -> None:
    """AppWrapper may delete a member's object of the same name. If it could not, it would keep the quota for good."""
    bob = as_member(paths, "bob")
    name = "keeper" if labelled else "failed"
    files: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-files"},
        "data": {"x": "y"},
    }
    wrapper = gang(name, "red", pods=1, gpus=2)
    wrapper["spec"]["components"].append({"template": files})
    if not labelled:
        bob.create({**files, "metadata": {"name": f"{name}-files", "namespace": "red"}})
    with wrapped(bob, wrapper):
        if labelled:
            running(cluster, "red", name, pods=1)
            labels = {"metadata": {"labels": {"workload.codeflare.dev/appwrapper": None}}}
            bob.patch("v1", "ConfigMap", f"{name}-files", labels, "red")
        else:
            eventually("it fails", lambda: phase(cluster, "red", name), lambda found: found == "Failed")
            eventually("its quota is free", lambda: kept(cluster, name), lambda found: not found)
    eventually("it is gone", lambda: phase(cluster, "red", name), lambda found: found is None)
    assert cluster.get("v1", "ConfigMap", f"{name}-files", "red") is None


@pytest.mark.soak("two minutes; a test above has a member's training, and test_aks.py trainings of the stack")
def test_a_training_of_the_stack_is_admitted_and_placed_with_its_volume(standing: Standing, cluster: Cluster) -> None:
    """On two of three nodes."""
    training = {"enabled": True, "nodes": 2, "submission": {"team": "blue", "user": "alice"}}
    project = standing.up("dev", lambda dev: {**operators_settings(dev), "workloads": {"pretraining": training}})
    project.unchanged()
    running(cluster, "blue", "pretraining", pods=2)
    found = pods(cluster, "blue", "pretraining")
    assert [gpus(pod) for pod in found] == [8, 8]
    assert len({pod["spec"]["nodeName"] for pod in found}) == 2
    owners = {owner["kind"] for pod in found for owner in pod["metadata"]["ownerReferences"]}
    assert owners == {"PyTorchJob"}
    claim = bound(cluster, "blue", "pretraining-checkpoints")
    assert (claim["storageClassName"], claim["accessModes"]) == ("simulated", ["ReadWriteMany"])
