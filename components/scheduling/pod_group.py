"""Gangs: pods of which none is bound before there is room for all.

AppWrapper makes no PodGroup by itself. One is wrapped beside the pods, which AppWrapper may create (its ClusterRole in
v1.2.2) and which goes and comes with each reset. Fields: kubernetes-sigs/scheduler-plugins,
`apis/scheduling/v1alpha1/types.go`.
"""

from __future__ import annotations

from typing import Final

from components.kubernetes.manifests import Document
from components.kubernetes.objects import with_pod_metadata

API: Final = "scheduling.x-k8s.io/v1alpha1"
LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""Of pods: the PodGroup in their namespace that they belong to. One that does not exist keeps a pod pending."""


def pod_group(name: str, pods: int) -> Document:
    """Return the PodGroup of a gang of this many pods, all of which have to fit."""
    return {"apiVersion": API, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": pods}}


def in_group(name: str, job: Document) -> Document:
    """Return a Job whose pods belong to a PodGroup."""
    return with_pod_metadata(job, "labels", {LABEL: name})
