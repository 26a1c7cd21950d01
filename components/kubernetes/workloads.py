"""Deployments, DaemonSets and Jobs."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.kubernetes.manifests import SKIP_AWAIT, Document
from components.kubernetes.objects import metadata


def deployment(
    name: str,
    namespace: pulumi.Input[str] | None,
    labels: Mapping[str, str],
    pod: Document,
    *,
    replicas: int = 1,
    recreate: bool = False,
    annotations: Mapping[str, str] | None = None,
    pod_annotations: Mapping[str, str] | None = None,
) -> Document:
    """Return a Deployment. It and its pods have the labels.

    pod: the specification of its pods.
    recreate: a pod ends before its replacement starts.
    annotations: of the Deployment. pod_annotations: of its pods.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name, namespace, labels=labels, annotations=annotations),
        "spec": {
            "replicas": replicas,
            **({"strategy": {"type": "Recreate"}} if recreate else {}),
            "selector": {"matchLabels": dict(labels)},
            "template": _template(labels, pod_annotations, pod),
        },
    }


def daemon_set(
    name: str,
    namespace: pulumi.Input[str],
    labels: Mapping[str, str],
    pod: Document,
    *,
    unavailable: str | None = None,
    pod_annotations: Mapping[str, str] | None = None,
) -> Document:
    """Return a DaemonSet. The update does not wait for it, because a failure on one node shows in its pod.

    pod: the specification of its pods.
    unavailable: share of the pods that are replaced at the same time. None for Kubernetes' default.
    """
    update = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(name, namespace, labels=labels, annotations=SKIP_AWAIT),
        "spec": {
            "selector": {"matchLabels": dict(labels)},
            **({"updateStrategy": update} if unavailable is not None else {}),
            "template": _template(labels, pod_annotations, pod),
        },
    }


def job(
    name: str,
    namespace: pulumi.Input[str] | None,
    labels: Mapping[str, str],
    pod: Document,
    spec: Mapping[str, Any],
    *,
    annotations: Mapping[str, str] | None = None,
    pod_annotations: Mapping[str, str] | None = None,
) -> Document:
    """Return a Job. Arguments as in `deployment`. spec: its fields besides the template of its pods."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name, namespace, labels=labels, annotations=annotations),
        "spec": {**spec, "template": _template(labels, pod_annotations, pod)},
    }


def _template(labels: Mapping[str, str], annotations: Mapping[str, str] | None, pod: Document) -> Document:
    own = {
        **({"labels": dict(labels)} if labels else {}),
        **({"annotations": dict(annotations)} if annotations else {}),
    }
    return {**({"metadata": own} if own else {}), "spec": pod}
