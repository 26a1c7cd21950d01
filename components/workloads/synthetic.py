"""Synthetic load: jobs with a given size, duration, priority and failure, which only take time.

Each is an AppWrapper with a Job, in the queue of its team, like every other workload. Its pods run busybox's `sleep`
and `sh`. A failed pod fails its Job. AppWrapper then recreates the whole job as often as its retries allow (v1.2.2,
`internal/controller/appwrapper/appwrapper_controller.go`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import pulumi

from components import names
from components.kubernetes import workloads
from components.kubernetes.manifests import Document
from components.kubernetes.placement import NodeGroup
from components.kubernetes.quantity import Quantity
from components.kubernetes.security import UNPRIVILEGED
from components.tenancy.quota import Quota, offered
from components.workloads.pods import WORKLOAD_LABEL
from components.workloads.submission import Submission, app_wrapper, grouped, register

ARRIVAL: Final = "mlbatch/arrival-seconds"
"""Annotation of each AppWrapper: its arrival in the trace, in seconds. Programs that submit the jobs one by one use it.
"""
_RETRY_LIMIT: Final = "workload.codeflare.dev.appwrapper/retryLimit"
_STATE: Final = "/state"
_FAILURE: Final = re.compile(r"none|hang|crash@(?P<after>[0-9]+)(x(?P<times>[0-9]+))?")
FAILURES: Final = "none, hang, crash@<second>, crash@<second>x<times>"
"""The allowed forms of a failure."""


class Kind(StrEnum):
    """How a job fails."""

    NONE = "none"
    CRASH = "crash"
    HANG = "hang"


@dataclass(frozen=True)
class Failure:
    """How and when a job fails.

    none: it does not fail.
    hang: its pods never end. Its deadline ends it, without another attempt.
    crash: each of its pods exits with an error after this number of seconds. If times is 0, this happens in every
    attempt, and AppWrapper retries the job and finally gives up. Otherwise it happens this number of times. The kubelet
    restarts the container, which then completes.
    """

    kind: Kind = Kind.NONE
    after: int = 0
    times: int = 0

    @classmethod
    def parse(cls, text: str) -> Failure:
        """Return the failure of a text such as `crash@30x2`. Raises ValueError if the text has another form."""
        found = _FAILURE.fullmatch(text)
        if found is None or found["times"] == "0":
            raise ValueError(f"{text!r} is no failure; there are {FAILURES}")
        kind = Kind(text.partition("@")[0])
        return cls(kind, int(found["after"] or 0), int(found["times"] or 0))

    def __str__(self) -> str:
        if self.kind is not Kind.CRASH:
            return str(self.kind)
        return f"crash@{self.after}" + (f"x{self.times}" if self.times else "")

    @property
    def succeeds(self) -> bool:
        """True if a job with this failure succeeds in the end."""
        return self.kind is Kind.NONE or self.times > 0


@dataclass(frozen=True, kw_only=True)
class SyntheticJob:
    """One job of the load.

    arrival: when it is submitted, in seconds from the start.
    gpus: of each pod.
    seconds: how long it runs. For a job that hangs, the time until its deadline.
    """

    name: str
    team: str
    arrival: float
    pods: int
    gpus: int
    seconds: int
    priority_class: str
    failure: Failure = Failure()


@dataclass(frozen=True, kw_only=True)
class SyntheticLoadArgs:
    """The arguments of the load.

    submission: how all jobs are submitted, except for namespace and priority.
    image: has `sleep` and `sh`.
    per_gpu: CPU and memory that a pod requests for each GPU.
    placement: the GPU nodes. Kueue adds the tolerations of its flavor.
    """

    jobs: Sequence[SyntheticJob]
    namespaces: Mapping[str, pulumi.Input[str]]
    submission: Submission
    image: str
    per_gpu: Quota
    placement: NodeGroup
    gpu_resource: str = names.GPU


class SyntheticLoad(pulumi.ComponentResource):
    """Submit all jobs of the load. Each is created when the objects that it needs exist."""

    def __init__(self, name: str, args: SyntheticLoadArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:SyntheticLoad", name, None, opts)
        for job in args.jobs:
            register(self, job.name, [document(job, args)])
        self.register_outputs({})


def document(job: SyntheticJob, args: SyntheticLoadArgs) -> Document:
    """Return the AppWrapper that submits a job."""
    submission = replace(args.submission, namespace=args.namespaces[job.team], priority_class=job.priority_class)
    is_group = submission.has_pod_groups if job.pods > 1 else submission.groups_alone
    made = _job(job, args)
    wrapper = app_wrapper(job.name, submission, grouped(job.name, made) if is_group else [made])
    annotations = {ARRIVAL: f"{job.arrival:.3f}".rstrip("0").rstrip(".")}
    if job.failure.kind is Kind.HANG:
        annotations[_RETRY_LIMIT] = "0"
    metadata = wrapper["metadata"]
    return {**wrapper, "metadata": {**metadata, "annotations": {**metadata["annotations"], **annotations}}}


def program(job: SyntheticJob) -> list[str]:
    """Return the command of each pod of a job. Crashes are counted in a file that outlives the container."""
    failure, run = job.failure, f"sleep {job.seconds}"
    if failure.kind is Kind.NONE:
        return ["sleep", str(job.seconds)]
    if failure.kind is Kind.HANG:
        return ["sleep", "infinity"]
    crash = f"sleep {failure.after}; exit 1"
    if not failure.times:
        return ["sh", "-c", crash]
    file = f"{_STATE}/crashes"
    count = f"n=$(cat {file} 2>/dev/null || echo 0)"
    return ["sh", "-c", f"{count}; if [ $n -lt {failure.times} ]; then echo $((n + 1)) > {file}; {crash}; fi; {run}"]


def requests(gpus: int, per_gpu: Quota, gpu_resource: str = names.GPU) -> dict[str, str]:
    """Return the requests of a pod with this number of GPUs. Limits are equal, as extended resources require."""
    beside = {resource: str(amount * gpus) for resource, amount in per_gpu.items()}
    return {**beside, offered(names.GPU, gpu_resource): str(Quantity.parse(gpus))}


def _job(job: SyntheticJob, args: SyntheticLoadArgs) -> Document:
    """Return the Job. Kubernetes counts restarts in place as failures of its pods, up to one less than backoffLimit."""
    amounts, times = requests(job.gpus, args.per_gpu, args.gpu_resource), job.failure.times
    container: Document = {
        "name": "sleeper",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": program(job),
        "securityContext": dict(UNPRIVILEGED),
        "resources": {"requests": amounts, "limits": amounts},
    }
    pod: Document = {
        "restartPolicy": "OnFailure" if times else "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "priorityClassName": job.priority_class,
        **args.placement.body(),
        "containers": [container],
    }
    if times:
        container["volumeMounts"] = [{"name": "state", "mountPath": _STATE}]
        pod["volumes"] = [{"name": "state", "emptyDir": {}}]
    spec = {
        "parallelism": job.pods,
        "completions": job.pods,
        "backoffLimit": times * job.pods + 1 if times else 0,
        **({"activeDeadlineSeconds": job.seconds} if job.failure.kind is Kind.HANG else {}),
    }
    return workloads.job(job.name, None, {WORKLOAD_LABEL: job.name}, pod, spec)
