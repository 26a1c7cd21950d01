"""scheduler-plugins as a second scheduler: fills nodes with GPUs, and binds the pods of a PodGroup together.

It runs beside the cluster's own scheduler, which places every pod that does not ask for this one. Both bind to the same
nodes; where they take the same room at once, the node's kubelet refuses the later pod, and its job makes a new one.

Objects and names: kubernetes-sigs/scheduler-plugins, its chart `manifests/install/charts/as-a-second-scheduler`.
Arguments of the plugins: project-codeflare/mlbatch, `setup.k8s/CLUSTER-SETUP.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import yaml

from components import names
from components.artifacts import Release
from components.kubernetes.manifests import Document, Manifest, Manifests, ManifestsArgs
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.objects import checksum, config_map
from components.kubernetes.placement import ANYWHERE, RESCHEDULED, NodeGroup
from components.kubernetes.resource_quota import critical_pods
from components.kubernetes.resources import Resources
from components.kubernetes.security import READ_ONLY, PodSecurity, nobody
from components.layer import Layer

NAMESPACE: Final = "scheduler-plugins"
SCHEDULER: Final = "scheduler-plugins-scheduler"
"""What a pod's `schedulerName` says to be placed by it."""
CONTROLLER: Final = "scheduler-plugins-controller"

SCHEDULER_RESOURCES: Final = Resources(cpu_request="100m", memory_request="128Mi", cpu_limit="1", memory_limit="1Gi")
CONTROLLER_RESOURCES: Final = Resources(
    cpu_request="50m", memory_request="64Mi", cpu_limit="500m", memory_limit="512Mi"
)
PERMIT_SECONDS: Final = 300

_RBAC: Final = "rbac.authorization.k8s.io"
_SCHEDULER_LABELS: Final = {"component": "scheduler"}
_CONTROLLER_LABELS: Final = {"app": CONTROLLER}
_CONFIG_MAP: Final = "scheduler-config"
_CONFIG_FILE: Final = "scheduler-config.yaml"
_CONFIG_FOLDER: Final = "/etc/kubernetes"
_SCHEDULER_PORT: Final = 10259
_CONTROLLER_PORT: Final = 8081
_READ: Final = ("get", "list", "watch")


@dataclass(frozen=True, kw_only=True)
class CoschedulingArgs:
    """What to install.

    releases: the definitions of PodGroup and ElasticQuota; the first one has the images, of the containers `scheduler`
        and `controller`.
    gpu_resource: as which nodes offer the GPUs that they are filled by.
    permit_seconds: for how long the pods of a gang hold their places while others of it are missing.
    replicas: of both; with several, one leads. nodes: for services. pod_security: what judges their pods.
    """

    releases: Sequence[Release]
    gpu_resource: str = names.GPU
    permit_seconds: int = PERMIT_SECONDS
    replicas: int = 1
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS


class Coscheduling(Layer):
    """Install the scheduler, and the controller that keeps the status of PodGroups.

    Of upstream's four plugins one is on. CapacityScheduling counts quotas, which Kueue does; NodeResourceTopologyMatch
    needs an agent on each node; NodeResourcesAllocatable prefers nodes by their size, against the packing.
    The controller starts only where ElasticQuota is defined too, and none is made.
    """

    ready: Sequence[pulumi.Resource]
    """Depend on these to create PodGroups, and pods that ask for this scheduler."""

    def __init__(self, name: str, args: CoschedulingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:scheduling:Coscheduling", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        namespace = Manifest(f"{name}/Namespace", namespace_body(NamespaceArgs(name=NAMESPACE)), child)
        definitions = Manifests(
            f"{name}-definitions",
            ManifestsArgs(text="\n---\n".join(release.manifest for release in args.releases)),
            child,
        )
        made = pulumi.ResourceOptions(parent=self, depends_on=[namespace, *definitions.definitions])
        foundation = [
            Manifest(f"{name}/{document['kind']}/{document['metadata']['name']}", document, made)
            for document in foundation_documents(args)
        ]
        works = pulumi.ResourceOptions(parent=self, depends_on=foundation)
        self.ready = [
            Manifest(f"{name}/Deployment/{document['metadata']['name']}", document, works)
            for document in (scheduler(args), controller(args))
        ]
        for document in budgets(args):
            Manifest(f"{name}/PodDisruptionBudget/{document['metadata']['name']}", document, made)
        self.register_outputs({"schedulerName": SCHEDULER})


def configuration(args: CoschedulingArgs) -> Mapping[str, Any]:
    """Return the scheduler's configuration (kubescheduler.config.k8s.io/v1).

    Packing counts for one of the many scores of a node, and loses against those that spread pods: resources in balance,
    pods of a Service on different nodes, images that are there already. They are off; what a pod or a node's health
    asks for (affinities, taints, constraints of its own) still weighs more than packing.
    """
    fit = {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": [{"name": args.gpu_resource, "weight": 1}],
            "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
        }
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": args.replicas > 1,
            "resourceNamespace": NAMESPACE,
            "resourceName": SCHEDULER,
        },
        "profiles": [
            {
                "schedulerName": SCHEDULER,
                "plugins": {
                    "multiPoint": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]},
                    "score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}, {"name": "ImageLocality"}]},
                },
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": fit},
                    {"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": args.permit_seconds}},
                    {"name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": []}},
                ],
            }
        ],
    }


