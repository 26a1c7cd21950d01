"""A stack's settings: one typed tree, and the only place where defaults stand.

The tree mirrors the stack's configuration: each class is a section, each field a key in camelCase. Types are strict (a
boolean is no number, a number no string) and unknown keys are errors. What no single field shows is checked in `rules`.
"""

from __future__ import annotations

from enum import StrEnum

from components.nodes.shapes import NodePool
from stacks.settings.cluster import KubernetesSettings, NodesSettings
from stacks.settings.mirror import MirrorSettings
from stacks.settings.samples import SamplesSettings
from stacks.settings.section import Section
from stacks.settings.tenancy import QueueingSettings, TeamSettings


class Target(StrEnum):
    """Where the platform lands."""

    SIMULATED = "simulated"
    AKS = "aks"


class Settings(Section):
    """Everything that a stack's configuration says."""

    target: Target
    kubernetes: KubernetesSettings = KubernetesSettings()
    nodes: NodesSettings = NodesSettings()
    queueing: QueueingSettings = QueueingSettings()
    teams: tuple[TeamSettings, ...] = ()
    mirror: MirrorSettings = MirrorSettings()
    samples: SamplesSettings = SamplesSettings()

    @property
    def pool(self) -> NodePool:
        """The GPU nodes, of whichever target."""
        return self.nodes.pool()
