"""MLBatch's three priority classes."""

from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.layer import Layer

PRIORITIES: Final = {names.LOW_PRIORITY: 1, names.DEFAULT_PRIORITY: 5, names.HIGH_PRIORITY: 10}
"""Source: project-codeflare/mlbatch, `setup.k8s/mlbatch-priorities.yaml`."""


@dataclass(frozen=True, kw_only=True)
class PrioritiesArgs:
    """default: the class of pods that name none.

    None if the cluster already has a default class, because there can be only one.
    """

    default: str | None = names.DEFAULT_PRIORITY


class Priorities(Layer):
    """Create the priority classes.

    A change of a value replaces the class. A cluster has at most one default class. All pods that are created later
    without a class get it.
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
            for class_name, value in PRIORITIES.items()
        ]
        self.register_outputs({"classes": list(PRIORITIES)})


def priority_class(name: str, value: int, *, default: bool) -> Document:
    """Return a priority class. Kueue ranks the jobs of a queue by it, and the scheduler ranks pending pods.

    In contrast to MLBatch (`PreemptLowerPriority`), its pods do not preempt others. The scheduler does not know teams,
    so a member's high priority would take nodes from another team's quota. Only Kueue preempts, by queues.

    `globalDefault` is set only if it is true. The API server omits the value false, which a refresh would report as a
    change.
    """
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **({"globalDefault": True} if default else {}),
        "preemptionPolicy": "Never",
    }