def foundation_documents(args: CoschedulingArgs) -> list[Document]:
    """Return the accounts, what they may do, the configuration, and what lets the pods be critical.

    By the cluster's built-in roles, which fit its version, the scheduler may what Kubernetes' own one may
    (kubernetes.io, tasks/extend-kubernetes/configure-multiple-schedulers).
    """
    groups = {"apiGroups": ["scheduling.x-k8s.io"]}
    return [
        critical_pods(NAMESPACE),
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": NAMESPACE}}
            for account in (SCHEDULER, CONTROLLER)
        ),
        _role(SCHEDULER, [{**groups, "resources": ["podgroups"], "verbs": list(_READ)}]),
        _role(
            CONTROLLER,
            [
                {"apiGroups": [""], "resources": ["pods"], "verbs": list(_READ)},
                {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
                {**groups, "resources": ["podgroups", "elasticquotas"], "verbs": [*_READ, "patch"]},
                {**groups, "resources": ["podgroups/status", "elasticquotas/status"], "verbs": ["patch"]},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"]},
            ],
        ),
        _bound(SCHEDULER, SCHEDULER, SCHEDULER),
        _bound(f"{SCHEDULER}-as-kube-scheduler", "system:kube-scheduler", SCHEDULER),
        _bound(f"{SCHEDULER}-as-volume-scheduler", "system:volume-scheduler", SCHEDULER),
        _bound(CONTROLLER, CONTROLLER, CONTROLLER),
        _lease_role(),
        _bound_in(NAMESPACE, SCHEDULER, SCHEDULER, SCHEDULER),
        _bound_in(
            "kube-system",
            "sched-plugins::extension-apiserver-authentication-reader",
            "extension-apiserver-authentication-reader",
            SCHEDULER,
        ),
        config_map(_CONFIG_MAP, NAMESPACE, {_CONFIG_FILE: _text(args)}),
    ]


def scheduler(args: CoschedulingArgs) -> Document:
    """Return the scheduler's Deployment."""
    probe = {"httpGet": {"path": "/healthz", "port": _SCHEDULER_PORT, "scheme": "HTTPS"}}
    container = {
        "name": SCHEDULER,
        "image": args.releases[0].images["scheduler"],
        "args": [f"--config={_CONFIG_FOLDER}/{_CONFIG_FILE}"],
        "livenessProbe": {**probe, "initialDelaySeconds": 15},
        "readinessProbe": {**probe, "periodSeconds": 2},
        "resources": SCHEDULER_RESOURCES.body(),
        "volumeMounts": [{"name": _CONFIG_MAP, "mountPath": _CONFIG_FOLDER, "readOnly": True}],
    }
    volume = {"name": _CONFIG_MAP, "configMap": {"name": _CONFIG_MAP}}
    return _deployment(SCHEDULER, _SCHEDULER_LABELS, container, args, [volume], checksum(_text(args)))


def controller(args: CoschedulingArgs) -> Document:
    """Return the Deployment of the PodGroups' controller."""
    probe = {"port": _CONTROLLER_PORT, "scheme": "HTTP"}
    container = {
        "name": CONTROLLER,
        "image": args.releases[0].images["controller"],
        **({"args": ["--enableLeaderElection"]} if args.replicas > 1 else {}),
        "livenessProbe": {"httpGet": {"path": "/healthz", **probe}, "initialDelaySeconds": 15},
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}, "periodSeconds": 2},
        "resources": CONTROLLER_RESOURCES.body(),
    }
    return _deployment(CONTROLLER, _CONTROLLER_LABELS, container, args)


def budgets(args: CoschedulingArgs) -> list[Document]:
    """Return what keeps one replica of each while nodes are drained. A single one has none, for it has to move."""
    if args.replicas == 1:
        return []
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": dict(labels)}},
        }
        for name, labels in ((SCHEDULER, _SCHEDULER_LABELS), (CONTROLLER, _CONTROLLER_LABELS))
    ]


def _deployment(
    name: str,
    labels: Mapping[str, str],
    container: Document,
    args: CoschedulingArgs,
    volumes: Sequence[Document] = (),
    annotations: Mapping[str, str] | None = None,
) -> Document:
    apart = {
        "maxSkew": 1,
        "topologyKey": names.HOST,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(labels)},
    }
    hardened = {**container, "imagePullPolicy": "IfNotPresent", "securityContext": dict(READ_ONLY)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels)},
        "spec": {
            "replicas": args.replicas,
            "selector": {"matchLabels": dict(labels)},
            "template": {
                "metadata": {"labels": dict(labels), **({"annotations": dict(annotations)} if annotations else {})},
                "spec": {
                    "serviceAccountName": name,
                    "priorityClassName": names.SYSTEM_PRIORITY,
                    **args.nodes.body(RESCHEDULED),
                    **({"topologySpreadConstraints": [apart]} if args.replicas > 1 else {}),
                    "securityContext": nobody(args.pod_security),
                    "containers": [hardened],
                    **({"volumes": list(volumes)} if volumes else {}),
                },
            },
        },
    }


def _role(name: str, rules: Sequence[Document]) -> Document:
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}


def _lease_role() -> Document:
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": SCHEDULER, "namespace": NAMESPACE},
        "rules": [
            {**lease, "verbs": ["create"]},
            {**lease, "resourceNames": [SCHEDULER], "verbs": ["get", "update"]},
        ],
    }


def _bound(name: str, role: str, account: str) -> Document:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }


def _bound_in(namespace: str, name: str, role: str, account: str) -> Document:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }


def _text(args: CoschedulingArgs) -> str:
    return yaml.safe_dump(configuration(args), sort_keys=False)
