"""The job of a command line: equal pods that find each other, such as for torchrun.

The variables are those of Kubeflow's training operator (v1.9.4, `pkg/controller.v1/pytorch/envvar.go`): torchrun reads
PET_*, and a program with one process in each pod reads MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ask.manifest import ManifestError
from components import names
from components.job_kinds import JOB

Document = dict[str, Any]

_PORT: Final = "29500"
"""torchrun's default (pytorch.org, `torchrun`, --master-port)."""
_CPUS, _GIB = 8, 64
"""Default CPUs and GiB of memory for each GPU, half of what a node with eight H100 usually has."""
_LONGEST: Final = 50
"""Characters of a name. The names of its Service and its pods are longer, and must fit into 63."""
_JOB_LABEL: Final = "batch.kubernetes.io/job-name"
_INDEX: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


@dataclass(frozen=True, kw_only=True)
class Training:
    """The arguments of a job.

    gpus: of the whole job. per_node: the most GPUs of a pod. cpus, memory: of each pod. None for the defaults.
    volumes: mount path by PVC. priority: low, default or high, within the team.
    """

    image: str
    command: Sequence[str]
    gpus: int
    per_node: int = 8
    name: str | None = None
    cpus: str | None = None
    memory: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[str, str] = field(default_factory=dict)
    priority: str | None = None


def objects(args: Training) -> list[Document]:
    """Return the headless Service and the Indexed Job. Raises ManifestError."""
    name = args.name or f"run-{secrets.token_hex(3)}"
    if len(name) > _LONGEST:
        raise ManifestError(f"--name has {len(name)} characters: write at most {_LONGEST}")
    each = min(args.gpus, args.per_node)
    if each and args.gpus % each:
        raise ManifestError(
            f"{args.gpus} GPUs do not divide into pods of {each}: request a multiple of {each}, or set --gpus-per-node"
        )
    pods = args.gpus // each if each else 1
    service = f"{name}-service"
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service},
            "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {_JOB_LABEL: name}},
        },
        {
            "apiVersion": JOB.api,
            "kind": JOB.kind,
            "metadata": {"name": name},
            "spec": {
                "completionMode": "Indexed",
                "completions": pods,
                "parallelism": pods,
                "backoffLimit": 0,  # AppWrapper restarts the whole job
                "template": {"spec": _pod(args, name, service, pods, each)},
            },
        },
    ]


def _pod(args: Training, name: str, service: str, pods: int, gpus: int) -> Document:
    cpus, memory = args.cpus or str(_CPUS * max(gpus, 1)), args.memory or f"{_GIB * max(gpus, 1)}Gi"
    devices = {names.GPU: str(gpus)} if gpus else {}
    mounts = {"shm": "/dev/shm", **args.volumes}  # noqa: S108 - of the container alone
    claims = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in args.volumes]
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "subdomain": service,
        **({"priorityClassName": f"{args.priority}-priority"} if args.priority else {}),
        "containers": [
            {
                "name": "main",
                "image": args.image,
                "command": list(args.command),
                "env": _variables(args, name, service, pods, gpus),
                "resources": {
                    "requests": {names.CPU: cpus, names.MEMORY: memory, **devices},
                    "limits": {names.MEMORY: memory, **devices},
                },
                "volumeMounts": [{"name": volume, "mountPath": path} for volume, path in mounts.items()],
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}, *claims],
    }


def _variables(args: Training, name: str, service: str, pods: int, gpus: int) -> list[Document]:
    first = f"{name}-0.{service}"
    fixed = {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": first,
        "MASTER_PORT": _PORT,
        "WORLD_SIZE": str(pods),
        "PET_NNODES": str(pods),
        "PET_NPROC_PER_NODE": str(gpus or 1),
        "PET_MASTER_ADDR": first,
        "PET_MASTER_PORT": _PORT,
    }
    rank = {"valueFrom": {"fieldRef": {"fieldPath": _INDEX}}}
    return [
        *({"name": key, "value": value} for key, value in {**fixed, **args.variables}.items()),
        *({"name": key, **rank} for key in ("RANK", "PET_NODE_RANK") if key not in args.variables),
    ]
