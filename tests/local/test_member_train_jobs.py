"""TrainJobs that a member submits, and those by which one would run beside the queue or take what is not the team's.

Kueue, Trainer, JobSet and the scheduler are real; the pods are simulated, and end when a test says so.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from emulator.paths import Paths
from tests.local.environment import Cluster, Project, dev_settings, eventually, gang
from tests.local.jobs import KUEUE, pods_of
from tests.local.member import as_member, dry_run, refused
from tests.local.standing import Standing
from tests.local.submission import submitted

TRAINER = "trainer.kubeflow.org/v1alpha1"
JOB_SET = "jobset.x-k8s.io/v1alpha2"
Document = dict[str, Any]


def settings(project: Project) -> dict[str, Any]:
    """The dev stack without its sample, with Trainer."""
    dev = dev_settings(project.mirror)
    return {**dev, "samples": {}, "queueing": {**dev["queueing"], "trainer": {"enabled": True}}}


@pytest.fixture(scope="module", autouse=True)
def project(standing: Standing) -> Project:
    return standing.up("dev", settings)


@pytest.fixture(scope="module")
def bob(paths: Paths, project: Project) -> Cluster:
    """The cluster as a member of team red sees it."""
    return as_member(paths, "bob")


def train_job(name: str = "train", nodes: int = 1, gpus: int = 8, namespace: str = "red", **spec: Any) -> Document:
    """A TrainJob of so many pods of so many GPUs, with fields of its specification changed."""
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
    """Return a TrainJob's pods, those in this phase alone where it is named."""
    found = cluster.list("v1", "Pod", namespace, label_selector=f"jobset.sigs.k8s.io/jobset-name={name}")
    return [pod for pod in found if phase in (None, pod["status"]["phase"])]


def workloads(cluster: Cluster, namespace: str = "red") -> list[Document]:
    """Return what Kueue counts in a namespace."""
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
    """Submit TrainJobs for the length of the context; nothing of them is left afterwards."""
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
                f"nothing of {name} is left",
                lambda name=name, namespace=namespace: pods(cluster, name, namespace)
                + [each for each in workloads(cluster, namespace) if f"trainjob-{name}-" in each["metadata"]["name"]],
                lambda left: not left,
            )


def runs(cluster: Cluster, name: str, nodes: int, namespace: str = "red") -> list[Document]:
    """Wait until all pods of a TrainJob run, and return them."""
    return eventually(
        f"{name} has {nodes} running pods",
        lambda: pods(cluster, name, namespace, "Running"),
        lambda found: len(found) == nodes,
    )


def finish(cluster: Cluster, pod: Document) -> None:
    """Have a simulated pod succeed."""
    status = {"status": {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}]}}
    resource = cluster.kind("v1", "Pod").subresources["status"]
    cluster.client.patch(
        resource,
        name=pod["metadata"]["name"],
        namespace=pod["metadata"]["namespace"],
        body=status,
        content_type="application/merge-patch+json",
    )
