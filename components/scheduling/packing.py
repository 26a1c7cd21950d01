"""Placement of jobs that keeps whole nodes free and starts gangs completely."""

from __future__ import annotations

from enum import StrEnum


class Packing(StrEnum):
    """Who picks the nodes of jobs.

    none: the cluster's own scheduler, which spreads pods and knows no gang.
    coscheduling: a second scheduler, which fills nodes and binds the pods of a PodGroup together.
    sakkara: another one, which places the pods of a PodGroup close together in racks and blocks of nodes; experimental.
    topology: Kueue, which admits a job only where nodes have room for it and names the nodes.
    """

    NONE = "none"
    COSCHEDULING = "coscheduling"
    SAKKARA = "sakkara"
    TOPOLOGY = "topology"

    @property
    def has_pod_groups(self) -> bool:
        """True if a second scheduler binds the pods of a PodGroup together."""
        return self in (Packing.COSCHEDULING, Packing.SAKKARA)

    @property
    def places_groups_alone(self) -> bool:
        """True if that scheduler does not place pods without a PodGroup."""
        return self is Packing.SAKKARA
