"""Workloads that a stack can run: training, benchmarks, and what looks at them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from components import names
from components.azure.fabric import fabric
from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import Quantity
from components.storage.storage_classes import FILES, FILES_NFS
from components.workloads import metaseq, nccl, olmo
from components.workloads.interface import USER, Exposure
from components.workloads.jobs import Gang
from stacks.settings.cluster import MOST_NODES
from stacks.settings.section import Section, choice, refuse

_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_MESSAGE: Final = re.compile(r"[1-9][0-9]{0,3}[KMG]?")
_WEIGHTS: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([mbt])")
_UNITS: Final = {"m": 1e6, "b": 1e9, "t": 1e12}
_DEFAULT_SIZE: Final = "1.3b"
_WEEK: Final = 7 * 24 * 3600


def _tag(value: str) -> str:
    if value == "latest":
        refuse(
            wrong="this tag is moved from one image to the next, so that nobody knows what runs",
            allowed="a tag that stays with its image, such as a version or a date",
            fix="push the image under such a tag and name it",
        )
    if not _TAG.fullmatch(value):
        refuse(
            wrong="this is no image tag",
            allowed="at most 128 letters, digits, and . _ -, which do not begin with . or -",
            fix="write the tag alone, without the image's name",
        )
    return value


def _repository(value: str) -> str:
    last = value.rpartition("/")[2]
    if ":" in last or "@" in last:
        refuse(
            wrong="the image's name has a tag or a digest in it",
            allowed="a registry and a path, such as registry.example.org/team/nccltest",
            fix="put the tag into the key tag",
        )
    return value


def _message_size(value: str) -> str:
    if not _MESSAGE.fullmatch(value):
        refuse(
            wrong="this is no message size of nccl-tests",
            allowed="a whole number of bytes, or one with K, M or G",
            fix=f"for example {nccl.SMALLEST} or {nccl.LARGEST}",
        )
    return value


def _model_size(value: str) -> str:
    if value not in metaseq.SIZES:
        refuse(
            wrong="there is no model of this size",
            allowed=", ".join(metaseq.SIZES),
            fix=f"the nearest is {_nearest_size(value)}",
        )
    return value


def _nearest_size(value: str) -> str:
    """Return the size whose number of weights is nearest by ratio; of what is no number, the default."""
    found = _WEIGHTS.fullmatch(value.strip().lower())
    if found is None or not float(found[1]):
        return _DEFAULT_SIZE
    wanted = float(found[1]) * _UNITS[found[2]]
    return min(metaseq.SIZES, key=lambda name: abs(math.log(_weights(name) / wanted)))


def _weights(name: str) -> float:
    return float(name[:-1]) * _UNITS[name[-1]]


def _one_gang(value: object) -> object:
    if isinstance(value, list):
        refuse(
            wrong="a workload is submitted in one way",
            allowed=", ".join(Gang),
            fix="take one of them; for two, run two workloads",
        )
    return value


def _no_token(value: object) -> object:
    refuse(
        wrong="a token in plain configuration can be read by everybody who can read the repository",
        allowed="nothing here; the token is a secret of its own",
        fix="remove it here, and run `pulumi config set --secret mlbatch:jupyterToken`",
        secret=True,
    )


Tag: TypeAlias = Annotated[str, AfterValidator(_tag)]
Repository: TypeAlias = Annotated[str, AfterValidator(_repository)]
MessageSize: TypeAlias = Annotated[str, AfterValidator(_message_size)]
_PRIORITIES = (names.LOW_PRIORITY, names.DEFAULT_PRIORITY, names.HIGH_PRIORITY)


class SubmissionSettings(Section):
    """How a job is submitted.

    gang: `mlbatch` through the queue of a team, the only way in which a quota counts it; `volcano` as a Volcano job;
        `none` as a plain Job, whose pods do not wait for each other.
    team, user: for mlbatch, the team that submits it and on behalf of which of its users. priority_class: of the pods.
    """

    gang: Annotated[Gang, BeforeValidator(_one_gang)] = Gang.MLBATCH
    team: str | None = None
    user: str | None = None
    priority_class: Annotated[str, choice("priority class", _PRIORITIES)] | None = None


class NodeWorkloadSettings(Section):
    """What all workloads have in common that take whole nodes. Resources are per node.

    cpu, memory: default those of the section.
    """

    name: str
    enabled: bool = False
    submission: SubmissionSettings = SubmissionSettings()
    cpu: Quantity | None = None
    memory: Quantity | None = None

    @property
    def pods(self) -> int:
        """How many nodes it takes."""
        return 1


class JobSettings(NodeWorkloadSettings):
    """What all batch jobs have in common.

    image: default the one of this name in the stack's registry, which the site builds and pushes. tag: required.
    deadline_seconds: after which the job is ended.
    """

    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] = 1
    image: Repository | None = None
    tag: Tag | None = None
    deadline_seconds: Annotated[int, Field(ge=60, le=4 * _WEEK)] = 24 * 3600

    @property
    def pods(self) -> int:
        """How many nodes it takes."""
        return self.nodes


class NcclSettings(JobSettings):
    """NCCL's all-reduce test; its image is built from docker/nccl of edwardsp/ai-on-aks.

    sharp: reduce in the switches only, which fails where the fabric does not offer it.
    """

    name: str = "nccl-allreduce"
    smallest: MessageSize = nccl.SMALLEST
    largest: MessageSize = nccl.LARGEST
    sharp: bool = False
    debug: Literal["WARN", "INFO", "TRACE", "VERSION"] = "WARN"
    deadline_seconds: Annotated[int, Field(ge=60, le=4 * _WEEK)] = 3600


class MetaseqSettings(JobSettings):
    """Training of an OPT model on dummy data; its image is built from docker/metaseq of edwardsp/ai-on-aks.

    size: of the model, which decides layers, batch, learning rate and parallelism. updates: steps of the optimizer.
    use_aim, use_tensorboard: write logs to the volume of mlbatch:workloads.logs.
    """

    name: str = "metaseq"
    size: Annotated[str, AfterValidator(_model_size)] = _DEFAULT_SIZE
    updates: Annotated[int, Field(ge=1, le=10_000_000)] = metaseq.UPDATES
    use_aim: bool = False
    use_tensorboard: bool = False


class OlmoSettings(JobSettings):
    """Training of OLMo from blob storage; its image is built from docker/olmo of edwardsp/ai-on-aks.

    training: the configuration's file in the image. stop_at: step at which to stop.
    data: the volume of mlbatch:storage with the data.
    """

    name: str = "olmo"
    training: str = olmo.TRAINING
    stop_at: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    data: str | None = None


class JupyterLabSettings(NodeWorkloadSettings):
    """JupyterLab on one node. Its token is the secret mlbatch:jupyterToken, or one that is made up.

    image: with a tag; default NVIDIA's of PyTorch.
    fs_size: of the users' volume, in TiB. storage_class: of that volume; many nodes can mount it.
    exposure: `cluster` for port-forwards alone; `internal` or `public` for a load balancer, over plain HTTP, for the
    addresses of source_ranges. user: its number in the pod. scratch: mount the node's local disks.
    """

    name: str = "jupyterlab"
    image: str | None = None
    fs_size: Annotated[int, Field(ge=1, le=100)] = 1
    storage_class: str = FILES
    exposure: Exposure = Exposure.CLUSTER
    source_ranges: tuple[str, ...] = ()
    user: Annotated[int, Field(ge=1, le=65535)] = USER
    scratch: bool = True
    token: Annotated[None, BeforeValidator(_no_token)] = None
    password: Annotated[None, BeforeValidator(_no_token)] = None


class ViewerSettings(Section):
    """A viewer of the logs of mlbatch:workloads.metaseq, in its namespace. image, tag: default its own."""

    name: str
    enabled: bool = False
    image: Repository | None = None
    tag: Tag | None = None


class AimSettings(ViewerSettings):
    """Aim, on port 43800."""

    name: str = "aim"


class TensorBoardSettings(ViewerSettings):
    """TensorBoard, on port 6018."""

    name: str = "tensorboard"


class LogsSettings(Section):
    """The volume of the logs, which training writes and viewers read."""

    name: str = "training-logs"
    storage_class: str = FILES_NFS
    size: Quantity = Quantity.parse("100Gi")


class WorkloadsSettings(Section):
    """The workloads; none unless asked for.

    namespace: of those that no team submits. cpu, memory: of a pod that takes a whole node, what the machine type has
    less what its system needs.
    """

    namespace: str = names.WORKLOADS_NAMESPACE
    cpu: Quantity = Quantity.parse(64)
    memory: Quantity = Quantity.parse("1000Gi")
    nccl: NcclSettings = NcclSettings()
    metaseq: MetaseqSettings = MetaseqSettings()
    olmo: OlmoSettings = OlmoSettings()
    jupyterlab: JupyterLabSettings = JupyterLabSettings()
    aim: AimSettings = AimSettings()
    tensorboard: TensorBoardSettings = TensorBoardSettings()
    logs: LogsSettings = LogsSettings()

    def jobs(self) -> Mapping[str, JobSettings]:
        """Return the batch jobs by key."""
        return {"nccl": self.nccl, "metaseq": self.metaseq, "olmo": self.olmo}

    def node_workloads(self) -> Mapping[str, NodeWorkloadSettings]:
        """Return everything that takes whole nodes, by key."""
        return {**self.jobs(), "jupyterlab": self.jupyterlab}

    def logs_needed(self) -> bool:
        """Whether the volume of the logs is used."""
        writes = self.metaseq.enabled and (self.metaseq.use_aim or self.metaseq.use_tensorboard)
        return writes or self.aim.enabled or self.tensorboard.enabled

    def requests(self, workload: NodeWorkloadSettings, pool: NodePool, fabric: Fabric) -> Mapping[str, Quantity]:
        """Return what one pod of a workload asks for, by resource name, as far as queues count it."""
        network = {name: Quantity.parse(amount) for name, amount in fabric.requests().items()}
        return {
            names.CPU: workload.cpu or self.cpu,
            names.MEMORY: workload.memory or self.memory,
            names.GPU: pool.shape.resources[names.GPU],
            **{name: amount for name, amount in network.items() if name in names.RESOURCES},
        }


def fabric_of(pool: NodePool, *, shared: bool = False) -> Fabric:
    """Return what pods on a pool's nodes ask of the network. shared: the nodes offer the shared device plugin's
    resource in place of ports."""
    return fabric(pool.shape.resources[names.INFINIBAND].nano // 10**9, shared=shared)
