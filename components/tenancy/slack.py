"""The slack queue: capacity of no team, lent to all teams, that shrinks when nodes are lost.

With healthy nodes it lends all its quota. A node is lost when it is cordoned, not ready, tainted, missing or reported
by Autopilot. The slack queue then lends less by the lost capacity, so that each team still gets its quota (MLBatch
QUOTA_MAINTENANCE.md). If more is lost, idle teams lend less too.

AppWrapper had this controller until 1.0, and has not had it since 1.1, so the platform installs its own. Kueue does not
reclaim quota when a limit is lowered. A starved job is evicted and requeued, and then reclaims it (`waitForPodsReady`,
components/queueing/kueue.py).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import names
from components.job_kinds import APPWRAPPER, POD
from components.kubernetes.controller import Controller, ControllerPods
from components.kubernetes.manifests import Document, Manifest, register_all
from components.kubernetes.node_pool import NodePool
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.program_job import RESOURCES
from components.kubernetes.programs import API_CLIENT, FILES_FOLDER, Program
from components.kubernetes.rbac import Account, rule
from components.kubernetes.resources import Resources
from components.kubernetes.security import PodSecurity
from components.queueing.appwrapper import AUTOPILOT_TAINTS
from components.tenancy.quota import FlavorQuota, cluster_queue, offered

CONTROLLER: Final = "slack-controller"
"""Name of all objects of the controller, including its service account."""
LABELS: Final = {"app.kubernetes.io/name": CONTROLLER}
"""Labels of the controller's pods."""
PORT_NAME: Final = "http"
"""Name of the port for probes and metrics."""
_SETTINGS: Final = "settings.json"
_PORT: Final = 8080


@dataclass(frozen=True, kw_only=True)
class SlackQueueArgs:
    """The arguments of the slack queue.

    flavors: the slack capacity of each flavor.
    cohort, covered, gpu_resource, kueue_api: the same as for the teams' queues.
    """

    flavors: Sequence[FlavorQuota]
    cohort: str
    covered: Sequence[str] = names.RESOURCES
    gpu_resource: str = names.GPU
    kueue_api: str = names.KUEUE_API


class SlackQueue(pulumi.ComponentResource):
    """Create the slack ClusterQueue. No namespace submits jobs to it.

    The program declares nominal quotas but no lendingLimit, because the slack controller writes it. The list with both
    is atomic in Kueue's API, so one writer owns all of it. An update of a quota therefore removes the limits, and the
    controller restores them within a second.
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
    """The arguments of the slack controller.

    queue: name of the slack queue.
    teams: names of the teams' queues.
    image: an image with Python 3.11 or later. The controller needs no packages.
    health_seconds: seconds that a node must be healthy before it counts again.
    gpu_resource: resource name under which nodes offer GPUs.
    pools: nodes of each flavor, by the flavor's name. Other nodes do not count. In a pool without an autoscaler, a
    missing node counts as lost.
    pod_security: mechanism that checks the controller's pod.
    kueue_api: API version of the queues.
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

    It adjusts the lending limits of the slack queue to the nodes, and those of the teams if that is not enough. It does
    not evict jobs. It also frees the quota of AppWrappers that have no pods and cannot delete their objects, because
    somebody creates these again (`ending_jobs`).

    It may read nodes, queues, AppWrappers and pods, and patch these queues and the status of AppWrappers. It has one
    replica. While that moves to another node, the limits do not change.
    """

    def __init__(self, name: str, args: SlackControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:SlackController", name, None, opts)
        foundation = register_all(name, _foundation(args), pulumi.ResourceOptions(parent=self))
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
        shared=[
            API_CLIENT,
            "components.kubernetes.followed",
            "components.tenancy.ending_jobs",
            "components.tenancy.lending",
        ],
        files={_SETTINGS: json.dumps(settings, indent=2)},
    )


def _rules(pool: NodePool, gpu_resource: str) -> Mapping[str, Any]:
    """Return the rules for a pool's nodes in the controller's format (`lending.NodeRules`)."""
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
    queues = ["clusterqueues"]
    rules = [
        rule("", ["nodes"], ["list", "watch"]),
        rule(names.KUEUE_GROUP, queues, ["list", "watch"]),
        rule(APPWRAPPER.group, [APPWRAPPER.plural], ["list", "watch"]),
        rule(APPWRAPPER.group, [f"{APPWRAPPER.plural}/status"], ["patch"]),
        rule("", [POD.plural], ["list"]),
        rule(names.KUEUE_GROUP, queues, ["patch"], [args.queue, *args.teams]),
    ]
    account = Account(name=CONTROLLER, namespace=names.SYSTEM_NAMESPACE, labels=LABELS)
    files = program(args).config_map(CONTROLLER, names.SYSTEM_NAMESPACE, LABELS)
    return [account.document(), *account.granted(rules), files]


def _deployment(args: SlackControllerArgs) -> Document:
    code = program(args)
    probe = {"port": _PORT, "scheme": "HTTP"}
    served = {
        "ports": [{"containerPort": _PORT, "name": PORT_NAME, "protocol": "TCP"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", **probe}, "initialDelaySeconds": 10, "periodSeconds": 20},
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}, "periodSeconds": 2},
    }
    controller = Controller(
        name=CONTROLLER,
        namespace=names.SYSTEM_NAMESPACE,
        labels=LABELS,
        annotations=code.checksum(),
        pods=ControllerPods(nodes=args.nodes, pod_security=args.pod_security),
    )
    return controller.of_program(code, args.image, [f"{FILES_FOLDER}/{_SETTINGS}"], args.resources, **served)
