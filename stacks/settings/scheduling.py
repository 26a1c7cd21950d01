"""Priorities and placement of pods."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from components import catalogue, names
from components.catalogue import Artifact
from components.scheduling import coscheduling
from components.scheduling.packing import Packing
from components.scheduling.sakkara import Topology, Tree
from stacks.config.errors import ConfigError, Path, key
from stacks.settings.model import SettingsModel, choice, form
from stacks.settings.names import label_errors

LEAST_LEVELS: Final = 2
_MOST_LEVELS: Final = 15
"""kubernetes-sigs/kueue, apis/kueue/v1beta2/topology_types.go: 16 with the node."""
_SCHEDULERS = catalogue.versions(catalogue.SCHEDULER_PLUGINS)


_LEVEL: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_LEVELS: Final = "letters, digits, -, _ and ., with a letter or digit first and last"


Name = Annotated[str, form(_LEVEL, _LEVELS, "this name is invalid in a topology", "for example rack-0")]


class CoschedulingSettings(SettingsModel):
    """The second scheduler of `packing: coscheduling`."""

    permit_seconds: Annotated[int, Field(ge=10, le=3600)] = coscheduling.PERMIT_SECONDS
    """Seconds that scheduled pods of a gang keep their nodes while other pods of the gang have none. Default:
    MLBatch's. Upstream's 10 seconds end before a node has been freed.
    """


class TopologyGroupSettings(SettingsModel):
    """A rack, a block or another group of nodes."""

    name: Name
    """Name of the group, unique in the topology."""
    members: tuple[str, ...]
    """Names of the groups or nodes in it."""


class SakkaraSettings(SettingsModel):
    """The second scheduler of `packing: sakkara`."""

    levels: tuple[Name, ...] = ("rack", "node")
    """Names of the levels from the top down to the nodes, such as block, rack and node."""
    groups: tuple[TopologyGroupSettings, ...] = ()
    """Groups of nodes. Without groups, all nodes are alike, and the scheduler places gangs by CPUs and memory only."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        if len(set(self.levels)) < len(self.levels) or len(self.levels) < LEAST_LEVELS:
            yield ConfigError(
                (*path, "levels"),
                "a topology needs at least two levels with different names, and the last one is the nodes",
                "remove the key; the default is [rack, node]",
                expected="for example [rack, node] or [block, rack, node]",
            )

    def topology(self) -> Topology | None:
        """Return the tree of the checked groups, or None without groups."""
        if not self.groups:
            return None
        members = {group.name: group.members for group in self.groups}
        inner = {member for names in members.values() for member in names}

        def tree(names: Iterable[str]) -> Tree:
            return {name: tree(members.get(name, ())) for name in names}

        return Topology(levels=self.levels, tree=tree(name for name in members if name not in inner))


class TopologySettings(SettingsModel):
    """Network levels for Kueue with `packing: topology`."""

    levels: tuple[str, ...] = ()
    """Labels of GPU nodes for the levels of the network, from the widest to the narrowest, such as
    `[topology.kubernetes.io/zone, ib/torset]`. Kueue adds the node as the last level, and places no job on a node that
    lacks a label. The platform's own multi-node jobs prefer one value of the narrowest level.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        for index, level in enumerate(self.levels):
            at: Path = (*path, "levels", index)
            yield from (replace(error, path=at, value=level) for error in label_errors(at, {level: ""}))
            if level == names.HOST or level in self.levels[:index]:
                yield ConfigError(
                    at, "the node is always the last level" if level == names.HOST else "duplicate level", "remove it"
                )
        if len(self.levels) > _MOST_LEVELS:
            yield ConfigError(
                (*path, "levels"),
                f"a Kueue Topology has at most {_MOST_LEVELS + 1} levels, including the node",
                "remove labels that have the same value on all nodes",
            )


class SchedulingSettings(SettingsModel):
    """Priorities and placement of pods."""

    priority_classes: bool = True
    """Create the platform's three priority classes. Set to false if the cluster has them."""
    packing: Packing = Packing.COSCHEDULING
    """Component that selects nodes for jobs in queues. `none`: the default scheduler, which spreads pods.
    `coscheduling`: a second scheduler, which fills node after node and starts gangs whole. `sakkara` (experimental): a
    second scheduler, which starts gangs whole and close together. `topology`: Kueue, which admits a job only if nodes
    have room for it.
    """
    coscheduling: CoschedulingSettings = CoschedulingSettings()
    sakkara: SakkaraSettings = SakkaraSettings()
    topology: TopologySettings = TopologySettings()
    scheduler_version: Annotated[str, choice("version of scheduler-plugins", _SCHEDULERS)] | None = None
    """Version of scheduler-plugins, for `coscheduling`. Default: the newest one that works with the cluster's
    Kubernetes version. It works with its own minor version and the next one.
    """

    def artifacts(self, version: str) -> Sequence[Artifact]:
        """Return the sources of a second scheduler's version, or none without a second scheduler.

        The first is the definition of PodGroup.
        """
        if not self.packing.has_pod_groups:
            return ()
        quotas = [catalogue.ELASTIC_QUOTAS] if self.packing is Packing.COSCHEDULING else []
        return [catalogue.find(name, version) for name in (catalogue.SCHEDULER_PLUGINS, *quotas)]

    def check(self, path: Path) -> Iterator[ConfigError]:
        for packing in (Packing.COSCHEDULING, Packing.SAKKARA, Packing.TOPOLOGY):
            if packing is not self.packing:
                yield from self.unused(
                    path,
                    [packing],
                    f"this has no effect: {key((*path, 'packing'))} is {self.packing}",
                    f"remove the key, or set {key((*path, 'packing'))} to {packing}",
                )
