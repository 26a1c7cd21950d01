"""Pre-training with PyTorch: its objects, and which settings are refused."""

from dataclasses import replace
from typing import Any

import pytest

from components import catalogue
from components.artifacts import Mirror
from components.azure.fabric import SRIOV
from components.kubernetes.fabric import NO_RDMA
from components.kubernetes.manifests import Document
from components.workloads import nccl, pretraining
from components.workloads.interface import Storage
from components.workloads.nccl import NcclArgs
from components.workloads.pretraining import Kind, Model, Pretraining, PretrainingArgs
from components.workloads.submission import Submission, SubmissionMode
from stacks.layers.jobs import documents
from tests.unit.harness import on_cluster
from tests.unit.test_aks import loaded, settings
from tests.unit.test_workloads import PLAIN, environment, of, pods

TEAM = Submission(
    mode=SubmissionMode.MLBATCH, namespace="blue", user="alice", priority_class="high-priority", has_pod_groups=True
)
ARGS = PretrainingArgs(
    submission=TEAM,
    pods=pods(3, image="pytorch:1"),
    model=Model(layers=2, width=64, heads=4, context=32),
    batch=8,
    steps=1000,
    learning_rate=3e-4,
    checkpoint_every=100,
    checkpoints="train-checkpoints",
    storage=Storage(storage_class="shared", size="200Gi"),
)


def job(args: PretrainingArgs = ARGS) -> Document:
    return of(pretraining.documents("train", args), "PyTorchJob")


def pod(role: str = "Master", args: PretrainingArgs = ARGS) -> Document:
    spec: Document = job(args)["spec"]["pytorchReplicaSpecs"][role]["template"]["spec"]
    return spec


