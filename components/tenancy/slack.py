"""The slack queue: capacity that belongs to no team, is lent to all, and shrinks when nodes are lost.

Healthy, it lends everything. When nodes are cordoned, not ready, tainted, gone or reported by Autopilot, it lends less
by as much as was lost, so that no team misses its own quota (MLBatch QUOTA_MAINTENANCE.md); beyond it, idle teams lend
less. AppWrapper did this until 1.0; since 1.1 it does not, so the platform brings the controller. Kueue never takes
back what a lower limit no longer covers by itself: a job that starves is evicted, requeued and takes it back
(`waitForPodsReady`, components/queueing/kueue.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import names
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.node_pool import NodePool
from components.kubernetes.placement import ANYWHERE, RESCHEDULED, NodeGroup
from components.kubernetes.programs import API_CLIENT, ENVIRONMENT, FILES_FOLDER, Program
from components.kubernetes.resources import Resources
from components.kubernetes.security import READ_ONLY, PodSecurity, nobody
from components.kubernetes.volumes import volumes
from components.queueing.appwrapper import AUTOPILOT_TAINTS
from components.tenancy.quota import FlavorQuota, cluster_queue, offered

RESOURCES: Final = Resources(cpu_request="50m", memory_request="64Mi", cpu_limit="500m", memory_limit="128Mi")
CONTROLLER: Final = "slack-controller"
"""Name of all that the controller is made of, its account among them."""
LABELS: Final = {"app.kubernetes.io/name": CONTROLLER}
"""Of its pods."""
PORT_NAME: Final = "http"
"""Of probes and metrics."""
_SETTINGS: Final = "settings.json"
_PORT: Final = 8080


@dataclass(frozen=True, kw_only=True)
class SlackQueueArgs:
    """flavors: the slack capacity of each. cohort, covered, gpu_resource, kueue_api: as the teams'."""

    flavors: Sequence[FlavorQuota]
    cohort: str
    covered: Sequence[str] = names.RESOURCES
    gpu_resource: str = names.GPU
    kueue_api: str = names.KUEUE_API


