"""Fine-tuning with Ray: its objects, and which settings are refused."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components import catalogue
from components.artifacts import Mirror
from components.images import Reference
from components.kubernetes.manifests import Document
from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup
from components.kubernetes.quantity import Quantity
from components.workloads import finetuning
from components.workloads.finetuning import Finetuning, FinetuningArgs
from components.workloads.interface import Storage
from components.workloads.submission import Submission
from stacks.config.errors import SettingsError
from stacks.layers.jobs import documents
from stacks.layers.scheduling import schedulers
from tests.unit import test_existing
from tests.unit.conftest import ROOT
from tests.unit.harness import on_cluster
from tests.unit.test_aks import loaded, settings
from tests.unit.test_workloads import PLAIN, TEAM
from tests.unit.test_workloads_everywhere import queued

ARGS = FinetuningArgs(
    submission=TEAM,
    image="registry.example.org/ray:2.35.0-py311@sha256:" + "0" * 64,
    packages=["peft==0.13.2"],
    model_revision="main",
    dataset_revision="v1.1",
    workers=3,
    cpu="8",
    memory="64Gi",
    head_cpu="2",
    head_memory="16Gi",
    rank=16,
    batch=8,
    context=512,
    steps=500,
    learning_rate=1e-4,
    checkpoint_every=50,
    placement=NodeGroup(tolerations=[GPU_TOLERATION]),
    claim="tune-result",
    storage=Storage(storage_class="shared", size="50Gi"),
    deadline_seconds=3600,
)


def cluster(args: FinetuningArgs = ARGS) -> Document:
    specification: Document = finetuning.job("tune", args)["spec"]["rayClusterSpec"]
    return specification


def pods(args: FinetuningArgs = ARGS) -> tuple[Document, Document]:
    """Return the head's and the workers' pods."""
    specification = cluster(args)
    (workers,) = specification["workerGroupSpecs"]
    return specification["headGroupSpec"]["template"]["spec"], workers["template"]["spec"]


def test_the_head_trains_nothing_and_each_worker_has_a_gpu() -> None:
    head, worker = (pod["containers"][0]["resources"] for pod in pods(replace(ARGS, gpu_resource="example.org/gpu")))
    assert head == {key: {"cpu": "2", "memory": "16Gi"} for key in ("requests", "limits")}
    amounts = {"cpu": "8", "memory": "64Gi", "example.org/gpu": "1"}
    assert worker == {"requests": amounts, "limits": amounts}
    parameters = cluster()["headGroupSpec"]["rayStartParams"]
    assert (parameters["num-cpus"], parameters["num-gpus"]) == ("0", "0")


PACKED = replace(TEAM, has_pod_groups=True, scheduler="scheduler-plugins-scheduler")


def test_head_and_workers_are_one_gang_that_the_packing_scheduler_places() -> None:
    """As many pods as KubeRay makes at once, before any of them runs: a gang of more would wait for ever."""
    args = replace(ARGS, submission=PACKED)
    _, _, group, job = finetuning.documents("tune", args)
    assert (group["apiVersion"], group["kind"]) == ("scheduling.x-k8s.io/v1alpha1", "PodGroup")
    assert (group["metadata"]["name"], group["metadata"]["namespace"]) == ("tune", "blue")
    specification = job["spec"]["rayClusterSpec"]
    made = 1 + sum(workers["replicas"] for workers in specification["workerGroupSpecs"])
    assert group["spec"] == {"minMember": made}
    assert job["spec"]["submissionMode"] == "HTTPMode", "another mode has one more pod, or one without the label"
    for part in (specification["headGroupSpec"], *specification["workerGroupSpecs"]):
        assert part["template"]["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
        assert part["template"]["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "tune"


@pytest.mark.parametrize("submission", [TEAM, replace(PACKED, mode=PLAIN.mode)], ids=["no scheduler", "no queue"])
def test_without_that_scheduler_or_a_queue_nobody_waits_for_a_group(submission: Submission) -> None:
    found = finetuning.documents("tune", replace(ARGS, submission=submission))
    assert "PodGroup" not in [document["kind"] for document in found]
    assert "schedulerName" not in str(found)
    assert "pod-group" not in str(found)


def test_rays_object_store_is_in_memory_whatever_the_pod_has() -> None:
    """Ray gives it up to 10 GB without looking at /dev/shm, and puts it on disk where that has less."""
    for pod in pods(replace(ARGS, memory="512Gi")):
        (size,) = [each["emptyDir"]["sizeLimit"] for each in pod["volumes"] if each["name"] == "shm"]
        shared = Quantity.parse(size).nano // 10**9
        assert max(10**10, shared * 95 // 100) < shared


def test_where_a_sign_in_is_put_before_the_dashboard_the_head_has_its_token() -> None:
    """OpenShift AI's reads it; without one it ends, and the head with it."""
    head, worker = pods(replace(ARGS, signs_in=True))
    assert "automountServiceAccountToken" not in head
    assert worker["automountServiceAccountToken"] is False


