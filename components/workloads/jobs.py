"""What the jobs that take whole GPU nodes have in common, and the three ways in which they are submitted.

    mlbatch   an AppWrapper in a team's queue: Kueue admits all pods at once and counts them against the team's quota
    volcano   a Volcano Job: all pods start together, and no quota counts them
    none      a plain Indexed Job: pods start one by one as nodes become free, and no quota counts them

AppWrapper may create pods, Services and Jobs, and no ConfigMaps (its ClusterRole in v1.1.2): a job's files are created
beside it. Each wrapped Job is one of Kueue's pod sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import pulumi

from components import names
from components.kubernetes.fabric import Fabric
from components.kubernetes.manifests import SKIP_AWAIT, Document, Manifest
from components.kubernetes.objects import config_map
from components.kubernetes.placement import NodeGroup
from components.kubernetes.programs import FILES_FOLDER
from components.kubernetes.volumes import Volume, host_folder, volumes
from components.nodes import nvme_scratch

SUBMITTER: Final = "mlbatch/submitted-for"
WORKLOAD_LABEL: Final = "app.kubernetes.io/name"
JOB_LABEL: Final = "batch.kubernetes.io/job-name"
"""Kubernetes gives it to the pods of a Job."""
WARM_UP: Final = {"workload.codeflare.dev.appwrapper/warmupGracePeriodDuration": "30m"}
"""AppWrapper takes pods that are not running after five minutes for lost; images of 20 GB take longer to pull."""

LAUNCHER_TASK: Final = "mpimaster"
WORKER_TASK: Final = "mpiworker"
LAUNCHER_ACCOUNT: Final = "mpi-worker-view"
VOLCANO_SCHEDULER: Final = "volcano"

IMMUTABLE: Final = ("metadata", "spec")
"""A submitted job is not changed but submitted anew."""


class Gang(StrEnum):
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
    """

    gang: Gang
    namespace: pulumi.Input[str]
    queue: str = names.LOCAL_QUEUE
    priority_class: str | None = None
    user: str | None = None


@dataclass(frozen=True, kw_only=True)
class NodePods:
    """Pods of which each takes a whole GPU node.

    image: what they run. nodes: how many pods. placement: the GPU nodes. gpus: in one node; gpu_resource: as which they
    are asked for. cpu, memory: of one pod, as canonical quantities; memory includes what is written to shared memory.
    shared_memory: size of /dev/shm. deadline_seconds: after which the job is ended, however far it got.
    """

    image: pulumi.Input[str]
    nodes: int
    placement: NodeGroup
    gpus: int
    gpu_resource: str = names.GPU
    cpu: str
    memory: str
    fabric: Fabric
    shared_memory: str
    deadline_seconds: int

    def resources(self) -> Mapping[str, Mapping[str, str]]:
        """Return a container's `resources`. Limits equal requests, which extended resources demand."""
        requests = {names.CPU: self.cpu, names.MEMORY: self.memory, self.gpu_resource: str(self.gpus)}
        requests |= self.fabric.requests()
        return {"requests": requests, "limits": requests}


def shared_memory(size: str) -> Volume:
    """Return /dev/shm as a memory-backed volume; a container's own has 64 MiB, too little for NCCL."""
    return Volume(name="shm", path="/dev/shm", source={"emptyDir": {"medium": "Memory", "sizeLimit": size}})


def scratch(path: str = "/scratch") -> Volume:
    """Return the node's local disks, for pods that select nodes where these are mounted (see `pod_spec`)."""
    return host_folder("scratch", nvme_scratch.FOLDER, path)


def variables(values: Mapping[str, str]) -> list[Document]:
    """Return a container's `env`."""
    return [{"name": name, "value": value} for name, value in values.items()]


@dataclass(frozen=True, kw_only=True)
class Container:
    """What runs in each pod of a job.

    command: with its arguments. variables: beyond those of the fabric. ports: number by name.
    """

    name: str
    command: Sequence[str]
    variables: Mapping[str, str]
    volumes: Sequence[Volume]
    ports: Mapping[str, int]
    working_directory: str | None = None


def container(pods: NodePods, args: Container) -> Document:
    """Return the container. IPC_LOCK lets it pin memory for the network devices (edwardsp/ai-on-aks).

    What it has none of is left out: the API server keeps no empty lists, and a Job's pods cannot be changed back.
    """
    environment = variables({**pods.fabric.variables, **args.variables})
    ports = [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in args.ports.items()]
    return {
        "name": args.name,
        "image": pods.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(args.command),
        **({"workingDir": args.working_directory} if args.working_directory else {}),
        **({"env": environment} if environment else {}),
        **({"ports": ports} if ports else {}),
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "resources": pods.resources(),
        "volumeMounts": [item.mount() for item in (shared_memory(pods.shared_memory), *args.volumes)],
    }


def pod_spec(pods: NodePods, args: Container, submission: Submission) -> Document:
    """Return the pod of an Indexed Job or of a Volcano task: alone with its container, without access to the API."""
    mounted = (shared_memory(pods.shared_memory), *args.volumes)
    group = pods.placement
    if any(item.name == "scratch" for item in mounted):
        group = replace(group, node_selector={**group.node_selector, **nvme_scratch.READY})
    spec: Document = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "automountServiceAccountToken": False,
        **group.body(),
        "containers": [container(pods, args)],
        "volumes": volumes(mounted),
    }
    if submission.priority_class is not None:
        spec["priorityClassName"] = submission.priority_class
    return spec