class SlackQueue(pulumi.ComponentResource):
    """Create the slack ClusterQueue, which no namespace submits to.

    The program declares nominal quotas and never a lendingLimit, which the slack controller writes. The list that holds
    both is atomic in Kueue's API: whoever changes it owns it whole. An update of a quota therefore takes the list back,
    and with it the limits away; their controller sets them again within a second.
    """

    name: pulumi.Output[str]

    def __init__(self, name: str, args: SlackQueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:SlackQueue", name, None, opts)
        queue = Manifest(
            names.SLACK_QUEUE,
            cluster_queue(
                names.SLACK_QUEUE,
                flavors=args.flavors,
                cohort=args.cohort,
                namespaces=None,
                covered=args.covered,
                gpu_resource=args.gpu_resource,
                api=args.kueue_api,
            ),
            pulumi.ResourceOptions(parent=self),
        )
        self.name = queue.object_name
        self.register_outputs({"name": self.name})


@dataclass(frozen=True, kw_only=True)
class SlackControllerArgs:
    """What to watch over, and with what.

    queue: name of the slack queue. teams: names of the teams' queues.
    image: a Python 3.11 or later; the controller needs no package.
    health_seconds: for how long a node that was unusable has to be well before it counts again.
    gpu_resource: as which nodes offer GPUs. pools: the nodes of each flavor, which alone count, by the flavor's name.
    Of a pool without an autoscaler all nodes are always there, so that an absent one is lost.
    nodes: for services. pod_security: what judges its pod. kueue_api: the API version of the queues.
    """

    queue: str
    teams: Sequence[str]
    image: str
    health_seconds: float = 300
    gpu_resource: str = names.GPU
    pools: Sequence[NodePool]
    nodes: NodeGroup = ANYWHERE
    pod_security: PodSecurity = PodSecurity.STANDARDS
    resources: Resources = RESOURCES
    kueue_api: str = names.KUEUE_API


class SlackController(pulumi.ComponentResource):
    """Run the controller of the slack queue in mlbatch-system, which must exist.

    It moves the lending limits of the slack queue and, beyond that, of the teams' with the nodes. It evicts nobody and
    looks neither at jobs nor at pods.

    May read nodes and queues, and patch those queues alone. Runs one replica: while it moves to another node, limits
    stay as they were.
    """

    def __init__(self, name: str, args: SlackControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:SlackController", name, None, opts)
        foundation = [
            Manifest(f"{name}/{document['kind']}", document, pulumi.ResourceOptions(parent=self))
            for document in _foundation(args)
        ]
        Manifest(f"{name}/Deployment", _deployment(args), pulumi.ResourceOptions(parent=self, depends_on=foundation))
        self.register_outputs({})


def program(args: SlackControllerArgs) -> Program:
    """Return the controller's program with its settings."""
    settings = {
        "queue": args.queue,
        "apiVersion": args.kueue_api,
        "healthSeconds": args.health_seconds,
        "port": _PORT,
        "pools": [_rules(pool, args.gpu_resource) for pool in args.pools],
    }
    return Program(
        module="components.tenancy.slack_controller",
        shared=[API_CLIENT, "components.tenancy.lending"],
        files={_SETTINGS: json.dumps(settings, indent=2)},
    )


def _rules(pool: NodePool, gpu_resource: str) -> Mapping[str, Any]:
    """Return which nodes are a pool's, in the words of the controller (`lending.NodeRules`)."""
    scales = pool.minimum is not None
    shape = {offered(name, gpu_resource): str(amount) for name, amount in pool.shape.resources.items()}
    return {
        "name": pool.name,
        "resources": [gpu_resource, *(name for name in names.RESOURCES if name not in (names.GPU, names.PODS))],
        "labels": dict(pool.nodes.node_selector),
        "tolerations": [dict(toleration) for toleration in pool.nodes.tolerations],
        "taints": {
            gpu_resource: [
                taint for taint in AUTOPILOT_TAINTS[names.GPU] if taint["effect"] in ("NoSchedule", "NoExecute")
            ]
        },
        "most": pool.count if scales else 0,
        "least": pool.least if scales else 0,
        "shape": shape if scales else {},
    }


def _foundation(args: SlackControllerArgs) -> Sequence[Document]:
    group = "rbac.authorization.k8s.io"
    queues = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["clusterqueues"]}
    metadata = _metadata()
    cluster_metadata = {key: value for key, value in metadata.items() if key != "namespace"}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": cluster_metadata,
            "rules": [
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
                {**queues, "verbs": ["list", "watch"]},
                {**queues, "resourceNames": [args.queue, *args.teams], "verbs": ["patch"]},
            ],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": cluster_metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": CONTROLLER},
            "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": names.SYSTEM_NAMESPACE}],
        },
        program(args).config_map(CONTROLLER, names.SYSTEM_NAMESPACE, LABELS),
    ]


def _deployment(args: SlackControllerArgs) -> Document:
    code = program(args)
    files = code.volume(CONTROLLER)
    probe = {"port": _PORT, "scheme": "HTTP"}
    container: dict[str, Any] = {
        "name": "controller",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": code.command(f"{FILES_FOLDER}/{_SETTINGS}"),
        "env": list(ENVIRONMENT),
        "ports": [{"containerPort": _PORT, "name": PORT_NAME, "protocol": "TCP"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", **probe}, "initialDelaySeconds": 10, "periodSeconds": 20},
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}, "periodSeconds": 2},
        "resources": args.resources.body(),
        "securityContext": dict(READ_ONLY),
        "volumeMounts": [files.mount()],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"annotations": code.checksum(), "labels": LABELS},
                "spec": {
                    "serviceAccountName": CONTROLLER,
                    "priorityClassName": names.SYSTEM_PRIORITY,
                    **args.nodes.body(RESCHEDULED),
                    "securityContext": nobody(args.pod_security),
                    "terminationGracePeriodSeconds": 5,
                    "containers": [container],
                    "volumes": volumes([files]),
                },
            },
        },
    }


def _metadata() -> dict[str, Any]:
    return {
        "name": CONTROLLER,
        "namespace": names.SYSTEM_NAMESPACE,
        "labels": dict(LABELS),
    }
