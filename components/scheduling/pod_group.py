"""Gangs: no pod is bound before there is room for all.

AppWrapper does not create a PodGroup. The PodGroup is wrapped with the pods. AppWrapper may create it (its ClusterRole
in v1.2.2), and recreates it with each reset. Fields: kubernetes-sigs/scheduler-plugins,
`apis/scheduling/v1alpha1/types.go`.
"""

from typing import Final

from components.kubernetes.manifests import Document
from components.kubernetes.objects import with_pod_metadata

API: Final = "scheduling.x-k8s.io/v1alpha1"
LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""Label of pods with their PodGroup in the same namespace. If it does not exist, the pod stays pending."""


def pod_group(name: str, pods: int) -> Document:
    """Return the PodGroup of a gang with this number of pods, which all have to fit."""
    return {"apiVersion": API, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": pods}}


def in_group(name: str, job: Document) -> Document:
    """Return a Job whose pods belong to a PodGroup."""
    return with_pod_metadata(job, "labels", {LABEL: name})