def test_a_train_job_is_queued_by_itself_and_mounts_the_same() -> None:
    args = replace(ARGS, kind=Kind.TRAIN_JOB)
    claim, program, job = pretraining.documents("train", args)
    assert [claim["kind"], program["kind"], job["kind"]] == ["PersistentVolumeClaim", "ConfigMap", "TrainJob"]
    assert job["metadata"] == {
        "name": "train",
        "namespace": "blue",
        "labels": {
            "kueue.x-k8s.io/queue-name": "default-queue",
            "kueue.x-k8s.io/max-exec-time-seconds": "3600",
            "app.kubernetes.io/name": "train",
        },
        "annotations": {"mlbatch/submitted-for": "alice"},
    }
    spec = job["spec"]
    assert spec["runtimeRef"] == {"name": "torch-distributed-high-priority"}
    assert (spec["trainer"]["numNodes"], spec["trainer"]["numProcPerNode"]) == (3, 8)
    (container,) = pod()["containers"]
    assert spec["trainer"]["command"] == container["command"]
    assert spec["trainer"]["resourcesPerNode"] == container["resources"]
    assert environment(spec["trainer"]) == environment(container)
    (patch,) = spec["runtimePatches"]
    (patched,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    inner = patched["template"]["spec"]["template"]["spec"]
    (mounting,) = inner["containers"]
    shared = [item for item in container["volumeMounts"] if item["name"] != "shm"]
    assert mounting == {"name": "node", "volumeMounts": shared}
    assert inner["volumes"] == [item for item in pod()["volumes"] if item["name"] != "shm"]


def test_the_pods_are_a_master_and_a_worker_on_each_other_node() -> None:
    specification = job()["spec"]
    replicas = specification["pytorchReplicaSpecs"]
    assert {role: each["replicas"] for role, each in replicas.items()} == {"Master": 1, "Worker": 2}
    assert {each["restartPolicy"] for each in replicas.values()} == {"Never"}
    assert replicas["Master"]["template"] == replicas["Worker"]["template"]
    assert specification["nprocPerNode"] == "8"
    assert specification["runPolicy"] == {"cleanPodPolicy": "None", "activeDeadlineSeconds": 3600}
    assert list(job(replace(ARGS, pods=pods(1)))["spec"]["pytorchReplicaSpecs"]) == ["Master"]


def test_what_the_site_says_of_its_network_stands() -> None:
    """`cluster.pool.rdma.variables`, where GPUs and network devices hang on different sockets."""
    site = replace(SRIOV, variables={"NCCL_NET_GDR_LEVEL": "PHB"})
    (container,) = pod(args=replace(ARGS, pods=pods(2, site)))["containers"]
    assert environment(container)["NCCL_NET_GDR_LEVEL"] == "PHB"
    test = NcclArgs(submission=ARGS.submission, pods=pods(2, site))
    assert "NCCL_NET_GDR_LEVEL" not in nccl.environment(test)
    assert nccl.test_command(test).count("NCCL_NET_GDR_LEVEL") == 1


def test_without_rdma_nothing_asks_for_it() -> None:
    (container,) = pod(args=replace(ARGS, pods=pods(2, NO_RDMA)))["containers"]
    assert "nvidia.com/mlnxnics" not in container["resources"]["requests"]
    assert "securityContext" not in container
    assert "NCCL_NET_GDR_LEVEL" not in environment(container)


def test_data_is_mounted_to_be_read() -> None:
    args = replace(ARGS, data="corpus")
    (container,) = pod(args=args)["containers"]
    assert container["command"][-1] == "--data=/data"
    assert {"name": "data", "mountPath": "/data", "readOnly": True} in container["volumeMounts"]
    source = {"name": "data", "persistentVolumeClaim": {"claimName": "corpus", "readOnly": True}}
    assert source in pod(args=args)["volumes"]


def test_without_a_queue_it_is_a_plain_pytorchjob() -> None:
    *_, plain = pretraining.documents("train", replace(ARGS, submission=PLAIN))
    assert (plain["kind"], plain["metadata"]["namespace"]) == ("PyTorchJob", "workloads")


@pytest.mark.parametrize(("submission", "kind"), [(TEAM, "AppWrapper"), (PLAIN, "PyTorchJob")])
def test_volume_and_program_stand_first_and_a_changed_job_is_submitted_anew(submission: Submission, kind: str) -> None:
    built = on_cluster(lambda opts: Pretraining("train", replace(ARGS, submission=submission), opts))
    (claim,), (program,), (submitted,) = (built.of(each) for each in ("PersistentVolumeClaim", "ConfigMap", kind))
    assert {claim.urn, program.urn} <= set(submitted.dependencies)
    assert submitted.replace_on_changes == ("metadata", "spec")
    assert (claim.replace_on_changes, program.replace_on_changes) == ((), ())


OPERATOR = {"trainingOperator": {"enabled": True}}


def raw(**own: Any) -> dict[str, Any]:
    job = {"enabled": True, "submission": {"team": "blue"}, **own}
    return settings(azure__gpuPool__count=4, queueing=OPERATOR, workloads={"pretraining": job})


def test_settings_reach_the_job(mirror: Mirror) -> None:
    own = {"name": "gpt", "nodes": 2, "embedding": 512, "heads": 8, "steps": 50, "checkpointEvery": 10}
    claim, program, wrapper = documents(loaded(mirror, raw(**own)), "pretraining")
    assert [claim["metadata"]["name"], program["metadata"]["name"]] == ["gpt-checkpoints", "gpt-files"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "200Gi"
    specification = wrapper["spec"]["components"][0]["template"]["spec"]["pytorchReplicaSpecs"]
    assert specification["Worker"]["replicas"] == 1
    (container,) = specification["Worker"]["template"]["spec"]["containers"]
    assert container["image"].endswith(catalogue.PYTORCH.reference.partition("/")[2])
    assert container["command"][3:] == [
        *("--layers=24", "--width=512", "--heads=8", "--context=1024", "--batch=8", "--steps=50"),
        *("--learning-rate=0.0003", "--checkpoint-every=10", "--checkpoints=/checkpoints/gpt"),
    ]


def test_the_weights_are_those_of_gpt_2_with_bytes_for_tokens() -> None:
    """GPT-2's smallest model has 124,439,808 weights, with 50,257 tokens."""
    small = Model(layers=12, width=768, heads=12, context=1024)
    assert small.weights == 124_439_808 - (50_257 - 256) * 768


def test_a_train_job_runs_with_trainer(mirror: Mirror) -> None:
    own = {**raw(kind="TrainJob"), "queueing": {"trainer": {"enabled": True}}}
    assert [item["kind"] for item in documents(loaded(mirror, own), "pretraining")][-1] == "TrainJob"
