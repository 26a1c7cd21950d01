"""Kubernetes objects that several layers declare in the same form."""

import base64
import hashlib
from collections.abc import Mapping

import pulumi

from components.kubernetes.manifests import SKIP_AWAIT, Document


def metadata(
    name: pulumi.Input[str],
    namespace: pulumi.Input[str] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Document:
    """Return an object's metadata, without empty fields."""
    return {
        "name": name,
        **({"namespace": namespace} if namespace is not None else {}),
        **({"labels": dict(labels)} if labels else {}),
        **({"annotations": dict(annotations)} if annotations else {}),
    }


def secret(
    name: str,
    namespace: pulumi.Input[str],
    values: Mapping[str, pulumi.Input[str]],
    *,
    labels: Mapping[str, str] | None = None,
) -> Document:
    """Return a Secret with strings by key. They stay secret in the state and in every preview."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(name, namespace, labels=labels),
        "type": "Opaque",
        "data": {key: encoded(pulumi.Output.secret(value)) for key, value in values.items()},
    }


def encoded(text: pulumi.Output[str]) -> pulumi.Output[str]:
    """Return a text in Base64."""
    return text.apply(lambda known: base64.b64encode(known.encode()).decode())


def config_map(
    name: str, namespace: pulumi.Input[str], data: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> Document:
    """Return a ConfigMap of files."""
    own = metadata(name, namespace, labels=labels)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": own, "data": dict(data)}


def service(
    name: str,
    namespace: pulumi.Input[str],
    selector: Mapping[str, str],
    ports: Mapping[str, tuple[int, int | str]],
    annotations: Mapping[str, str] | None = None,
) -> Document:
    """Return a Service of the pods with these labels, which it has too.

    ports: port of the Service, and number or name of the pods' port, by name.
    annotations: replace SKIP_AWAIT.
    """
    notes = SKIP_AWAIT if annotations is None else annotations
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, namespace, labels=selector, annotations=notes),
        "spec": {
            "selector": dict(selector),
            "ports": [
                {"name": which, "port": port, "protocol": "TCP", "targetPort": target}
                for which, (port, target) in ports.items()
            ],
        },
    }


def disruption_budget(
    name: str,
    namespace: pulumi.Input[str],
    pods: Mapping[str, str],
    least: int = 1,
    labels: Mapping[str, str] | None = None,
) -> Document:
    """Return a PodDisruptionBudget: drains of nodes leave at least this number of the pods with these labels."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name, namespace, labels=labels),
        "spec": {"minAvailable": least, "selector": {"matchLabels": dict(pods)}},
    }


def with_namespace(document: Document, namespace: pulumi.Input[str]) -> Document:
    """Return an object in a namespace. The provider creates it without waiting for it to run or to have ready pods."""
    metadata = {**document["metadata"], "namespace": namespace, "annotations": dict(SKIP_AWAIT)}
    return {**document, "metadata": metadata}


def with_pod_metadata(job: Document, field: str, values: Mapping[str, str]) -> Document:
    """Return a Job whose pods also have these values. field: labels or annotations."""
    template = job["spec"]["template"]
    metadata = template.get("metadata") or {}
    merged = {**metadata, field: {**(metadata.get(field) or {}), **values}}
    return {**job, "spec": {**job["spec"], "template": {**template, "metadata": merged}}}


def checksum(text: str) -> Mapping[str, str]:
    """Return the pod annotation that replaces pods when the text that they read changes."""
    return {"mlbatch/config-sha256": hashlib.sha256(text.encode()).hexdigest()}


def files_checksum(data: Mapping[str, str]) -> Mapping[str, str]:
    """Return the same annotation for files by name."""
    return checksum("".join(f"{name}\n{text}\n" for name, text in sorted(data.items())))


def service_monitor(
    name: str,
    namespace: pulumi.Input[str],
    service: Mapping[str, str],
    endpoint: Document,
    *,
    labels: Mapping[str, str],
    of_namespace: str | None = None,
) -> Document:
    """Return the monitor of a Service's `/metrics` (prometheus-operator, Documentation/api-reference).

    service: labels of the Service.
    endpoint: port and more fields.
    labels: labels that Prometheus selects monitors by.
    of_namespace: namespace of the Service. None for the monitor's.
    """
    elsewhere = {"namespaceSelector": {"matchNames": [of_namespace]}} if of_namespace is not None else {}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata(name, namespace, labels=labels),
        "spec": {
            **elsewhere,
            "selector": {"matchLabels": dict(service)},
            "endpoints": [{"path": "/metrics", **endpoint}],
        },
    }
