"""The job of a command line: equal pods that find each other, such as for torchrun.

The variables are those of Kubeflow's training operator (v1.9.4, `pkg/controller.v1/pytorch/envvar.go`): torchrun reads
PET_*, and a program with one process in each pod reads MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ask.manifest import ManifestError
from components import names
from components.job_kinds import JOB
from components.kubernetes.quantity import Quantity, QuantityError

Document = dict[str, Any]

_PORT: Final = "29500"
"""torchrun's default (pytorch.org, `torchrun`, --master-port)."""
_CPUS, _GIB = 8, 64
"""Default CPUs and GiB of memory for each GPU, half of what a node with eight H100 usually has."""
_LONGEST: Final = 50
"""Characters of a name. The names of its Service and its pods are longer, and must fit into 63."""
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
"""Names that a Job and its Service may have (kubernetes.io, object names, RFC 1035 label names)."""
_VARIABLE: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_VOLUME: Final = re.compile(r"(?P<claim>[a-z0-9]([-.a-z0-9]*[a-z0-9])?):(?P<path>/[^:]*[^:/])/?")
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - of the container alone
_LEAST_MEMORY: Final = Quantity.parse("1Mi")
_JOB_LABEL: Final = "batch.kubernetes.io/job-name"
_INDEX: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


@dataclass(frozen=True, kw_only=True)
class Training:
    """The arguments of a job.

    gpus: of the whole job. per_node: the most GPUs of a pod. cpus, memory: of each pod. None for the defaults.
    volumes: PVC and mount path of each mount. priority: low, default or high, within the team.
    """

    image: str
    command: Sequence[str]
    gpus: int
    per_node: int = 8
    name: str | None = None
    cpus: str | None = None
    memory: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    volumes: Sequence[tuple[str, str]] = ()
    priority: str | None = None


def variables(texts: Sequence[str]) -> dict[str, str]:
    """Return the variables of `--env`. Raises ManifestError, without the value, which can be secret."""
    found = {}
    for text in texts:
        name, between, value = text.partition("=")
        if not (between and _VARIABLE.fullmatch(name)):
            raise ManifestError(f"--env {name!r}: write KEY=VALUE, with letters, digits and _ in KEY")
        found[name] = value
    return found


def volumes(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return claim and path of each `--volume`. Raises ManifestError."""
    found: list[tuple[str, str]] = []
    for text in texts:
        parts = _VOLUME.fullmatch(text)
        if parts is None:
            raise ManifestError(
                f"--volume {text!r}: write CLAIM:PATH, a PersistentVolumeClaim and a path that starts with /"
            )
        if parts["path"] in (_SHARED_MEMORY, *(path for _, path in found)):
            raise ManifestError(f"--volume {text!r}: this path has a volume already. Write another path")
        found.append((parts["claim"], parts["path"]))
    return found


def _check(args: Training, name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise ManifestError(
            f"--name {name!r}: write at most {_LONGEST} lower-case letters, digits and -, with a letter first and no - "
            "at the end"
        )
    for option, amount in (("--cpus", args.cpus), ("--memory", args.memory)):
        try:
            found = Quantity.parse(amount or "1Gi")
        except QuantityError as error:
            raise ManifestError(f"{option} {amount!r}: {error}. Write an amount such as 8 or 64Gi") from error
        if option == "--memory" and found < _LEAST_MEMORY:
            raise ManifestError(f"--memory {amount} is less than 1 MiB: add a unit, such as 64Gi")


def objects(args: Training) -> list[Document]:
    """Return the headless Service and the Indexed Job. Raises ManifestError."""
    name = args.name or f"run-{secrets.token_hex(3)}"
    _check(args, name)
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
    claims = {claim: f"volume-{index}" for index, claim in enumerate(dict(args.volumes))}
    mounts = [("shm", _SHARED_MEMORY), *((claims[claim], path) for claim, path in args.volumes)]
    claimed = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for claim, name in claims.items()]
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
                "volumeMounts": [{"name": volume, "mountPath": path} for volume, path in mounts],
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}, *claimed],
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
