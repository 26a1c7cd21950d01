"""Metrics of single workloads and AppWrappers. Kueue and AppWrapper only count them.

Kueue's wait times are a histogram of admitted workloads. Its last bound is 40960 seconds (kubernetes-sigs/kueue
v0.19.2, pkg/metrics/metrics.go). It does not contain pending workloads. kube-state-metrics reads the objects themselves
(kubernetes/kube-state-metrics, docs/metrics/extend/customresourcestate-metrics.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.rbac import rule

_PREFIX: Final = "mlbatch"
_NAME: Final = {"name": ["metadata", "name"]}
PHASES: Final = (
    "Suspended",
    "Resuming",
    "Running",
    "Resetting",
    "Suspending",
    "Succeeded",
    "Failed",
    "Terminating",
)
"""Phases of an AppWrapper (project-codeflare/appwrapper, api/v1beta2/appwrapper_types.go)."""


def values() -> Mapping[str, Any]:
    """Return the values of the chart kube-state-metrics so that it reads those objects, but no Secrets."""
    return {
        "customResourceState": {
            "enabled": True,
            "config": {"kind": "CustomResourceStateMetrics", "spec": {"resources": _resources()}},
        },
        "rbac": {
            "extraRules": [
                rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["list", "watch"]),
                rule(names.KUEUE_GROUP, ["workloads", "localqueues"], ["list", "watch"]),
                rule(names.APPWRAPPER_GROUP, ["appwrappers"], ["list", "watch"]),
            ]
        },
        # No query uses them, and the service account could otherwise read the Secrets of all namespaces.
        "collectorsExclude": ["secrets"],
    }


def _resources() -> list[Document]:
    return [_workloads(), _local_queues(), _appwrappers()]


def _workloads() -> Document:
    conditions = {"path": ["status", "conditions"], "labelsFromPath": {"condition": ["type"]}}
    return _resource(
        names.KUEUE_API,
        "Workload",
        [
            _gauge("workload_created", "When it was created, in Unix time.", path=["metadata", "creationTimestamp"]),
            _gauge("workload_active", "Whether it may be admitted.", path=["spec", "active"]),
            _gauge("workload_condition", "Whether a condition holds.", **conditions, valueFrom=["status"]),
            _gauge(
                "workload_condition_since",
                "When a condition last changed, in Unix time.",
                **conditions,
                valueFrom=["lastTransitionTime"],
            ),
        ],
        {**_NAME, "queue": ["spec", "queueName"]},
    )


def _local_queues() -> Document:
    """Return the metric of each LocalQueue's ClusterQueue. A pending workload names only its LocalQueue."""
    info = {"labelsFromPath": {"queue": ["metadata", "name"], "cluster_queue": ["spec", "clusterQueue"]}}
    found = {"name": "localqueue_info", "help": "Its ClusterQueue.", "each": {"type": "Info", "info": info}}
    return _resource(names.KUEUE_API, "LocalQueue", [found], {})


def _appwrappers() -> Document:
    phase = {"path": ["status", "phase"], "labelName": "phase", "list": list(PHASES)}
    return _resource(
        names.APPWRAPPER_API,
        "AppWrapper",
        [
            {
                "name": "appwrapper_phase",
                "help": "The phase that it is in.",
                "each": {"type": "StateSet", "stateSet": phase},
            },
            _gauge("appwrapper_retries", "How often it was reset.", path=["status", "resettingCount"], nilIsZero=True),
        ],
        _NAME,
    )


def _resource(version: str, kind: str, metrics: Sequence[Document], labels: Mapping[str, Sequence[str]]) -> Document:
    """Return the configuration for a kind.

    labels: more labels of its series besides the namespace, with their path.
    """
    group, number = version.split("/")
    return {
        "groupVersionKind": {"group": group, "version": number, "kind": kind},
        "metricNamePrefix": _PREFIX,
        "labelsFromPath": {"namespace": ["metadata", "namespace"], **labels},
        "metrics": list(metrics),
    }


def _gauge(name: str, text: str, **gauge: Any) -> Document:
    return {"name": name, "help": text, "each": {"type": "Gauge", "gauge": gauge}}
