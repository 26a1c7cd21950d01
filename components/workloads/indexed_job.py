"""Indexed Jobs: pods with an index that find each other by name and end together."""

from collections.abc import Mapping
from typing import Final

import pulumi

from components.kubernetes import workloads
from components.kubernetes.manifests import Document
from components.kubernetes.objects import config_map
from components.kubernetes.programs import FILES_FOLDER
from components.kubernetes.volumes import Volume
from components.workloads.pods import WORKLOAD_LABEL, NodePods

JOB_LABEL: Final = "batch.kubernetes.io/job-name"
"""Label that Kubernetes sets on the pods of a Job."""


def service_name(job: str) -> str:
    """Return the name of the headless Service that gives a job's pods their DNS names."""
    return f"{job}-service"


def headless_service(job: str) -> Document:
    """Return the Service that lets the pods of an Indexed Job find each other, even before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service_name(job), "labels": {WORKLOAD_LABEL: job}},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {JOB_LABEL: job}},
    }


def indexed_job(name: str, pods: NodePods, spec: Document, *, annotations: Mapping[str, str] | None = None) -> Document:
    """Return a Job whose pods have an index, run once each and all end when one of them fails.

    The pod template `spec` gets the job's Service as its subdomain. The DNS name of pod i is
    `<name>-<i>.<name>-service`.
    """
    completion = {
        "completionMode": "Indexed",
        "completions": pods.nodes,
        "parallelism": pods.nodes,
        "backoffLimit": 0,
        "activeDeadlineSeconds": pods.deadline_seconds,
    }
    labels = {WORKLOAD_LABEL: name}
    return workloads.job(
        name, None, labels, {"subdomain": service_name(name), **spec}, completion, pod_annotations=annotations
    )


def files_map(job: str, namespace: pulumi.Input[str], data: Mapping[str, str]) -> Document:
    """Return the ConfigMap of a job's files."""
    name = files_name(job)
    return config_map(name, namespace, data, {WORKLOAD_LABEL: name})


def files_volume(job: str) -> Volume:
    """Return the volume of a job's files, executable."""
    source = {"configMap": {"name": files_name(job), "defaultMode": 0o555}}
    return Volume(name="files", path=FILES_FOLDER, source=source, read_only=True)


def files_name(job: str) -> str:
    """Return the name of the ConfigMap with a job's files."""
    return f"{job}-files"
