"""What controllers write to a stack's objects as their task is: no drift, and no person's doing.

A field manager's name is what a client says of itself, so that each has only the fields that it really writes: anything
else in its name counts as a person's. What they add to `metadata` is open to everybody (drift/closed.py); it stands
here so that they are not named as the last who wrote. Writes to `status` need no place here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from review.paths import Path, parse

CHECK: Final = "mlbatch-drift"
"""Field manager of this check: it applies in dry runs, so that it gives up no field that the stack's manager has, and
restarts workloads."""

RESTARTED: Final = 'spec.template.metadata.annotations["kubectl.kubernetes.io/restartedAt"]'
"""What `kubectl rollout restart` sets (k8s.io/kubectl, `pkg/polymorphichelpers/objectrestarter.go`)."""

RESTARTABLE: Final = ("DaemonSet", "Deployment", "StatefulSet")

_AUTHORITIES: Final = ("webhooks[*].clientConfig.caBundle",)

CONTROLLERS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    CHECK: dict.fromkeys(RESTARTABLE, (RESTARTED,)),
    "cloud-controller-manager": {
        "Node": ("metadata.annotations", "metadata.labels", "spec.providerID", "spec.taints"),
        "Service": ("metadata.annotations", "metadata.finalizers"),
    },
    "cloud-node-manager": {
        "Node": ("metadata.annotations", "metadata.labels", "spec.providerID", "spec.taints"),
    },
    "clusterrole-aggregation-controller": {"ClusterRole": ("rules",)},
    "kube-controller-manager": {
        "Deployment": ("spec.replicas",),  # the horizontal autoscaler
        "Node": ("metadata.annotations", "metadata.labels", "spec.podCIDR", "spec.podCIDRs", "spec.taints"),
        "PersistentVolume": ("metadata.annotations", "metadata.finalizers", "spec.claimRef"),
        "PersistentVolumeClaim": ("metadata.annotations", "metadata.finalizers", "spec.volumeName"),
        "ServiceAccount": ("secrets",),
        "StatefulSet": ("spec.replicas",),
    },
    "kubelet": {
        "Node": ("metadata.annotations", "metadata.labels", "spec.providerID", "spec.taints"),
    },
    "kueue": {
        "AppWrapper": ("spec.components[*].podSetInfos", "spec.suspend"),
        "ClusterQueue": ("metadata.finalizers",),
        "CustomResourceDefinition": ("spec.conversion.webhook.clientConfig.caBundle",),
        "Job": (
            "spec.suspend",
            "spec.template.metadata",
            "spec.template.spec.nodeSelector",
            "spec.template.spec.schedulingGates",
            "spec.template.spec.tolerations",
        ),  # where the flavor of an admitted job puts its pods
        "MutatingWebhookConfiguration": _AUTHORITIES,
        "ResourceFlavor": ("metadata.finalizers",),
        "ValidatingWebhookConfiguration": _AUTHORITIES,
    },
    "manager": {
        "MutatingWebhookConfiguration": _AUTHORITIES,
        "ValidatingWebhookConfiguration": _AUTHORITIES,
    },  # AppWrapper, whose writes have the name of its program
    "service-ca-operator": {
        "ConfigMap": ('data["service-ca.crt"]',),
        "Service": ("metadata.annotations",),
    },  # OpenShift's authority for Services (openshift/service-ca-operator, pkg/controller/cabundleinjector)
    "slack-controller": {"ClusterQueue": ("spec.resourceGroups",)},  # a list that is written as a whole
}
"""By field manager and kind, the fields that it adds. What it changes of what the stack declares is drift nevertheless,
unless `components/ownership.py` or `ignore_changes` leaves it to it."""


def tasks(manager: str, kind: str) -> tuple[Path, ...]:
    """Return the paths that a field manager writes in objects of a kind as its task is."""
    return tuple(parse(path) for path in CONTROLLERS.get(manager, {}).get(kind, ()))
