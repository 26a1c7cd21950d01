"""Workloads that a stack can run: training, benchmarks and their viewers."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from components import names
from components.kubernetes.fabric import Fabric
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import Quantity
from components.workloads import metaseq, nccl, olmo, pretraining
from components.workloads.interface import USER, Exposure
from stacks.config.errors import ConfigError, Path, key
from stacks.settings import cidr
from stacks.settings.claims import ClaimSettings
from stacks.settings.finetuning import FinetuningSettings
from stacks.settings.images import Reference, Repository
from stacks.settings.limits import MOST_GPUS, MOST_NODES, WEEK
from stacks.settings.model import SettingsModel, SomeBytes, SomeCores, form, matching, one_of, reject
from stacks.settings.names import ClassName, label_error
from stacks.settings.submission import WorkloadSettings, name_error
from stacks.settings.vllm import VllmSettings

M = TypeVar("M", bound=SettingsModel)

_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}(@sha256:[0-9a-f]{64})?")
_MOVES: Final = "latest"
_TAGS: Final = (
    "at most 128 letters, digits, and . _ -, which do not begin with . or -; with @sha256: and 64 digits behind it, "
    "only what has that digest is run"
)
_FILE: Final = r"[A-Za-z0-9_/][A-Za-z0-9._/-]{0,254}"
_FILES: Final = "a path of letters, digits and . _ - /"
_WEIGHTS: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([mbt])")
_UNITS: Final = {"m": 1e6, "b": 1e9, "t": 1e12}
_DEFAULT_SIZE: Final = "1.3b"
_MODEL: Final = tuple(field.name for field in fields(metaseq.Size))
_MESSAGE_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _tag(value: str) -> str:
    if value == _MOVES:
        reject(
            "this tag moves between images, so the running version is unknown",
            "push the image with such a tag, and set this key to it",
        )
    if not _TAG.fullmatch(value):
        reject("this is not an image tag", "write only the tag, without the image's name", expected=_TAGS)
    return value


def _model_size(value: str) -> str:
    if value not in metaseq.SIZES:
        reject(
            "there is no model of this size",
            f"set it to {_nearest_size(value)}, the nearest size",
            expected=", ".join(metaseq.SIZES),
        )
    return value


def _nearest_size(value: str) -> str:
    """Return the size whose number of weights is nearest by ratio, or the default for a text without a number."""
    found = _WEIGHTS.fullmatch(value.strip().lower())
    if found is None or not float(found[1]):
        return _DEFAULT_SIZE
    wanted = float(found[1]) * _UNITS[found[2]]
    return min(metaseq.SIZES, key=lambda name: abs(math.log(_weights(name) / wanted)))


def _weights(name: str) -> float:
    return float(name[:-1]) * _UNITS[name[-1]]


def _no_token(value: object) -> object:
    reject(
        "this token is in plain text, which every reader of the repository can see",
        "remove it here, and run `pulumi config set --secret mlbatch:jupyterToken`",
        secret=True,
    )


Tag: TypeAlias = Annotated[str, matching(_tag, rf"(?!{_MOVES}$){_TAG.pattern}", f"{_TAGS}; not {_MOVES}")]
MessageSize: TypeAlias = Annotated[
    str,
    form(
        r"[1-9][0-9]{0,3}[KMG]?",
        "a whole number of bytes, or one with K, M or G",
        "this is not a message size of nccl-tests",
        f"for example {nccl.SMALLEST} or {nccl.LARGEST}",
    ),
]


class NodeWorkloadSettings(WorkloadSettings):
    """Keys of all workloads that take whole nodes."""

    cpu: SomeCores | None = None
    """CPU cores per node. Default: those of mlbatch:workloads."""
    memory: SomeBytes | None = None
    """Memory per node in bytes. Default: that of mlbatch:workloads."""

    repository: ClassVar[str] = ""
    """Name of its image in the stack's registry, and of its folder in images/."""

    @property
    def pods(self) -> int:
        """How many nodes it takes."""
        return 1

    @property
    def part(self) -> int | None:
        """GPUs of its pod if it takes a part of a node, else None."""
        return None


class JobSettings(NodeWorkloadSettings):
    """Keys of all batch jobs."""

    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] = 1
    """Number of nodes."""
    image: Repository | None = None
    """Image without a tag. Default: the one in the stack's registry."""
    tag: Tag | None = None
    """Tag of the image. Required if the job is enabled."""
    deadline_seconds: Annotated[int, Field(ge=60, le=4 * WEEK)] = 24 * 3600
    """Maximum seconds that the job can run."""

    @property
    def pods(self) -> int:
        return self.nodes

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from super().check(path)
        if self.enabled and self.tag is None:
            yield no_tag((*path, "tag"), self.image or self.repository)


