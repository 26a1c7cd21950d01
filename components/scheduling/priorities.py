"""MLBatch's three priorities for pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.layer import Layer

PRIORITIES: Final = {names.LOW_PRIORITY: 1, names.DEFAULT_PRIORITY: 5, names.HIGH_PRIORITY: 10}
"""Source: project-codeflare/mlbatch, `setup.k8s/mlbatch-priorities.yaml`."""


@dataclass(frozen=True, kw_only=True)
class PrioritiesArgs:
    """Priority classes by name with their value, and the one that pods get which name none.

    default: None where the cluster has one of its own, for it can have one only.
    """

    values: Mapping[str, int] = field(default_factory=lambda: dict(PRIORITIES))
    default: str | None = names.DEFAULT_PRIORITY


class Priorities(Layer):
    """Create the priority classes.

    Their value cannot be changed in place: a change replaces the class. A cluster has at most one default class; every
    pod created later without a class gets it.
    """

    def __init__(self, name: str, args: PrioritiesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:scheduling:Priorities", name, None, opts)
        options = pulumi.ResourceOptions(
            parent=self,
            replace_on_changes=["value", "preemptionPolicy"],
            delete_before_replace=True,
        )
        self.ready = [
            Manifest(class_name, priority_class(class_name, value, default=class_name == args.default), options)
            for class_name, value in args.values.items()
        ]
        self.register_outputs({"classes": list(args.values)})


def priority_class(name: str, value: int, *, default: bool) -> Document:
    """Return a priority class by which Kueue ranks the jobs of a queue, and the scheduler pods that wait.

    Its pods evict nobody, other than in MLBatch (`PreemptLowerPriority`): the scheduler knows no teams, so that a
    member's high priority would take the nodes of another team's own quota. Kueue alone preempts, by queues.

    `globalDefault` stands there only when it is true: the API server leaves the value false out, which a refresh would
    take for a change.
    """
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **({"globalDefault": True} if default else {}),
        "preemptionPolicy": "Never",
    }
