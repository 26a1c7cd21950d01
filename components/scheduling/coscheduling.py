"""scheduler-plugins as a second scheduler: fills nodes with GPUs, and binds the pods of a PodGroup together.

It runs next to the cluster's default scheduler, which places all pods that do not name this one. Both bind pods to the
same nodes. If both use the same free resources at once, the node's kubelet rejects the later pod, and its job creates a
new one.

Objects and names: kubernetes-sigs/scheduler-plugins, its chart `manifests/install/charts/as-a-second-scheduler`.
Arguments of the plugins: project-codeflare/mlbatch, `setup.k8s/CLUSTER-SETUP.md`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pulumi
import yaml

from components import names
from components.artifacts import Release
from components.kubernetes.controller import ONE_REPLICA, Controller, ControllerPods
from components.kubernetes.manifests import Document
from components.kubernetes.objects import checksum, config_map
from components.kubernetes.rbac import READ, rule
from components.kubernetes.resource_quota import critical_pods
from components.kubernetes.resources import Resources
from components.kubernetes.security import READ_ONLY
from components.scheduling import second_scheduler
from components.scheduling.second_scheduler import (
    CONFIG_FILE,
    CONFIG_PATH,
    SecondScheduler,
    as_scheduler,
    leads_by,
    scheduler_container,
)

NAMESPACE: Final = "scheduler-plugins"
SCHEDULER: Final = "scheduler-plugins-scheduler"
"""Value of `schedulerName` in its pods."""
CONTROLLER: Final = "scheduler-plugins-controller"
CONFIG_MAP: Final = "scheduler-config"
SCHEDULER_LABELS: Final = {"component": "scheduler"}

SCHEDULER_RESOURCES: Final = Resources(cpu_request="100m", memory_request="128Mi", cpu_limit="1", memory_limit="1Gi")
CONTROLLER_RESOURCES: Final = Resources(
    cpu_request="50m", memory_request="64Mi", cpu_limit="500m", memory_limit="512Mi"
)
PERMIT_SECONDS: Final = 300
RETRY_SECONDS: Final = 60
"""Seconds until an unschedulable pod is retried without any event, plus at most 30 s (kube-scheduler's default is 300).
Coscheduling rejects a whole gang, and registers only for new pods and PodGroups (`EventsToRegister` in
pkg/coscheduling/coscheduling.go, v0.34.7). It does not see recovered nodes or deleted pods."""

_CONTROLLER_LABELS: Final = {"app": CONTROLLER}
_CONTROLLER_PORT: Final = 8081
_CONTROLLER_LEASE: Final = "sched-plugins-controllers"
_CONTROL_PLANE: Final = "kube-system"
"""Namespace of the controller's lease, which also has the leases of Kubernetes' controllers. It must not change those
(cmd/controller/app/server.go)."""


@dataclass(frozen=True, kw_only=True)
class CoschedulingArgs:
    """The arguments of the scheduler.

    releases: the CRDs of PodGroup and ElasticQuota. The first one has the images of the containers `scheduler` and
    `controller`.
    gpu_resource: resource name for GPUs. Nodes are filled by it.
    permit_seconds: how long the pods of a gang keep their places while others are missing.
    pods: of both programs.
    """

    releases: Sequence[Release]
    gpu_resource: str = names.GPU
    permit_seconds: int = PERMIT_SECONDS
    pods: ControllerPods = ONE_REPLICA


class Coscheduling(SecondScheduler):
    """Install the scheduler, and the controller that updates the status of PodGroups.

    One of upstream's four plugins is enabled. CapacityScheduling counts quotas, which Kueue does.
    NodeResourceTopologyMatch needs an agent on each node. NodeResourcesAllocatable prefers nodes by size, which
    conflicts with packing. The controller starts only if the CRD of ElasticQuota exists too. No ElasticQuota is
    created.
    """

    def __init__(self, name: str, args: CoschedulingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:scheduling:Coscheduling", name, None, opts)
        deployments = (scheduler(args), controller(args))
        self._install(name, _scheduler(args), args.releases, foundation_documents(args), deployments, budgets(args))


def configuration(args: CoschedulingArgs) -> Document:
    """Return the scheduler's configuration.

    Packing is one of many scores of a node. The scores that spread pods would outweigh it: balanced resources, pods of
    a Service on different nodes, images on the node. They are off. The requirements of pods and nodes (affinities,
    taints, the pods' own constraints) still weigh more than packing.
    """
    fit = {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": [{"name": args.gpu_resource, "weight": 1}],
            "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
        }
    }
    plugins = {
        "multiPoint": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]},
        "score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}, {"name": "ImageLocality"}]},
    }
    arguments: dict[str, Document] = {
        "NodeResourcesFit": fit,
        "Coscheduling": {"permitWaitingTimeSeconds": args.permit_seconds},
        "PodTopologySpread": {"defaultingType": "List", "defaultConstraints": []},
    }
    return second_scheduler.configuration(SCHEDULER, NAMESPACE, args.pods, plugins, arguments)


def foundation_documents(args: CoschedulingArgs) -> list[Document]:
    """Return the service accounts with their rights, the configuration, and the quota for critical pods."""
    group = "scheduling.x-k8s.io"
    schedules, controls = _scheduler(args), _controller(args)
    return [
        critical_pods(NAMESPACE),
        schedules.account.document(),
        controls.account.document(),
        *schedules.account.granted([rule(group, ["podgroups"], READ)]),
        *controls.account.granted(
            [
                rule("", ["pods"], READ),
                rule("", ["events"], ["create", "patch"]),
                rule(group, ["podgroups", "elasticquotas"], [*READ, "patch"]),
                rule(group, ["podgroups/status", "elasticquotas/status"], ["patch"]),
            ]
        ),
        *(leads_by(controls, _CONTROLLER_LEASE, _CONTROL_PLANE) if args.pods.replicas > 1 else ()),
        *as_scheduler(schedules, "sched-plugins"),
        config_map(CONFIG_MAP, NAMESPACE, {CONFIG_FILE: _config(args)}),
    ]


def scheduler(args: CoschedulingArgs) -> Document:
    """Return the scheduler's Deployment."""
    arguments = [f"--config={CONFIG_PATH}", f"--pod-max-in-unschedulable-pods-duration={RETRY_SECONDS}s"]
    container = scheduler_container(
        SCHEDULER,
        args.releases[0].images["scheduler"],
        CONFIG_MAP,
        run={"args": arguments},
        resources=SCHEDULER_RESOURCES,
    )
    return _scheduler(args).deployment([container], [{"name": CONFIG_MAP, "configMap": {"name": CONFIG_MAP}}])


def controller(args: CoschedulingArgs) -> Document:
    """Return the Deployment of the controller of PodGroups."""
    probe = {"port": _CONTROLLER_PORT, "scheme": "HTTP"}
    container = {
        "name": CONTROLLER,
        "image": args.releases[0].images["controller"],
        "imagePullPolicy": "IfNotPresent",
        **({"args": ["--enableLeaderElection"]} if args.pods.replicas > 1 else {}),
        "livenessProbe": {"httpGet": {"path": "/healthz", **probe}, "initialDelaySeconds": 15},
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}, "periodSeconds": 2},
        "resources": CONTROLLER_RESOURCES.body(),
        "securityContext": dict(READ_ONLY),
    }
    return _controller(args).deployment([container])


def budgets(args: CoschedulingArgs) -> list[Document]:
    """Return the PodDisruptionBudgets that keep one replica of each while nodes are drained."""
    return [*_scheduler(args).budget(), *_controller(args).budget()]


def _config(args: CoschedulingArgs) -> str:
    return yaml.safe_dump(configuration(args), sort_keys=False)


def _scheduler(args: CoschedulingArgs) -> Controller:
    return replace(_program(args, SCHEDULER, SCHEDULER_LABELS), annotations=checksum(_config(args)))


def _controller(args: CoschedulingArgs) -> Controller:
    return _program(args, CONTROLLER, _CONTROLLER_LABELS)


def _program(args: CoschedulingArgs, name: str, labels: Mapping[str, str]) -> Controller:
    return Controller(name=name, namespace=NAMESPACE, labels=labels, pods=args.pods)