class NcclSettings(JobSettings):
    """NCCL's all-reduce test. Build its image from images/nccltest."""

    name: str = "nccl-allreduce"
    smallest: MessageSize = nccl.SMALLEST
    """Size of the smallest message in bytes, or with K, M or G."""
    largest: MessageSize = nccl.LARGEST
    """Size of the largest message in bytes, or with K, M or G."""
    sharp: bool = False
    """Reduce only in the switches (SHARP). The test fails if the fabric does not support it."""
    debug: Literal["WARN", "INFO", "TRACE", "VERSION"] = "WARN"
    """Log level of NCCL (NCCL_DEBUG)."""
    deadline_seconds: Annotated[int, Field(ge=60, le=4 * WEEK)] = 3600

    what: ClassVar[str] = "the NCCL test"
    repository: ClassVar[str] = "nccltest"

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from super().check(path)
        if self.enabled and _bytes(self.smallest) > _bytes(self.largest):
            yield ConfigError(
                (*path, "smallest"),
                f"the smallest message is larger than the largest, {self.largest}",
                f"lower it, or raise {key((*path, 'largest'))}",
            )


class MetaseqSettings(JobSettings):
    """Training of an OPT model on dummy data. Build its image from images/metaseq."""

    name: str = "metaseq"
    size: Annotated[str, one_of(_model_size, tuple(metaseq.SIZES))] = _DEFAULT_SIZE
    """Model size in parameters. It sets the default of the next six keys."""
    layers: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of decoder layers."""
    embedding: Annotated[int, Field(ge=64, le=65536)] | None = None
    """Number of embedding dimensions."""
    heads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Number of attention heads. Must divide embedding."""
    batch: Annotated[int, Field(ge=metaseq.SEQUENCE_LENGTH, le=1 << 30)] | None = None
    """Tokens per update, rounded to whole steps of all GPUs."""
    learning_rate: Annotated[float, Field(ge=1e-9, le=1)] | None = None
    """Peak learning rate. It decays to a tenth."""
    model_parallel: Annotated[int, Field(ge=1, le=64)] | None = None
    """Number of GPUs that share each layer."""
    updates: Annotated[int, Field(ge=1, le=10_000_000)] = metaseq.UPDATES
    """Number of optimizer steps."""
    use_aim: bool = False
    """Write logs for Aim to the volume of mlbatch:workloads.logs."""
    use_tensorboard: bool = False
    """Write logs for TensorBoard to the volume of mlbatch:workloads.logs."""

    what: ClassVar[str] = "the Metaseq training"
    repository: ClassVar[str] = "metaseq"

    @property
    def model(self) -> metaseq.Size:
        """The model of the size, with the keys that are set."""
        given = {name: getattr(self, name) for name in _MODEL}
        return replace(metaseq.SIZES[self.size], **{name: value for name, value in given.items() if value is not None})

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from super().check(path)
        if self.enabled:
            yield from self.undivided(path)

    def undivided(self, path: Path) -> Iterator[ConfigError]:
        """Yield the error of the first dimension that Megatron-LM cannot divide."""
        model = self.model
        rules = (
            ("heads", model.heads, "the embedding", model.embedding),
            ("modelParallel", model.model_parallel, "the number of heads", model.heads),
            ("modelParallel", model.model_parallel, "the sequence length", metaseq.SEQUENCE_LENGTH),
        )
        for name, parts, what, whole in rules:
            if whole % parts:
                yield ConfigError(
                    (*path, name),
                    f"{what} ({whole}) must be a multiple of {name} ({parts})",
                    f"set it to {_next_divisor(parts, whole)}, the next smaller divisor",
                )
                return


