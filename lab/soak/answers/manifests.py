"""Manifests of all kinds of jobs for members, in given sizes."""

from typing import Any

from components import names
from components.job_kinds import APPWRAPPER, PYTORCH_JOB, RAY_CLUSTER, RAY_JOB, TRAIN_JOB, JobKind
from components.queueing.trainer import runtime
from components.scheduling.pod_group import in_group, pod_group
from tests.local.environment import gang

Document = dict[str, Any]


def wrapped(name: str, team: str, pods: int = 1, gpus: int = 1, *, whole: bool = False, **pod: Any) -> Document:
    """Return an AppWrapper with a Job. whole: its pods start together. pod: more fields of the pods' specification."""
    wrapper = gang(name, team, pods, gpus)
    job = wrapper["spec"]["components"][0]["template"]
    fill(job["spec"]["template"], gpus, **pod)
    parts = [pod_group(name, pods), in_group(name, job)] if whole else [job]
    wrapper["spec"]["components"] = [{"template": part} for part in parts]
    return wrapper


def around(name: str, team: str, *parts: Document) -> Document:
    """Return an AppWrapper with objects, which do not name a namespace."""
    components = [{"template": {**part, "metadata": {"name": part["metadata"]["name"]}}} for part in parts]
    return {
        "apiVersion": APPWRAPPER.api,
        "kind": APPWRAPPER.kind,
        "metadata": {"name": name, "namespace": team},
        "spec": {"components": components},
    }


def pytorch(name: str, team: str, workers: int = 0, gpus: int = 1, *, suspended: bool = True, **pod: Any) -> Document:
    """Return a PyTorchJob with a master and workers. suspended: until it is admitted; not in an AppWrapper."""
    replica = {"restartPolicy": "OnFailure", "template": template("pytorch", gpus, **pod)}
    found = {"Master": {"replicas": 1, **replica}}
    if workers:
        found["Worker"] = {"replicas": workers, **replica}
    policy = {"cleanPodPolicy": "Running", "suspend": suspended}
    return queued(PYTORCH_JOB, name, team, {"runPolicy": policy, "pytorchReplicaSpecs": found})


def ray_cluster(name: str, team: str, workers: int = 1, gpus: int = 1, **pod: Any) -> Document:
    """Return a RayCluster with a head without GPUs, and workers."""
    return queued(RAY_CLUSTER, name, team, {"suspend": True, **_ray(workers, gpus, **pod)})


def ray_job(name: str, team: str, workers: int = 1, gpus: int = 1, **pod: Any) -> Document:
    """Return a RayJob whose program KubeRay submits to the head."""
    spec = {
        "entrypoint": "python -c 'print(1)'",
        "submissionMode": "HTTPMode",
        "shutdownAfterJobFinishes": True,
        "suspend": True,
        "rayClusterSpec": _ray(workers, gpus, **pod),
    }
    return queued(RAY_JOB, name, team, spec)


def train_job(name: str, team: str, nodes: int = 1, gpus: int = 1, **pod: Any) -> Document:
    """Return a TrainJob. Its runtime sets the priority of its pods; other pod fields patch the runtime."""
    priority, container = pod.pop("priorityClassName", None), template("node", gpus, **pod)["spec"]["containers"][0]
    pod.pop("amounts", None)
    trainer = {
        "image": container["image"],
        "command": container["command"],
        "numNodes": nodes,
        "resourcesPerNode": container["resources"],
    }
    patched = {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]}
    patch = {"manager": "example.org/me", "trainingRuntimeSpec": {"template": {"spec": patched}}}
    spec = {"runtimeRef": {"name": runtime(priority)}, "trainer": trainer}
    return queued(TRAIN_JOB, name, team, {**spec, **({"runtimePatches": [patch]} if pod else {})})


def queued(kind: JobKind, name: str, team: str, spec: Document) -> Document:
    """Return a job in the team's default queue."""
    metadata = {"name": name, "namespace": team, "labels": {names.QUEUE_LABEL: names.LOCAL_QUEUE}}
    return {"apiVersion": kind.api, "kind": kind.kind, "metadata": metadata, "spec": spec}


def template(container: str, gpus: int, **pod: Any) -> Document:
    """Return a pod template with one container that sleeps."""
    image = {"name": container, "image": "docker.io/library/busybox:1.37.0", "command": ["sleep", "3600"]}
    found: Document = {"spec": {"containers": [image]}}
    fill(found, gpus, **pod)
    return found


def fill(found: Document, gpus: int, **pod: Any) -> None:
    """Add GPUs and other fields to a template's container. amounts: other resources."""
    amounts = {"cpu": "1", "memory": "1Gi", **({names.GPU: str(gpus)} if gpus else {}), **pod.pop("amounts", {})}
    amounts = {name: amount for name, amount in amounts.items() if amount}
    container = found["spec"]["containers"][0]
    container |= {"resources": {"requests": amounts, "limits": amounts}, **pod.pop("container", {})}
    found["spec"] |= pod


def _ray(workers: int, gpus: int, **pod: Any) -> Document:
    count = {"replicas": workers, "minReplicas": workers, "maxReplicas": workers}
    group = {"groupName": "workers", **count, "rayStartParams": {}, "template": template("ray-worker", gpus, **pod)}
    return {
        "headGroupSpec": {"rayStartParams": {}, "template": template("ray-head", 0)},
        "workerGroupSpecs": [group],
    }
