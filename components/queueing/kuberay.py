"""KubeRay: makes the pods of RayClusters and RayJobs.

Installed as MLBatch installs it (project-codeflare/mlbatch, `setup.k8s/kuberay`). Objects: ray-project/kuberay,
`ray-operator/config`; its role is upstream's, but that it leads by a lease of its own namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pulumi
import yaml

from components.artifacts import Release
from components.job_kinds import RAY_CLUSTER, RAY_JOB
from components.kubernetes.manifests import Document, Manifest, Manifests, ManifestsArgs
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.resources import Resources
from components.kubernetes.security import PodSecurity
from components.layer import Layer
from components.queueing.job_operators import (
    LOG_LEVEL,
    RESOURCES,
    JobOperator,
    account,
    budget,
    deployment,
    service,
)

NAME: Final = "kuberay-operator"
KINDS: Final = (RAY_CLUSTER.kind, RAY_JOB.kind)

_LABELS: Final = {"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/component": NAME}


@dataclass(frozen=True, kw_only=True)
class KubeRayArgs:
    """What to install.

    definitions: of Ray's three kinds, without any of which the operator does not start; the first one has the image,
        of the container `kuberay-operator`. role: upstream's ClusterRole.
    replicas: of which one leads. nodes: for services. pod_security: what judges its pods.
    """

    definitions: Sequence[Release]
    role: Release
    replicas: int = 1
    resources: Resources = RESOURCES
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS


class KubeRay(Layer):
    """Install the operator into mlbatch-system, which must exist."""

    kinds: ClassVar[Sequence[str]] = KINDS
    """Of jobs that it runs."""
    definitions: Sequence[pulumi.Resource]
    """The definitions of Ray's kinds, which Kueue looks for when it starts."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to create RayClusters and RayJobs."""

    def __init__(self, name: str, args: KubeRayArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:KubeRay", name, None, opts)
        text = "\n---\n".join(release.manifest for release in args.definitions)
        child = pulumi.ResourceOptions(parent=self)
        self.definitions = Manifests(f"{name}-definitions", ManifestsArgs(text=text), child).definitions
        made = pulumi.ResourceOptions(parent=self, depends_on=self.definitions)
        metrics = service(NAME, _LABELS, {"monitoring-port": (8080, 8080)})
        foundation = [
            Manifest(f"{name}/{document['kind']}", document, made)
            for document in (*account(NAME, cluster_rules(args.role)), metrics)
        ]
        operator = job_operator(args)
        works = pulumi.ResourceOptions(parent=self, depends_on=foundation)
        self.ready = [Manifest(f"{name}/Deployment", deployment(operator), works)]
        for document in budget(operator):
            Manifest(f"{name}/PodDisruptionBudget", document, made)
        self.register_outputs({})


def job_operator(args: KubeRayArgs) -> JobOperator:
    """Return the operator's pod. It leads by a lease also where it is alone, as upstream has it."""
    probe = {
        "httpGet": {"path": "/metrics", "port": "metrics", "scheme": "HTTP"},
        "initialDelaySeconds": 10,
        "periodSeconds": 5,
        "failureThreshold": 5,
    }
    return JobOperator(
        name=NAME,
        labels=_LABELS,
        image=args.definitions[0].images[NAME],
        arguments=[LOG_LEVEL],
        ports={"metrics": 8080},
        probes={"livenessProbe": probe, "readinessProbe": probe},
        replicas=args.replicas,
        resources=args.resources,
        nodes=args.nodes,
        pod_security=args.pod_security,
    )


def cluster_rules(role: Release) -> list[Document]:
    """Return the rules of upstream's role without those of leases, which it has by a role of its own namespace."""
    document = yaml.safe_load(role.manifest)
    return [rule for rule in document["rules"] if "leases" not in rule["resources"]]
