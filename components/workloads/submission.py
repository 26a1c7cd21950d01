"""The three ways to submit a job.

mlbatch   an AppWrapper in a team's queue: Kueue admits all pods at once and counts them against the team's quota
volcano   a Volcano Job: all pods start together, and no quota counts them
none      a plain Indexed Job: pods start one by one as nodes become free, and no quota counts them

A job's files are created separately, because AppWrapper deletes its contents when a job is suspended. Each wrapped Job
is one of Kueue's pod sets.
"""

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
"""By default AppWrapper takes pods that do not run after five minutes as lost. Pulling images of 20 GB takes longer."""

IMMUTABLE: Final = ("metadata", "spec")
"""A submitted job is resubmitted instead of changed."""


RUNS: Final = ("Job", "PyTorchJob", "TrainJob", "RayJob", "AppWrapper")
"""Kinds that are resubmitted instead of changed."""


class SubmissionMode(StrEnum):
    """Component that starts the pods of a job together."""

    MLBATCH = "mlbatch"
    VOLCANO = "volcano"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Submission:
    """How and where a job is submitted.

    namespace: the team's for `mlbatch`, otherwise one that is not a team's.
    queue: the LocalQueue for `mlbatch`, the Volcano queue for `volcano`, unused for `none`.
    priority_class: of the pods. None for the cluster's default.
    user: user of the job, recorded as an annotation.
    has_pod_groups: pods of a PodGroup are bound together. Gangs in a team's queue get a PodGroup.
    groups_alone: pods without a PodGroup are never scheduled, so a job with one pod gets one too.
    near: a level of the network. Kueue places the pods of a gang in one part of it if possible. None for anywhere.
    scheduler: of the pods of queued jobs. AppWrapper sets it in the pods that it wraps. None for the cluster's default.
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
    """Return the AppWrapper that submits objects as one job. They are in its namespace."""
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
    """Return the objects that submit an Indexed Job: an AppWrapper, or the Job with its Service."""
    service = headless_service(name)
    if submission.mode is not SubmissionMode.MLBATCH:
        return [with_namespace(component, submission.namespace) for component in (service, job)]
    job = near(submission.near, job)
    return [app_wrapper(name, submission, [service, *(grouped(name, job) if submission.has_pod_groups else [job])])]


def submitted_alone(name: str, submission: Submission, job: Document) -> Document:
    """Return the object that submits a Job with one pod: an AppWrapper or the Job."""
    if submission.mode is not SubmissionMode.MLBATCH:
        return with_namespace(job, submission.namespace)
    return app_wrapper(name, submission, grouped(name, job) if submission.groups_alone else [job])


def grouped(name: str, job: Document) -> list[Document]:
    """Return a Job and the PodGroup for all its pods."""
    return [pod_group(name, job["spec"].get("parallelism", 1)), in_group(name, job)]


class SubmittedJob(pulumi.ComponentResource):
    """The objects of a job. token: the component's type without its package."""

    def __init__(
        self, token: str, name: str, documents: Sequence[Document], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(f"mlbatch:{token}", name, None, opts)
        register(self, name, documents)
        self.register_outputs({})


def register(parent: pulumi.Resource, name: str, documents: Sequence[Document]) -> list[Manifest]:
    """Register a job's objects. Jobs are created after the objects that they need, and resubmitted when they change."""
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
