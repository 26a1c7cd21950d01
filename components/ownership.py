"""Fields of the program's objects that other programs write at run time, each with its owner.

The program does not declare them. If an object requires such a field at its creation, the program declares it once and
then ignores it. A refresh therefore does not report them as drift, and an update does not overwrite them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class RuntimeField:
    """A field that another program owns at run time.

    path: in the object, with `[*]` for each element of a list.
    declared_once: the program sets the first value and ignores later changes.
    """

    kind: str
    path: str
    owner: str
    declared_once: bool = False


RUNTIME_FIELDS: Final = (
    RuntimeField(
        kind="Node",
        path="spec.taints",
        owner="node lifecycle controller: cordoned, not-ready and unreachable nodes get a taint",
        declared_once=True,
    ),
    RuntimeField(kind="Node", path="spec.unschedulable", owner="whoever cordons the node"),
    RuntimeField(kind="Node", path="status.conditions", owner="kubelet, or KWOK for simulated nodes"),
    RuntimeField(kind="Secret", path="data", owner="the controller whose webhook the certificate serves"),
    RuntimeField(
        kind="MutatingWebhookConfiguration",
        path="webhooks[*].clientConfig.caBundle",
        owner="the controller that the webhook calls (certificate rotation)",
    ),
    RuntimeField(
        kind="ValidatingWebhookConfiguration",
        path="webhooks[*].clientConfig.caBundle",
        owner="the controller that the webhook calls (certificate rotation)",
    ),
    RuntimeField(
        kind="CustomResourceDefinition",
        path="spec.conversion.webhook.clientConfig.caBundle",
        owner="Kueue (certificate rotation)",
    ),
    RuntimeField(kind="CustomResourceDefinition", path="status", owner="API server"),
    RuntimeField(
        kind="ClusterQueue",
        path="spec.resourceGroups[*].flavors[*].resources[*].lendingLimit",
        owner="slack controller; the program gives a team's own limit, and the controller goes back to it",
    ),
    RuntimeField(kind="ClusterQueue", path="metadata.finalizers", owner="Kueue"),
    RuntimeField(kind="ClusterQueue", path="status", owner="Kueue"),
    RuntimeField(kind="LocalQueue", path="status", owner="Kueue"),
    RuntimeField(kind="ResourceFlavor", path="metadata.finalizers", owner="Kueue"),
    RuntimeField(kind="AppWrapper", path="spec.suspend", owner="Kueue"),
    RuntimeField(kind="AppWrapper", path="spec.components[*].podSetInfos", owner="Kueue"),
    RuntimeField(kind="AppWrapper", path="metadata.finalizers", owner="AppWrapper controller"),
    RuntimeField(kind="AppWrapper", path="status", owner="AppWrapper controller"),
    RuntimeField(kind="Deployment", path="status", owner="deployment controller"),
)


def ignored(kind: str) -> list[str]:
    """Return the paths of a kind that are declared only at creation, for the option `ignore_changes`."""
    return [field.path for field in RUNTIME_FIELDS if field.kind == kind and field.declared_once]
