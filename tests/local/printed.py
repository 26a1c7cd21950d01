"""Jobs of the settings as `mlbatch jobs` prints them, and as members submit them."""

import contextlib
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from emulator.paths import Paths
from stacks.job_manifests import manifest
from tests.local.diagnosis import diagnosis
from tests.local.environment import Cluster, eventually
from tests.local.jobs import KUEUE
from tests.local.member import as_member

LABEL = "app.kubernetes.io/name"
USER, TEAM = "bob", "red"
"""The submitting user and their team."""


def printed(paths: Paths, settings: Mapping[str, Any], job: str, changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the printed documents of a job, with some settings changed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(paths.kubeconfig))
        text = manifest(settings, job, changes, {"team": TEAM, "user": USER})
    return list(yaml.safe_load_all(text))


@contextlib.contextmanager
def submitted(
    paths: Paths, settings: Mapping[str, Any], job: str, changes: Mapping[str, Any]
) -> Iterator[list[dict[str, Any]]]:
    """Submit a printed job as a member of the team, for the length of the context; then wait until its pods and its
    Workload are deleted.

    If the context fails, the state of the cluster is printed before the job is deleted.
    """
    cluster, name = Cluster(paths.kubeconfig), changes["name"]
    member, documents = as_member(paths, USER), printed(paths, settings, job, changes)
    try:
        for document in documents:
            member.create(document)
        yield documents
    except BaseException:
        print(diagnosis(cluster))
        raise
    finally:
        for document in reversed(documents):
            metadata = document["metadata"]
            member.delete(document["apiVersion"], document["kind"], metadata["name"], metadata["namespace"])
        eventually(f"{name} is gone", lambda: [*pods(cluster, TEAM, name), *workloads(cluster, name)], operator.not_)


def workloads(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    """Return Kueue's Workloads of a job of the team."""
    return [each for each in cluster.list(KUEUE, "Workload", TEAM) if f"-{name}-" in each["metadata"]["name"]]


def pods(cluster: Cluster, namespace: str, name: str, also: str = "") -> list[dict[str, Any]]:
    """Return the pods of a job by its name. also: a further selector."""
    return cluster.list("v1", "Pod", namespace, label_selector=f"{LABEL}={name}{also}")


def gpus(pod: Mapping[str, Any]) -> int:
    """Return the GPUs of a pod with one container."""
    (container,) = pod["spec"]["containers"]
    return int(container["resources"]["requests"].get("nvidia.com/gpu", 0))
