"""Common parts of schedulers that run next to the cluster's default one.

The cluster's built-in roles, which match its version, give them the rights of the default scheduler (kubernetes.io,
tasks/extend-kubernetes/configure-multiple-schedulers).
"""

from collections.abc import Mapping, Sequence
from typing import Final

import pulumi

from components.artifacts import Release
from components.kubernetes.controller import Controller, ControllerPods
from components.kubernetes.manifests import Document, Manifest, Manifests, ManifestsArgs, register_all
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.rbac import rule
from components.kubernetes.resources import Resources
from components.kubernetes.security import READ_ONLY
from components.layer import Layer

CONFIG_FILE: Final = "scheduler-config.yaml"
CONFIG_PATH: Final = f"/etc/kubernetes/{CONFIG_FILE}"

_BUILT_IN: Final = {"as-kube-scheduler": "system:kube-scheduler", "as-volume-scheduler": "system:volume-scheduler"}


class SecondScheduler(Layer):
    """A scheduler in its own namespace. It exports its name."""

    def _install(
        self,
        name: str,
        scheduler: Controller,
        releases: Sequence[Release],
        foundation: Sequence[Document],
        deployments: Sequence[Document],
        budgets: Sequence[Document],
    ) -> None:
        """Register the CRDs, then the foundation, then the Deployments and their PodDisruptionBudgets."""
        several = len(deployments) > 1
        child = pulumi.ResourceOptions(parent=self)
        space = namespace_body(NamespaceArgs(name=scheduler.namespace))
        namespace = Manifest(f"{name}/Namespace", space, child)
        definitions = Manifests(
            f"{name}-definitions",
            ManifestsArgs(text="\n---\n".join(release.manifest for release in releases)),
            child,
        )
        made = pulumi.ResourceOptions(parent=self, depends_on=[namespace, *definitions.definitions])
        works = pulumi.ResourceOptions(parent=self, depends_on=register_all(name, foundation, made, named=True))
        self.ready = register_all(name, deployments, works, named=several)
        register_all(name, budgets, made, named=several)
        self.register_outputs({"schedulerName": scheduler.name})


def configuration(
    name: str, namespace: str, pods: ControllerPods, plugins: Document, arguments: Mapping[str, Document]
) -> Document:
    """Return a scheduler's configuration (kubescheduler.config.k8s.io/v1). arguments: of plugins, by their names."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": pods.replicas > 1, "resourceNamespace": namespace, "resourceName": name},
        "profiles": [
            {
                "schedulerName": name,
                "plugins": plugins,
                "pluginConfig": [{"name": plugin, "args": args} for plugin, args in arguments.items()],
            }
        ],
    }


def scheduler_container(name: str, image: str, config_map: str, *, run: Document, resources: Resources) -> Document:
    """Return a scheduler's container. run: its command or its arguments. config_map: has its configuration."""
    probe = {"httpGet": {"path": "/healthz", "port": 10259, "scheme": "HTTPS"}}
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        **run,
        "livenessProbe": {**probe, "initialDelaySeconds": 15},
        "readinessProbe": {**probe, "periodSeconds": 2},
        "resources": resources.body(),
        "securityContext": dict(READ_ONLY),
        "volumeMounts": [{"name": config_map, "mountPath": "/etc/kubernetes", "readOnly": True}],
    }


def as_scheduler(program: Controller, prefix: str) -> list[Document]:
    """Return the rights to schedule pods, and to lead by a lease in its namespace.

    prefix: of the binding's name. With this binding, it reads how the API server authenticates clients.
    """
    reader = "extension-apiserver-authentication-reader"
    return [
        *(program.account.bound(role, name=f"{program.name}-{what}") for what, role in _BUILT_IN.items()),
        *leads_by(program, program.name, program.namespace),
        program.account.bound(reader, "kube-system", name=f"{prefix}::{reader}"),
    ]


def leads_by(program: Controller, lease: str, namespace: str) -> list[Document]:
    """Return the rights for one lease of a namespace and no other."""
    group, leases = "coordination.k8s.io", ["leases"]
    return program.account.granted(
        [rule(group, leases, ["create"]), rule(group, leases, ["get", "update"], [lease])], namespace
    )
