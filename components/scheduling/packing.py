"""How jobs are placed so that whole nodes stay free, and gangs start whole."""

from __future__ import annotations

from enum import StrEnum


class Packing(StrEnum):
    """Who picks the nodes of jobs.

    none: the cluster's own scheduler, which spreads pods and knows no gang.
    coscheduling: a second scheduler, which fills nodes and binds the pods of a PodGroup together.
    topology: Kueue, which admits a job only where nodes have room for it and names the nodes.
    """

    NONE = "none"
    COSCHEDULING = "coscheduling"
    TOPOLOGY = "topology"
