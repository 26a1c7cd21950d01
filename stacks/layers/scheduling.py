"""How pods are ranked."""

from __future__ import annotations

from typing import Any

from components.kubernetes.cluster import Cluster
from components.scheduling.priorities import Priorities, PrioritiesArgs
from stacks.inputs import StackInputs


def install(inputs: StackInputs[Any], cluster: Cluster) -> Priorities | None:
    """Register the priority classes, which the queues and their jobs name."""
    settings = inputs.settings
    if not (settings.scheduling.priority_classes and settings.queueing.enabled):
        return None
    return Priorities("priorities", PrioritiesArgs(), cluster.options())
