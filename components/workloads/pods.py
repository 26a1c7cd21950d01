"""The pods of jobs that take whole GPU nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pulumi

from components import names
from components.kubernetes import objects
from components.kubernetes.fabric import Fabric
from components.kubernetes.manifests import Document
from components.kubernetes.placement import NodeGroup
from components.kubernetes.security import PINNED_MEMORY
from components.kubernetes.volumes import Volume, environment, volumes
from components.nodes import nvme_scratch

WORKLOAD_LABEL: Final = "app.kubernetes.io/name"


@dataclass(frozen=True, kw_only=True)
class NodePods:
    """Pods that each take a whole GPU node.

    nodes: number of pods.
    gpus: in one node.
    cpu, memory: of one pod, as canonical quantities. Memory includes shared memory.
    shared_memory: size of /dev/shm.
    deadline_seconds: limit for the job.
    scratch: path of the nodes' local disks.
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
    scratch: str = nvme_scratch.FOLDER

    def resources(self) -> Mapping[str, Mapping[str, str]]:
        """Return a container's `resources`. Limits equal requests, as extended resources require."""
        requests = {names.CPU: self.cpu, names.MEMORY: self.memory, self.gpu_resource: str(self.gpus)}
        requests |= self.fabric.requests()
        return {"requests": requests, "limits": requests}


@dataclass(frozen=True, kw_only=True)
class Container:
    """The container of each pod of a job.

    command: with its arguments.
    variables: besides those of the fabric.
    ports: number by name.
    """

    name: str
    command: Sequence[str]
    variables: Mapping[str, str]
    volumes: Sequence[Volume]
    ports: Mapping[str, int]
    working_directory: str | None = None


def shared_memory(size: str) -> Volume:
    """Return /dev/shm as a volume in memory. A container's default has 64 MiB, too little for NCCL."""
    source = {"emptyDir": {"medium": "Memory", "sizeLimit": size}}
    return Volume(name="shm", path="/dev/shm", source=source)  # noqa: S108 - of the container alone


def scratch(pods: NodePods, path: str = "/scratch") -> Volume:
    """Return each pod's own folder on its node's local disks. `pod_spec` selects nodes that have them."""
    return nvme_scratch.volume(pods.scratch, path)


def container(pods: NodePods, args: Container) -> Document:
    """Return the container. `capabilities` allows it to pin memory for the network devices.

    Empty fields are omitted, because the API server removes empty lists and a Job's pods cannot be changed.
    """
    mounted = (shared_memory(pods.shared_memory), *args.volumes)
    env = [*variables({**pods.fabric.variables, **args.variables}), *environment(mounted)]
    ports = [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in args.ports.items()]
    return {
        "name": args.name,
        "image": pods.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(args.command),
        **({"workingDir": args.working_directory} if args.working_directory else {}),
        **({"env": env} if env else {}),
        **({"ports": ports} if ports else {}),
        **({"securityContext": {"capabilities": added}} if (added := capabilities(pods.fabric)) else {}),
        "resources": pods.resources(),
        "volumeMounts": [item.mount() for item in mounted],
    }


def capabilities(fabric: Fabric) -> Mapping[str, Sequence[str]]:
    """Return the capabilities to add: IPC_LOCK for nodes with RDMA (edwardsp/ai-on-aks)."""
    return {"add": [PINNED_MEMORY]} if fabric.resource is not None else {}


def pod_spec(pods: NodePods, args: Container, *, priority_class: str | None) -> Document:
    """Return the pod of an Indexed Job or a Volcano task, with one container and without access to the API."""
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
    if priority_class is not None:
        spec["priorityClassName"] = priority_class
    return spec


def variables(values: Mapping[str, str]) -> list[Document]:
    """Return a container's `env`."""
    return [{"name": name, "value": value} for name, value in values.items()]


def disruption_budget(name: str, namespace: pulumi.Input[str], pods: int) -> Document:
    """Return the PodDisruptionBudget that protects a job whose state is only on its nodes from drains.

    A drain, for example in an upgrade of the node, then waits and finally fails. Other ways to end pods are still
    possible: Kueue, AppWrapper, a taint with effect NoExecute.
    pods: number of pods. Kubernetes needs a number for objects without a scale, such as a Job (kubernetes.io,
    tasks/run-application/configure-pdb).
    """
    labels = {WORKLOAD_LABEL: name}
    return objects.disruption_budget(name, namespace, labels, pods, labels)