def service_name(job: str) -> str:
    """Return the name of the headless Service that gives a job's pods their names."""
    return f"{job}-service"


def headless_service(job: str) -> Document:
    """Return the Service under which the pods of an Indexed Job find each other, also before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service_name(job), "labels": {WORKLOAD_LABEL: job}},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {JOB_LABEL: job}},
    }


def indexed_job(name: str, pods: NodePods, spec: Document, *, annotations: Mapping[str, str] | None = None) -> Document:
    """Return a Job whose pods carry their index, run once each and end together when one of them fails.

    The pod template `spec` gets the job's Service as its subdomain, so that pod i is `<name>-<i>.<name>-service`.
    """
    template_metadata: Document = {"labels": {WORKLOAD_LABEL: name}}
    if annotations:
        template_metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {WORKLOAD_LABEL: name}},
        "spec": {
            "completionMode": "Indexed",
            "completions": pods.nodes,
            "parallelism": pods.nodes,
            "backoffLimit": 0,
            "activeDeadlineSeconds": pods.deadline_seconds,
            "template": {"metadata": template_metadata, "spec": {"subdomain": service_name(name), **spec}},
        },
    }


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


def volcano_job(
    name: str,
    submission: Submission,
    pods: NodePods,
    *,
    launcher: Container,
    worker: Container,
    annotations: Mapping[str, str] | None = None,
) -> Document:
    """Return a Volcano Job of one launcher and a worker on each node, which start together or not at all.

    Volcano's plugins give the pods an SSH key, names, and the workers' host file; the job is complete when the launcher
    is, and ended when any pod fails. Source of the shape: edwardsp/ai-on-aks, examples/metaseq and nccl-allreduce.
    """
    worker_spec = pod_spec(pods, worker, submission)
    launcher_spec = {
        **pod_spec(pods, launcher, submission),
        "serviceAccountName": LAUNCHER_ACCOUNT,
        "automountServiceAccountToken": True,
    }
    share = {names.CPU: "1", names.MEMORY: "8Gi"}
    launcher_spec["containers"][0]["resources"] = {"requests": share, "limits": share}
    metadata = {"labels": {WORKLOAD_LABEL: name}, **({"annotations": dict(annotations)} if annotations else {})}
    deadline = {"activeDeadlineSeconds": pods.deadline_seconds}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": submission.namespace, "labels": {WORKLOAD_LABEL: name}},
        "spec": {
            "minAvailable": pods.nodes + 1,
            "schedulerName": VOLCANO_SCHEDULER,
            "queue": submission.queue,
            "maxRetry": 3,
            "plugins": {"ssh": [], "svc": []},
            "policies": [
                {"event": "PodEvicted", "action": "RestartJob"},
                {"event": "PodFailed", "action": "TerminateJob"},
            ],
            "tasks": [
                {
                    "name": LAUNCHER_TASK,
                    "replicas": 1,
                    "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
                    "template": {"metadata": metadata, "spec": {**launcher_spec, **deadline}},
                },
                {
                    "name": WORKER_TASK,
                    "replicas": pods.nodes,
                    "template": {
                        "metadata": metadata,
                        "spec": {**worker_spec, **deadline, "terminationGracePeriodSeconds": 0},
                    },
                },
            ],
        },
    }


def placed(document: Document, namespace: pulumi.Input[str]) -> Document:
    """Return an object in a namespace, created without waiting until it has run or pods answer for it."""
    metadata = {**document["metadata"], "namespace": namespace, "annotations": dict(SKIP_AWAIT)}
    return {**document, "metadata": metadata}


def submitted(name: str, submission: Submission, job: Document) -> list[Document]:
    """Return the objects that submit an Indexed Job: an AppWrapper, or the Job itself with its Service."""
    components = [headless_service(name), job]
    if submission.gang is Gang.MLBATCH:
        return [app_wrapper(name, submission, components)]
    return [placed(component, submission.namespace) for component in components]


def files_map(job: str, namespace: pulumi.Input[str], data: Mapping[str, str]) -> Document:
    """Return the ConfigMap of a job's files."""
    name = files_name(job)
    return config_map(name, namespace, data, {WORKLOAD_LABEL: name})


def files_volume(job: str) -> Volume:
    """Return the volume of a job's files, executable."""
    source = {"configMap": {"name": files_name(job), "defaultMode": 0o555}}
    return Volume(name="files", path=FILES_FOLDER, source=source, read_only=True)


def files_name(job: str) -> str:
    """Return the name of the ConfigMap with a job's files."""
    return f"{job}-files"


def register(parent: pulumi.Resource, name: str, documents: Sequence[Document]) -> list[Manifest]:
    """Register a job's objects: what runs is submitted anew when it changes, after what it needs exists."""
    registered: list[Manifest] = []
    for document in documents:
        runs = document["kind"] in ("Job", "AppWrapper")
        options = pulumi.ResourceOptions(
            parent=parent,
            depends_on=list(registered) if runs else None,
            replace_on_changes=list(IMMUTABLE) if runs else None,
            delete_before_replace=runs or None,
        )
        registered.append(Manifest(f"{name}/{document['kind']}", document, options))
    return registered