def test_where_openshift_names_the_user_the_pods_do_not() -> None:
    assert all("runAsUser" not in pod["securityContext"] for pod in pods(replace(ARGS, user=None)))


def test_a_changed_job_is_submitted_anew_after_its_volume_and_program() -> None:
    built = on_cluster(lambda opts: Finetuning("tune", ARGS, opts))
    (claim,), (program,), (job,) = (built.of(each) for each in ("PersistentVolumeClaim", "ConfigMap", "RayJob"))
    assert {claim.urn, program.urn} <= set(job.dependencies)
    assert job.replace_on_changes == ("metadata", "spec")


def raw(**own: Any) -> dict[str, Any]:
    job = {"enabled": True, "submission": {"team": "blue"}, **own}
    return settings(queueing={"kuberay": {"enabled": True}}, workloads={"finetuning": job})


def test_settings_reach_the_job(mirror: Mirror) -> None:
    claim, _, group, job = documents(loaded(mirror, raw(name="lora", workers=4, rank=8)), "finetuning")
    assert (group["metadata"]["name"], group["spec"]) == ("lora", {"minMember": 5})
    assert claim["metadata"]["name"] == "lora-result"
    assert job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["replicas"] == 4
    assert job["spec"]["rayClusterSpec"]["rayVersion"] == "2.35.0"
    assert "--workers=4 --rank=8 " in job["spec"]["entrypoint"]
    assert json.loads(job["spec"]["runtimeEnvYAML"]) == {"pip": list(catalogue.RAY_TRAIN_PACKAGES)}


@pytest.mark.parametrize(
    ("packing", "scheduler"),
    [
        ("coscheduling", "scheduler-plugins-scheduler"),
        ("sakkara", "sakkara-scheduler"),
        ("topology", None),
        ("none", None),
    ],
)
def test_its_pods_go_to_the_scheduler_that_packs_and_that_policies_let(
    mirror: Mirror, packing: str, scheduler: str | None
) -> None:
    inputs = loaded(mirror, {**raw(), "scheduling": {"packing": packing}})
    *_, job = documents(inputs, "finetuning")
    specification = job["spec"]["rayClusterSpec"]
    for part in (specification["headGroupSpec"], *specification["workerGroupSpecs"]):
        assert part["template"]["spec"].get("schedulerName") == scheduler
    assert scheduler is None or scheduler in schedulers(inputs)


def test_of_nodes_that_differ_the_head_has_the_one_with_room(mirror: Mirror, kubeconfig: Path) -> None:
    raw = test_existing.shipped()
    raw["cluster"] = {"pool": {"nodeSelector": raw["cluster"]["pool"]["nodeSelector"]}}
    raw |= {"samples": {}, "queueing": {"kuberay": {"enabled": True}}}
    raw |= {"teams": [{"name": "blue", "users": ["alice"], "share": 1}]}
    raw["workloads"] = {"finetuning": queued(workers=2, memory="40Gi", headMemory="32Gi")}
    small = {"nvidia.com/gpu": "1", "cpu": "32", "memory": "64Gi"}
    nodes = (test_existing.node("a", **small), test_existing.node("b", **{**small, "memory": "128Gi"}))
    assert test_existing.loaded(raw, mirror, kubeconfig, nodes=nodes).resolved.pool.count == 2
    alike = tuple(test_existing.node(name, **small) for name in "ab")
    with pytest.raises(SettingsError) as refused:
        test_existing.loaded(raw, mirror, kubeconfig, nodes=alike)
    (problem,) = refused.value.problems
    assert (problem.path[-1], problem.expected) == ("workers", "at most 1 worker")


def test_the_packages_that_are_tried_are_those_of_the_job() -> None:
    """`make training` installs what Ray installs for the job, and the Ray of the image."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tried = project["dependency-groups"]["training"]
    version = Reference.parse(catalogue.RAY_TRAIN.reference).tag
    assert version is not None
    assert {*catalogue.RAY_TRAIN_PACKAGES, f"ray[default,train]=={version.partition('-')[0]}"} <= set(tried)
