"""A stack's settings: one typed tree, and the only place where defaults stand.

The tree mirrors the stack's configuration: each class is a section, each field a key in camelCase. Types are strict (a
boolean is no number, a number no string) and unknown keys are errors. What no single field shows is checked in `rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from components import catalogue, names
from components.artefacts import Mirror
from components.kubernetes.quantity import ZERO, Quantity
from components.nodes.shapes import INSTANCE_TYPES, NodePool, node_shape

_KUEUE = catalogue.versions(catalogue.KUEUE)
_APPWRAPPER = catalogue.versions(catalogue.APPWRAPPER)

MOST_NODES: Final = 1000
MOST_GPUS: Final = 16
"""GPUs in one machine: HGX and DGX systems have 8 or 16."""


class Target(StrEnum):
    """Where the platform lands."""

    SIMULATED = "simulated"


def _choice(what: str, known: tuple[str, ...]) -> BeforeValidator:
    """Return a validator that takes one of the known strings; its error names them."""

    def check(value: object) -> object:
        if value in known:
            return value
        raise PydanticCustomError("choice", "{what}", {"what": what, "known": known})

    return BeforeValidator(check)


def _whole(value: Quantity) -> Quantity:
    if not value.is_whole:
        raise PydanticCustomError("quantity", "{reason}", {"reason": "this resource comes in whole pieces only"})
    return value


Pieces = Annotated[Quantity, AfterValidator(_whole)]
"""A quantity of something that cannot be divided."""


class Section(BaseModel):
    """What all sections have in common."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, alias_generator=to_camel)


class KubernetesSettings(Section):
    """The cluster to install on.

    kubeconfig: file, absolute, from the home folder (~) or from the project's folder; default $KUBECONFIG, else
        ~/.kube/config. context: in that file; default its current one.
    """

    kubeconfig: str | None = None
    context: str | None = None


class NodesSettings(Section):
    """The GPU nodes.

    gpus_per_node, cpu, memory: in place of the instance type's own. roce_per_node: `nvidia.com/roce_gdr` devices.
    """

    count: Annotated[int, Field(ge=1, le=MOST_NODES)] = 3
    instance_type: Annotated[str, _choice("instance type", tuple(INSTANCE_TYPES))] = next(iter(INSTANCE_TYPES))
    gpus_per_node: Annotated[int, Field(ge=1, le=MOST_GPUS)] | None = None
    cpu: Quantity | None = None
    memory: Quantity | None = None
    roce_per_node: Annotated[int, Field(ge=0, le=64)] = 0

    def pool(self) -> NodePool:
        """Return the nodes as the layers see them."""
        shape = node_shape(
            INSTANCE_TYPES[self.instance_type],
            gpus=self.gpus_per_node,
            cpu=self.cpu,
            memory=self.memory,
            rdma_devices=self.roce_per_node,
        )
        return NodePool(count=self.count, shape=shape)


class QuotaSettings(Section):
    """Amounts of each resource. Every queue covers all of them, so a resource left out where it may be has 0 of it.

    pods: MLBatch's 100.
    """

    cpu: Quantity = Field(alias=names.CPU)
    memory: Quantity = Field(alias=names.MEMORY)
    gpu: Pieces = Field(alias=names.GPU)
    rdma: Pieces = Field(alias=names.RDMA, default=ZERO)
    pods: Pieces = Field(alias=names.PODS, default=Quantity.parse(100))

    def amounts(self) -> Mapping[str, Quantity]:
        """Return the quota by resource name."""
        return dict(zip(names.RESOURCES, (self.cpu, self.memory, self.gpu, self.rdma, self.pods), strict=True))


class LimitSettings(Section):
    """Most of each resource; what is left out has no limit."""

    cpu: Quantity | None = Field(alias=names.CPU, default=None)
    memory: Quantity | None = Field(alias=names.MEMORY, default=None)
    gpu: Pieces | None = Field(alias=names.GPU, default=None)
    rdma: Pieces | None = Field(alias=names.RDMA, default=None)
    pods: Pieces | None = Field(alias=names.PODS, default=None)

    def amounts(self) -> Mapping[str, Quantity]:
        """Return the limits by resource name."""
        limits = zip(names.RESOURCES, (self.cpu, self.memory, self.gpu, self.rdma, self.pods), strict=True)
        return {resource: limit for resource, limit in limits if limit is not None}


