"""Programs of the platform on each node of a pool. Each may label only its own node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import names
from components.kubernetes import own_node, workloads
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.own_node import OwnNodeAccount
from components.kubernetes.placement import NodeGroup
from components.kubernetes.programs import API_CLIENT, OWN_NODE, Program
from components.kubernetes.resources import Resources
from components.kubernetes.security import NOBODY, READ_ONLY
from components.kubernetes.volumes import Volume, host_folder, volumes

NAMESPACE: Final = "mlbatch-nodes"
"""Namespace of these programs. It must allow privileged pods, or pods that mount the node's folders."""


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A program that uses `components.nodes.agents.node`, and its pod.

    name: of all its objects.
    module: dotted name of the program, in any package.
    shared: dotted names of other modules that it imports.
    labels: names of the labels that it may write, or prefixes that end in `/`.
    privileged: it runs as root with all rights on the node, in its process ID namespace. Otherwise it runs as an
    unprivileged user and only reads.
    folders: folders of the node, mounted read-only at the same path. They must exist.
    variables: environment variables besides the node's name.
    """

    name: str
    namespace: pulumi.Input[str]
    image: str
    module: str
    shared: Sequence[str] = ()
    arguments: Sequence[str]
    port: int
    labels: Sequence[str]
    nodes: NodeGroup
    resources: Resources
    privileged: bool = False
    folders: Sequence[str] = ()
    variables: Sequence[Mapping[str, Any]] = ()


def install(agent: Agent, parent: pulumi.Resource) -> Manifest:
    """Register an agent's objects as a component's children and return its DaemonSet."""
    account = OwnNodeAccount(
        name=agent.name,
        namespace=agent.namespace,
        cluster_name=agent.name,
        who=agent.name,
        labels=agent.labels,
    )
    files = Manifest(
        f"{agent.name}/ConfigMap",
        program(agent).config_map(agent.name, agent.namespace),
        pulumi.ResourceOptions(parent=parent),
    )
    foundation = [*own_node.register(account, agent.name, parent), files]
    daemons = pulumi.ResourceOptions(parent=parent, depends_on=foundation)
    return Manifest(f"{agent.name}/DaemonSet", daemon_set(agent), daemons)


def program(agent: Agent) -> Program:
    """Return an agent's program."""
    return Program(module=agent.module, shared=["components.nodes.agents.node", API_CLIENT, *agent.shared])


def daemon_set(agent: Agent) -> Document:
    """Return the DaemonSet of an agent."""
    code = program(agent)
    folders = [host_folder(f"host{folder.replace('/', '-')}", folder, read_only=True) for folder in agent.folders]
    mounted = [code.volume(agent.name), *folders]
    pod = {
        "serviceAccountName": agent.name,
        "priorityClassName": names.SYSTEM_PRIORITY,
        **agent.nodes.body(),
        **({"hostPID": True} if agent.privileged else {"securityContext": dict(NOBODY)}),
        "terminationGracePeriodSeconds": 5,
        "containers": [_container(agent, code, mounted)],
        "volumes": volumes(mounted),
    }
    labels = {"app.kubernetes.io/name": agent.name}
    return workloads.daemon_set(
        agent.name, agent.namespace, labels, pod, unavailable="10%", pod_annotations=code.checksum()
    )


def _container(agent: Agent, code: Program, mounted: Sequence[Volume]) -> Document:
    probe = {"port": agent.port, "scheme": "HTTP"}
    privileged = {"privileged": True, "readOnlyRootFilesystem": True}
    container = code.container("agent", agent.image, agent.arguments, agent.resources, mounted, [OWN_NODE])
    return {
        **container,
        "env": [*container["env"], *map(dict, agent.variables)],
        "ports": [{"containerPort": agent.port, "name": "health", "protocol": "TCP"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", **probe}, "initialDelaySeconds": 10, "periodSeconds": 30},
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}, "periodSeconds": 10},
        "securityContext": privileged if agent.privileged else dict(READ_ONLY),
    }
