"""The catalog of certified operators: one version of NVIDIA's GPU operator, whose pod is simulated.

OLM really creates the bundle's definition, account, rights and Deployment. Source: NVIDIA/gpu-operator, tag v26.3.3,
bundle/manifests. The definition accepts any field; the rights are those that OpenShift requires.
"""

from __future__ import annotations

import json
from typing import Any, Final

from emulator.charts.sources import STUBS
from emulator.cluster.api import Object

PACKAGE: Final = "gpu-operator-certified"
VERSION: Final = "26.3.3"
CHANNELS: Final = ("v26.3",)

_ACCOUNT: Final = "gpu-operator"
_LABELS: Final = {"app": "gpu-operator", "app.kubernetes.io/component": "gpu-operator"}
_INSTALLS: Final = {"OwnNamespace": True, "SingleNamespace": True, "MultiNamespace": False, "AllNamespaces": False}


def manifests() -> list[Object]:
    """Return the objects of the bundle: its ClusterServiceVersion, and the definition of ClusterPolicy."""
    definition = json.loads((STUBS / "gpu-operator" / "crds" / "clusterpolicies.nvidia.com.json").read_text())
    return [_version(), definition]


def _version() -> Object:
    owned = {"name": "clusterpolicies.nvidia.com", "kind": "ClusterPolicy", "version": "v1"}
    pod: dict[str, Any] = {
        "serviceAccountName": _ACCOUNT,
        "priorityClassName": "system-node-critical",
        "containers": [
            {
                "name": "gpu-operator",
                "image": f"nvcr.io/nvidia/gpu-operator:v{VERSION}",
                "command": ["gpu-operator"],
                "args": ["--leader-elect"],
                "securityContext": {"allowPrivilegeEscalation": False},
                "volumeMounts": [{"name": "host-os-release", "mountPath": "/host-etc/os-release", "readOnly": True}],
            }
        ],
        "volumes": [{"name": "host-os-release", "hostPath": {"path": "/etc/os-release"}}],
    }
    deployment = {
        "replicas": 1,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": f"{PACKAGE}.v{VERSION}", "namespace": "placeholder"},
        "spec": {
            "displayName": "NVIDIA GPU Operator",
            "version": VERSION,
            "installModes": [{"type": mode, "supported": supported} for mode, supported in _INSTALLS.items()],
            "customresourcedefinitions": {"owned": [owned]},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": [{"serviceAccountName": _ACCOUNT, "rules": _rules()}],
                    "deployments": [{"name": "gpu-operator", "spec": deployment}],
                },
            },
        },
    }


def _rules() -> list[Object]:
    """Return the rights to mount a file of the node, and on its custom resources."""
    constraints = {"apiGroups": ["security.openshift.io"], "resources": ["securitycontextconstraints"]}
    policies = {"apiGroups": ["nvidia.com"], "resources": ["clusterpolicies", "clusterpolicies/status"]}
    return [
        {**constraints, "verbs": ["use"], "resourceNames": ["hostmount-anyuid"]},
        {**policies, "verbs": ["get", "list", "patch", "update", "watch"]},
    ]
