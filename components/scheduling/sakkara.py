"""Sakkara as a second scheduler: places the pods of a group close together in a tree of racks, blocks and nodes.

MLBatch marks it as experimental. Objects, names, plugins and numbers: project-codeflare/mlbatch, its chart
`tools/sakkara-deploy/sakkara-scheduler` 0.0.1. The topology: kubernetes-sigs/scheduler-plugins, `kep/4986-kep-sakkara`,
by its author atantawi. Its groups are the PodGroups of scheduler-plugins, packed at all levels.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

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
from components.scheduling import second_scheduler
from components.scheduling.second_scheduler import (
    CONFIG_FILE,
    CONFIG_PATH,
    SecondScheduler,
    as_scheduler,
    scheduler_container,
)

NAMESPACE: Final = "sakkara-scheduler"
"""Namespace of the topology, so that only the platform can change it."""
SCHEDULER: Final = "sakkara-scheduler"
"""Value of `schedulerName` in its pods."""
PLUGIN: Final = "ClusterTopologyPlacementGroup"
RESOURCES: Final = Resources(cpu_request="200m", memory_request="512Mi", cpu_limit="500m", memory_limit="512Mi")
TOPOLOGY: Final = "cluster-topology"

_POINTS: Final = ("preEnqueue", "queueSort", "postFilter", "preScore", "score", "reserve", "permit", "postBind")
_ALONE: Final = ("queueSort", "score")
"""Extension points without other plugins."""
_LABELS: Final = {
    "app.kubernetes.io/name": "sakkara",
    "app.kubernetes.io/instance": SCHEDULER,
    "component": "scheduler",
}

Tree: TypeAlias = Mapping[str, "Tree"]
"""Names of racks, blocks or nodes, each with its children. A node has none."""


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The topology of the nodes.

    levels: names of the tree's levels, from the top to the nodes.
    tree: has one level for each name.
    """

    levels: Sequence[str]
    tree: Tree


@dataclass(frozen=True, kw_only=True)
class SakkaraArgs:
    """The arguments of the scheduler.

    topology: None for a single level of nodes, where only CPUs and memory count for the placement.
    """

    pod_groups: Release
    image: str
    topology: Topology | None = None
    gpu_resource: str = names.GPU
    pods: ControllerPods = ONE_REPLICA


class Sakkara(SecondScheduler):
    """Install the scheduler, and the topology if there is one."""

    def __init__(self, name: str, args: SakkaraArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:scheduling:Sakkara", name, None, opts)
        program = _program(args)
        foundation = foundation_documents(args)
        self._install(name, program, [args.pod_groups], foundation, [scheduler(args)], program.budget())


def configuration(args: SakkaraArgs) -> Document:
    """Return the scheduler's configuration with the chart's values."""
    plugins: dict[str, Any] = {point: {"enabled": [{"name": PLUGIN}]} for point in _POINTS}
    plugins["score"]["enabled"] = [{"name": PLUGIN, "weight": 10}]
    for point in _ALONE:
        plugins[point]["disabled"] = [{"name": "*"}]
    arguments = {PLUGIN: {"topologyConfigMapNameSpace": NAMESPACE}}
    return second_scheduler.configuration(SCHEDULER, NAMESPACE, args.pods, plugins, arguments)


def foundation_documents(args: SakkaraArgs) -> list[Document]:
    """Return the service account with its rights, the configuration, the topology, and the quota for critical pods.

    Besides the rights of every scheduler, it writes ranks into labels of pods. It also writes the state of a group into
    the group's ConfigMap, which a member may have created.
    """
    program = _program(args)
    rules = [
        rule("scheduling.x-k8s.io", ["podgroups"], [*READ, "patch", "update"]),
        rule("", ["pods"], ["patch", "update"]),
        rule("", ["configmaps"], [*READ, "patch", "update"]),
    ]
    topology = [] if args.topology is None else [topology_config_map(args.topology, args.gpu_resource)]
    return [
        critical_pods(NAMESPACE),
        program.account.document(),
        *program.account.granted(rules),
        *as_scheduler(program, "sakkara"),
        config_map(SCHEDULER, NAMESPACE, {CONFIG_FILE: _config(args)}),
        *topology,
    ]


def topology_config_map(topology: Topology, gpu_resource: str) -> Document:
    """Return the topology in Sakkara's format: a name, resources, levels and tree, the last three as JSON.

    Sakkara reads it before it places each group, so a change needs no restart.
    """
    data = {
        "name": "cluster-tree",
        "resource-names": json.dumps([names.CPU, names.MEMORY, gpu_resource]),
        "level-names": json.dumps(list(topology.levels)),
        "tree": json.dumps(topology.tree),
    }
    return config_map(TOPOLOGY, NAMESPACE, data, {"sakkara.topology": ""})


def scheduler(args: SakkaraArgs) -> Document:
    """Return the scheduler's Deployment."""
    command = ["/bin/kube-scheduler", f"--config={CONFIG_PATH}", "--v=6"]
    container = scheduler_container("scheduler", args.image, SCHEDULER, run={"command": command}, resources=RESOURCES)
    return _program(args).deployment([container], [{"name": SCHEDULER, "configMap": {"name": SCHEDULER}}])


def _config(args: SakkaraArgs) -> str:
    return yaml.safe_dump(configuration(args), sort_keys=False)


def _program(args: SakkaraArgs) -> Controller:
    return Controller(
        name=SCHEDULER,
        namespace=NAMESPACE,
        labels=_LABELS,
        annotations=checksum(_config(args)),
        pods=args.pods,
    )