class OlmoSettings(JobSettings):
    """Training of OLMo from blob storage. Build its image from images/olmo."""

    name: str = "olmo"
    training: Annotated[
        str,
        form(_FILE, _FILES, "this is not a valid file path in the image", f"for example {olmo.TRAINING}"),
    ] = olmo.TRAINING
    """Path of the training configuration in the image."""
    stop_at: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Number of steps. Default: that of the training configuration."""
    data: str | None = None
    """Name of the volume with the data. Required if the job is enabled."""

    what: ClassVar[str] = "the OLMo training"
    repository: ClassVar[str] = "olmo"
    no_volcano: ClassVar[str] = "Volcano cannot start the pods of an Indexed Job together"


class CheckpointSettings(ClaimSettings):
    """Volume for checkpoints. A restarted training continues from the last one."""

    by_itself: ClassVar[str] = "the job's name with a suffix"

    name: str | None = None
    """Name of the claim. Default: `<job>-checkpoints`."""
    size: SomeBytes = Quantity.parse("200Gi")
    """Size of the volume in bytes."""


class PretrainingSettings(NodeWorkloadSettings):
    """Pre-training of a byte-level language model with PyTorch."""

    name: str = "pretraining"
    kind: pretraining.Kind = pretraining.Kind.PYTORCH_JOB
    """`PyTorchJob`, in an AppWrapper, needs `queueing.trainingOperator`. `TrainJob` needs `queueing.trainer`."""
    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] = 1
    """Number of nodes."""
    image: Reference | None = None
    """Image with PyTorch 2.1 or later, with its tag. Default: NVIDIA's PyTorch image."""
    layers: Annotated[int, Field(ge=1, le=1000)] = pretraining.Model.layers
    """Number of layers."""
    embedding: Annotated[int, Field(ge=8, le=65536)] = pretraining.Model.width
    """Number of embedding dimensions."""
    heads: Annotated[int, Field(ge=1, le=1024)] = pretraining.Model.heads
    """Number of attention heads. Must divide embedding."""
    context: Annotated[int, Field(ge=8, le=1 << 20)] = pretraining.Model.context
    """Length of each text in bytes."""
    batch: Annotated[int, Field(ge=1, le=65536)] = 8
    """Number of texts per GPU and step."""
    steps: Annotated[int, Field(ge=1, le=100_000_000)] = 10_000
    """Number of optimizer steps."""
    learning_rate: Annotated[float, Field(ge=1e-9, le=1)] = 3e-4
    """Learning rate."""
    checkpoint_every: Annotated[int, Field(ge=1, le=100_000_000)] = 500
    """Number of steps between checkpoints. A failure costs at most this many steps."""
    data: str | None = None
    """Name of the volume with the training texts, read as bytes. Default: generated texts."""
    checkpoints: CheckpointSettings = CheckpointSettings()
    deadline_seconds: Annotated[int, Field(ge=60, le=4 * WEEK)] = 24 * 3600
    """Maximum seconds for each attempt of the job."""

    what: ClassVar[str] = "the pre-training"
    no_volcano: ClassVar[str] = "an operator creates its pods, and Volcano cannot start those together"

    @property
    def pods(self) -> int:
        return self.nodes

    @property
    def model(self) -> pretraining.Model:
        return pretraining.Model(layers=self.layers, width=self.embedding, heads=self.heads, context=self.context)

    @property
    def claim(self) -> str:
        return self.checkpoints.name or f"{self.name}-checkpoints"

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from super().check(path)
        if self.enabled and self.embedding % self.heads:
            yield ConfigError(
                (*path, "heads"),
                f"the embedding ({self.embedding}) must be a multiple of heads ({self.heads})",
                f"set it to {_next_divisor(self.heads, self.embedding)}, the next smaller divisor",
            )