class QueueingSettings(Section):
    """The queues that lend to each other, and the operators behind them.

    slack: quota of the slack queue; default one node's worth when there are several nodes, nothing otherwise.
    """

    cohort: str = "default-cohort"
    slack: QuotaSettings | None = None
    kueue_version: Annotated[str, _choice("Kueue version", _KUEUE)] = _KUEUE[0]
    appwrapper_version: Annotated[str, _choice("AppWrapper version", _APPWRAPPER)] = _APPWRAPPER[0]


class TeamSettings(Section):
    """A team: its name is that of its namespace, its users are names as the cluster knows them."""

    name: str
    users: tuple[str, ...]
    quota: QuotaSettings
    borrowing_limit: LimitSettings = LimitSettings()
    lending_limit: LimitSettings = LimitSettings()


class MirrorSettings(Section):
    """A site's own copies of upstream's files and images.

    artefacts: folder (as for kubeconfig) or https address that holds them; images: registry prefix. Default: upstream.
    verify: whether files must have the catalogue's digests; off for files that were rendered rather than copied.
    """

    artefacts: str | None = None
    images: str | None = None
    verify: bool = True

    def mirror(self, base: Path) -> Mirror:
        """Return the mirror as the layers see it; base is the folder that a relative folder counts from."""
        artefacts = self.artefacts
        if artefacts is not None and "://" not in artefacts:
            artefacts = str(located(artefacts, base))
        return Mirror(
            artefacts=artefacts.rstrip("/") if artefacts else None,
            images=self.images.rstrip("/") if self.images else None,
            verify=self.verify,
        )


class GangSettings(Section):
    """The sample job: pods that run together, submitted by a team.

    user: on whose behalf, one of the team's; recorded on the job. Resources are per pod.
    """

    enabled: bool = True
    name: str = "sample-gang"
    team: str | None = None
    user: str | None = None
    pods: Annotated[int, Field(ge=1, le=1000)] = 2
    gpus_per_pod: Annotated[int, Field(ge=1, le=MOST_GPUS)] = 8
    cpu_per_pod: Quantity = Quantity.parse(8)
    memory_per_pod: Quantity = Quantity.parse("64Gi")
    seconds: Annotated[int, Field(ge=1, le=7 * 24 * 3600)] = 3600
    priority_class: Annotated[
        str, _choice("priority class", (names.LOW_PRIORITY, names.DEFAULT_PRIORITY, names.HIGH_PRIORITY))
    ] = names.DEFAULT_PRIORITY

    def requests(self) -> Mapping[str, Quantity]:
        """Return what one pod asks for, by resource name."""
        return {
            names.CPU: self.cpu_per_pod,
            names.MEMORY: self.memory_per_pod,
            names.GPU: Quantity.parse(self.gpus_per_pod),
        }


class SamplesSettings(Section):
    """Jobs that show the platform at work; none unless asked for."""

    gang: GangSettings | None = None


class Settings(Section):
    """Everything that a stack's configuration says."""

    target: Target
    kubernetes: KubernetesSettings = KubernetesSettings()
    nodes: NodesSettings = NodesSettings()
    queueing: QueueingSettings = QueueingSettings()
    teams: tuple[TeamSettings, ...] = ()
    mirror: MirrorSettings = MirrorSettings()
    samples: SamplesSettings = SamplesSettings()


def located(path: str, base: Path) -> Path:
    """Return a path of the settings as an absolute one: from the home folder (~), else from `base`."""
    return base / Path(path).expanduser()


def slack_quota(queueing: QueueingSettings, pool: NodePool) -> Mapping[str, Quantity]:
    """Return the slack queue's quota by resource: the one that is set, or the default."""
    if queueing.slack is not None:
        return queueing.slack.amounts()
    if pool.count > 1:
        return pool.shape.resources
    return dict.fromkeys(names.RESOURCES, ZERO)
