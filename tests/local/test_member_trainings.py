"""Trainings on simulated nodes, of the stack and as a member submits them.

Kueue admits them, the training operator makes their pods, the scheduler places these: all of that is real. What the
pods would do is not. The definitions of Ray's kinds take longer to make than all of this; `make soak` has Ray's jobs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from emulator.paths import Paths
from stacks.__main__ import manifest
from tests.local.environment import Cluster, Project, dev_settings, eventually
from tests.local.jobs import running
from tests.local.member import as_member
from tests.local.standing import Standing

KUBEFLOW = "kubeflow.org/v1"
LABEL = "app.kubernetes.io/name"


def settings(project: Project) -> dict[str, Any]:
    """The dev stack with a pre-training on two of its three nodes in place of its sample."""
    dev = dev_settings(project.mirror)
    training = {"enabled": True, "nodes": 2, "submission": {"team": "blue", "user": "alice"}}
    queueing = {**dev["queueing"], "trainingOperator": {"enabled": True}}
    return {**dev, "samples": {}, "queueing": queueing, "workloads": {"pretraining": training}}


@pytest.fixture(scope="module")
def project(standing: Standing) -> Project:
    return standing.up("dev", settings)


def pods(cluster: Cluster, namespace: str, name: str) -> list[dict[str, Any]]:
    return cluster.list("v1", "Pod", namespace, label_selector=f"{LABEL}={name}")


def gpus(pod: dict[str, Any]) -> int:
    (container,) = pod["spec"]["containers"]
    return int(container["resources"]["requests"].get("nvidia.com/gpu", 0))


def bound(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    """Return what a claim asks for, once it is bound."""
    found = eventually(
        f"claim {name} is bound",
        lambda: cluster.get("v1", "PersistentVolumeClaim", name, namespace) or {},
        lambda claim: (claim.get("status") or {}).get("phase") == "Bound",
    )
    return dict(found["spec"])


@contextlib.contextmanager
def submitted(project: Project, paths: Paths, job: str, changes: dict[str, Any]) -> Iterator[None]:
    """What `python -m stacks` prints of the stack's settings, submitted by a member of team red."""
    bob = as_member(paths, "bob")
    submission = {"team": "red", "user": "bob"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(paths.kubeconfig))
        text = manifest(settings(project), job, changes, submission)
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        bob.create(document)
    try:
        yield
    finally:
        for document in reversed(documents):
            metadata = document["metadata"]
            bob.delete(document["apiVersion"], document["kind"], metadata["name"], metadata["namespace"])


def test_a_second_preview_plans_nothing(project: Project) -> None:
    project.unchanged()


def test_a_gang_of_whole_nodes_is_admitted_and_placed_with_its_volume(project: Project, cluster: Cluster) -> None:
    running(cluster, "blue", "pretraining", pods=2)
    found = pods(cluster, "blue", "pretraining")
    assert [gpus(pod) for pod in found] == [8, 8]
    assert len({pod["spec"]["nodeName"] for pod in found}) == 2
    owners = {owner["kind"] for pod in found for owner in pod["metadata"]["ownerReferences"]}
    assert owners == {"PyTorchJob"}
    claim = bound(cluster, "blue", "pretraining-checkpoints")
    assert (claim["storageClassName"], claim["accessModes"]) == ("simulated", ["ReadWriteMany"])


def test_a_member_submits_a_training_as_it_is_printed(project: Project, cluster: Cluster, paths: Paths) -> None:
    with submitted(project, paths, "pretraining", {"name": "train", "nodes": 1}):
        running(cluster, "red", "train", pods=1)
        assert cluster.existing(KUBEFLOW, "PyTorchJob", "train", "red")["spec"]["nprocPerNode"] == "8"
        bound(cluster, "red", "train-checkpoints")
    eventually("nothing of it runs", lambda: pods(cluster, "red", "train"), lambda left: not left)
    eventually(
        "its volume is gone with it",
        lambda: [
            volume["spec"]["claimRef"]["name"]
            for volume in cluster.list("v1", "PersistentVolume")
            if volume["spec"]["claimRef"]["namespace"] == "red"
        ],
        lambda left: not left,
    )
