"""The three ways in which a job is submitted.

    mlbatch   an AppWrapper in a team's queue: Kueue admits all pods at once and counts them against the team's quota
    volcano   a Volcano Job: all pods start together, and no quota counts them
    none      a plain Indexed Job: pods start one by one as nodes become free, and no quota counts them

A job's files are created beside it: AppWrapper deletes what it wraps whenever a job is told to go. Each wrapped Job is
one of Kueue's pod sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.objects import with_namespace
from components.scheduling.pod_group import in_group, pod_group
from components.scheduling.topology import near
from components.workloads.indexed_job import headless_service
from components.workloads.pods import WORKLOAD_LABEL

SUBMITTER: Final = "mlbatch/submitted-for"
WARM_UP_SECONDS: Final = 30 * 60
WARM_UP: Final = {"workload.codeflare.dev.appwrapper/warmupGracePeriodDuration": f"{WARM_UP_SECONDS // 60}m"}
"""AppWrapper takes pods that are not running after five minutes for lost; images of 20 GB take longer to pull."""

IMMUTABLE: Final = ("metadata", "spec")
"""A submitted job is not changed but submitted anew."""


RUNS: Final = ("Job", "PyTorchJob", "TrainJob", "RayJob", "AppWrapper")
"""Kinds that are submitted, not changed."""


class SubmissionMode(StrEnum):
    """Who starts the pods of a job together."""

    MLBATCH = "mlbatch"
    VOLCANO = "volcano"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Submission:
    """How and where a job is submitted.

    namespace: the team's for `mlbatch`, one that is no team's otherwise.
    queue: the LocalQueue for `mlbatch`, the Volcano queue for `volcano`; without meaning for `none`.
    priority_class: of the pods; None for the cluster's default. user: on whose behalf, recorded as an annotation.
    has_pod_groups: the pods of a PodGroup are bound together, and gangs in a team's queue are given one.
    groups_alone: a pod of no PodGroup is never placed, and a job of one pod is given one, too.
    near: a level of the network. Kueue puts the pods of a gang into one part of it if it can; None for anywhere.
    scheduler: of the pods of queued jobs, which AppWrapper names to those that it wraps; None for the cluster's own.
    """

    mode: SubmissionMode
    namespace: pulumi.Input[str]
    queue: str = names.LOCAL_QUEUE
    priority_class: str | None = None
    user: str | None = None
    has_pod_groups: bool = False
    groups_alone: bool = False
    near: str | None = None
    scheduler: str | None = None


def app_wrapper(name: str, submission: Submission, components: Sequence[Document]) -> Document:
    """Return the AppWrapper that submits objects as one job; their namespace is its own."""
    user = {SUBMITTER: submission.user} if submission.user else {}
    return {
        "apiVersion": names.APPWRAPPER_API,
        "kind": "AppWrapper",
        "metadata": {
            "name": name,
            "namespace": submission.namespace,
            "labels": {names.QUEUE_LABEL: submission.queue, WORKLOAD_LABEL: name},
            "annotations": {**WARM_UP, **user},
        },
        "spec": {"components": [{"template": component} for component in components]},
    }


def submitted(name: str, submission: Submission, job: Document) -> list[Document]:
    """Return the objects that submit an Indexed Job: an AppWrapper, or the Job itself with its Service."""
    service = headless_service(name)
    if submission.mode is not SubmissionMode.MLBATCH:
        return [with_namespace(component, submission.namespace) for component in (service, job)]
    job = near(submission.near, job)
    return [app_wrapper(name, submission, [service, *(grouped(name, job) if submission.has_pod_groups else [job])])]


def submitted_alone(name: str, submission: Submission, job: Document) -> Document:
    """Return what submits a Job of one pod: an AppWrapper, or the Job itself."""
    if submission.mode is not SubmissionMode.MLBATCH:
        return with_namespace(job, submission.namespace)
    return app_wrapper(name, submission, grouped(name, job) if submission.groups_alone else [job])


def grouped(name: str, job: Document) -> list[Document]:
    """Return a Job and the PodGroup of all its pods."""
    return [pod_group(name, job["spec"].get("parallelism", 1)), in_group(name, job)]


def register(parent: pulumi.Resource, name: str, documents: Sequence[Document]) -> list[Manifest]:
    """Register a job's objects: what runs is submitted anew when it changes, after what it needs exists."""
    registered: list[Manifest] = []
    for document in documents:
        runs = document["kind"] in RUNS
        options = pulumi.ResourceOptions(
            parent=parent,
            depends_on=list(registered) if runs else None,
            replace_on_changes=list(IMMUTABLE) if runs else None,
            delete_before_replace=runs or None,
        )
        registered.append(Manifest(f"{name}/{document['kind']}", document, options))
    return registered