class JupyterLabSettings(NodeWorkloadSettings):
    """JupyterLab on one node. Its token is the secret mlbatch:jupyterToken, or a generated one."""

    name: str = "jupyterlab"
    gpus: Annotated[int, Field(ge=1, le=MOST_GPUS)] | None = None
    """GPUs of the pod, which then has their share of the node's cpu and memory, and no RDMA devices. Default: a whole
    node.
    """
    idle_minutes: Annotated[int, Field(ge=5, le=WEEK // 60)] | None = None
    """Minutes without use until kernels and terminals end. After as many more, the server ends and its GPUs are free.
    Default: it never ends.
    """
    image: Reference | None = None
    """Image, with its tag. Default: NVIDIA's PyTorch image."""
    fs_size: Annotated[int, Field(ge=1, le=100)] = 1
    """Size of the users' volume in TiB."""
    storage_class: ClassName | None = None
    """StorageClass of the users' volume, which several nodes can mount. Default: the cluster's class for shared files.
    """
    exposure: Exposure = Exposure.CLUSTER
    """`cluster`: port-forwarding only. `internal` or `public`: a load balancer with plain HTTP, for the addresses in
    sourceRanges.
    """
    source_ranges: tuple[str, ...] = ()
    """CIDR blocks that can connect to the load balancer."""
    user: Annotated[int, Field(ge=1, le=65535)] = USER
    """UID of the user in the pod."""
    scratch: bool = True
    """Mount the node's local disks."""
    token: Annotated[None, BeforeValidator(_no_token), SkipJsonSchema()] = None
    password: Annotated[None, BeforeValidator(_no_token), SkipJsonSchema()] = None

    what: ClassVar[str] = "JupyterLab"
    no_volcano: ClassVar[str] = "it is a server, not a job"

    @property
    def part(self) -> int | None:
        return self.gpus

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from super().check(path)
        if not self.enabled:
            return
        if self.exposure is Exposure.CLUSTER:
            if self.source_ranges:
                yield ConfigError(
                    (*path, "sourceRanges"),
                    "without a load balancer, address ranges have no effect",
                    f"remove the key, or set {key((*path, 'exposure'))} to internal or public",
                )
            return
        if not self.source_ranges:
            yield ConfigError(
                (*path, "sourceRanges"),
                f"exposure {self.exposure} without address ranges gives everyone who can reach the load "
                "balancer a shell on GPU nodes",
                f"add them, or set {key((*path, 'exposure'))} to cluster and use a port-forward",
                expected="a list of CIDR blocks, such as 203.0.113.0/24",
            )
        yield from _ranges((*path, "sourceRanges"), self.source_ranges, self.exposure)


class ViewerSettings(SettingsModel):
    """A viewer for the logs of mlbatch:workloads.metaseq, in the same namespace."""

    name: str
    """Name of the viewer and of its objects."""
    enabled: bool = False
    """Run it."""
    image: Repository | None = None
    """Image without a tag. Default: that of mlbatch:workloads.metaseq."""
    tag: Tag | None = None
    """Tag of the image. Default: that of mlbatch:workloads.metaseq."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        if not self.enabled:
            return
        yield from name_error((*path, "name"), self.name, str(path[-1]))
        if self.image is not None and self.tag is None:
            yield no_tag((*path, "tag"), self.image)


class AimSettings(ViewerSettings):
    """Viewer for training logs: Aim, on port 43800."""

    name: str = "aim"


class TensorBoardSettings(ViewerSettings):
    """Viewer for training logs: TensorBoard, on port 6018."""

    name: str = "tensorboard"


class LogsSettings(SettingsModel):
    """Volume for training logs, which the viewers read."""

    name: str = "training-logs"
    """Name of the claim."""
    storage_class: ClassName | None = None
    """StorageClass of volumes that several nodes can mount. Default: the cluster's class for logs."""
    size: SomeBytes = Quantity.parse("100Gi")
    """Size of the volume in bytes."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from label_error((*path, "name"), self.name)


class WorkloadsSettings(SettingsModel):
    """Workloads. All are off by default."""

    namespace: str = names.WORKLOADS_NAMESPACE
    """Namespace of workloads that no team submits."""
    cpu: SomeCores = Quantity.parse(64)
    """CPU cores of a pod that takes a whole node: those of the machine type minus those of its system."""
    memory: SomeBytes = Quantity.parse("1000Gi")
    """Memory in bytes of a pod that takes a whole node: that of the machine type minus that of its system."""
    nccl: NcclSettings = NcclSettings()
    metaseq: MetaseqSettings = MetaseqSettings()
    olmo: OlmoSettings = OlmoSettings()
    jupyterlab: JupyterLabSettings = JupyterLabSettings()
    aim: AimSettings = AimSettings()
    tensorboard: TensorBoardSettings = TensorBoardSettings()
    logs: LogsSettings = LogsSettings()
    vllm: VllmSettings = VllmSettings()
    pretraining: PretrainingSettings = PretrainingSettings()
    finetuning: FinetuningSettings = FinetuningSettings()

    def of(self, kind: type[M]) -> Mapping[str, M]:
        """Return the sections of a kind by key, such as WorkloadSettings for everything that is submitted."""
        return {name: section for name, section in self if isinstance(section, kind)}

    def without(self, keys: Collection[str]) -> WorkloadsSettings:
        """Return the same with some of what is submitted switched off. keys: of it."""
        off = {
            name: each.model_copy(update={"enabled": False})
            for name, each in self.of(WorkloadSettings).items()
            if name in keys
        }
        return self.model_copy(update=off)

    def home(self, workload: WorkloadSettings) -> str | None:
        """Return the namespace of a workload: its team's, or None if a required team is missing."""
        return workload.submission.team if workload.queued else self.namespace

    def logs_needed(self) -> bool:
        """Whether the volume of the logs is used."""
        writes = self.metaseq.enabled and (self.metaseq.use_aim or self.metaseq.use_tensorboard)
        return writes or self.aim.enabled or self.tensorboard.enabled

    def requests(self, workload: NodeWorkloadSettings, pool: NodePool, fabric: Fabric) -> Mapping[str, Quantity]:
        """Return what one pod of a workload asks for, by resource name, as far as queues count it."""
        network = {name: Quantity.parse(amount) for name, amount in fabric.requests().items()}
        return {
            **self.amounts(workload, pool.shape.resources[names.GPU]),
            **{name: amount for name, amount in network.items() if name in names.RESOURCES and workload.part is None},
        }

    def amounts(self, workload: NodeWorkloadSettings, gpus: Quantity) -> Mapping[str, Quantity]:
        """Return the CPU cores, bytes and GPUs of one pod of a workload. gpus: of a node."""
        part = Quantity.parse(workload.part) if workload.part is not None else gpus

        def share(whole: Quantity, unit: str, finer: str) -> Quantity:
            if part.nano >= gpus.nano:
                return whole
            nano = whole.nano * part.nano // gpus.nano
            unit = unit if nano >= Quantity.parse(f"1{unit}").nano else finer
            return Quantity.parse(f"{nano // Quantity.parse(f'1{unit}').nano}{unit}")

        return {
            names.CPU: workload.cpu or share(self.cpu, "", "m"),
            names.MEMORY: workload.memory or share(self.memory, "Gi", "Mi"),
            names.GPU: part,
        }

    def check(self, path: Path) -> Iterator[ConfigError]:
        training = self.metaseq
        for name, viewer, writes, option in (
            ("aim", self.aim, training.use_aim, "useAim"),
            ("tensorboard", self.tensorboard, training.use_tensorboard, "useTensorboard"),
        ):
            if viewer.enabled and not (training.enabled and writes):
                yield ConfigError(
                    (*path, name, "enabled"),
                    "the training does not write logs for this viewer",
                    f"set {key((*path, 'metaseq', 'enabled'))} and {key((*path, 'metaseq', option))} to true, or "
                    "this to false",
                )


def no_tag(path: Path, image: str) -> ConfigError:
    """Return the error of an image without a tag."""
    return ConfigError(
        path,
        f"the tag of image {image} is not set, and there is no public image",
        "build the image (docs/aks.md, Build the images), and set this key to its tag",
    )


def _next_divisor(parts: int, whole: int) -> int:
    """Return the largest divisor of a whole that does not exceed these parts."""
    return next(number for number in range(min(parts, whole), 0, -1) if whole % number == 0)


def _bytes(size: str) -> int:
    return int(size.rstrip("KMG")) * _MESSAGE_UNITS.get(size[-1], 1)


def _ranges(path: Path, ranges: tuple[str, ...], exposure: Exposure) -> Iterator[ConfigError]:
    """Yield errors of invalid address ranges, and of ranges that allow everyone or no client."""
    wrong = [error for index, value in enumerate(ranges) for error in _range((*path, index), value)]
    yield from wrong
    if wrong:
        return
    if not ranges:
        return
    if wide := cidr.too_wide(ranges):
        yield ConfigError(
            path, f"together these are {wide[0]}, which contains almost all addresses", "list your own network's range"
        )
    elif exposure is Exposure.PUBLIC and all(cidr.within(value, cidr.NOT_PUBLIC) for value in ranges):
        yield ConfigError(
            path,
            "these networks do not exist on the internet, so no client could connect",
            f"list the public addresses of your network, or set {key((*path[:-1], 'exposure'))} to internal",
        )


def _range(path: Path, value: str) -> Iterator[ConfigError]:
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError as error:
        wrong, hint = f"this is not an address range: {error}", "correct it; a single address ends in /32"
    else:
        if str(network) != value:
            wrong = "this is not an address range: a network's first address, a slash and the prefix length"
            hint = f"did you mean {network}? a single address ends in /32"
        elif cidr.within(value, cidr.LOOPBACK):
            wrong, hint = "this is a loopback address, which no client uses", "remove it"
        elif cidr.too_wide([value]):
            wrong, hint = "this contains almost all addresses", "list your own network's range"
        else:
            return
    yield ConfigError(path, wrong, hint, expected="a CIDR block, such as 203.0.113.0/24")
