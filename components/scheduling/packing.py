"""Placement of jobs that keeps whole nodes free and starts gangs completely."""

from enum import StrEnum


class Packing(StrEnum):
    """Component that selects the nodes of jobs.

    none: the cluster's own scheduler, which spreads pods and does not support gangs.
    coscheduling: a second scheduler, which fills nodes and binds the pods of a PodGroup together.
    sakkara: a second scheduler, which places the pods of a PodGroup close together in racks and blocks. Experimental.
    topology: Kueue, which admits a job only if nodes have room for it, and selects the nodes.
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
