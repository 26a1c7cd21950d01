"""Fields that controllers write to a stack's objects as part of their task. They are not drift.

A client chooses its field manager's name, so each name covers only the fields that its controller writes. Other fields
under that name count as written by a person. Everyone may add to `metadata` (drift/closed.py). It is listed here so
that these controllers are not reported as the last writer. Writes to `status` need no entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from review.paths import Path, parse

CHECK: Final = "mlbatch-drift"
"""Field manager of this check. It applies in dry runs, so the stack's manager keeps all its fields. It restarts
workloads."""

RESTARTED: Final = 'spec.template.metadata.annotations["kubectl.kubernetes.io/restartedAt"]'
"""The annotation that `kubectl rollout restart` sets (k8s.io/kubectl, `pkg/polymorphichelpers/objectrestarter.go`)."""

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
        ),  # selects the nodes of the flavor of an admitted job
        "MutatingWebhookConfiguration": _AUTHORITIES,
        "ResourceFlavor": ("metadata.finalizers",),
        "ValidatingWebhookConfiguration": _AUTHORITIES,
    },
    "manager": {
        "MutatingWebhookConfiguration": _AUTHORITIES,
        "ValidatingWebhookConfiguration": _AUTHORITIES,
    },  # AppWrapper uses the name of its program
    "service-ca-operator": {
        "ConfigMap": ('data["service-ca.crt"]',),
        "Service": ("metadata.annotations",),
    },  # OpenShift's authority for Services (openshift/service-ca-operator, pkg/controller/cabundleinjector)
    "slack-controller": {"ClusterQueue": ("spec.resourceGroups",)},  # a list that is written as a whole
}
"""By field manager and kind, the fields that it adds. A change to a declared field is still drift, unless
`components/ownership.py` or `ignore_changes` allows it."""


def tasks(manager: str, kind: str) -> tuple[Path, ...]:
    """Return the paths that a field manager writes in objects of a kind as part of its task."""
    return tuple(parse(path) for path in CONTROLLERS.get(manager, {}).get(kind, ()))
