"""Programs of the platform on every node of a pool, and the right to label the node they run on, and no other.

RBAC cannot say "only your own node", and `patch` on nodes lets its holder taint or relabel the whole cluster. A
ValidatingAdmissionPolicy says it: the API server puts the name of a pod's node into its token
(kubernetes.io, concepts/security/service-accounts; on by default since Kubernetes 1.30), and the policy compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import pulumi

from components import names
from components.kubernetes.manifests import SKIP_AWAIT, Document, Manifest
from components.kubernetes.objects import checksum
from components.kubernetes.resources import Resources

NAMESPACE: Final = "mlbatch-nodes"
"""Where these programs run. It must allow privileged pods, or those that mount the node's folders."""

_FOLDER: Final = "/opt/node-agent"
_PACKAGE: Final = "components.nodes.agents"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_RBAC: Final = "rbac.authorization.k8s.io"
_NODE_CLAIM: Final = "authentication.kubernetes.io/node-name"


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A program of the package `components.nodes.agents`, and the pod that runs it.

    name: of all its objects. module: the program's, beside `node`.
    arguments: of the program. port: of its health endpoint.
    labels: names of the labels that it may write, or prefixes that end in `/`.
    node_selector, tolerations: which nodes it runs on.
    privileged: root with all rights on the node, in its process id namespace. Otherwise nobody, who can read.
    folders: of the node, mounted read-only at the same path; they have to exist.
    """

    name: str
    namespace: pulumi.Input[str]
    image: str
    module: str
    arguments: Sequence[str]
    port: int
    labels: Sequence[str]
    node_selector: Mapping[str, str]
    tolerations: Sequence[Mapping[str, str]]
    resources: Resources
    privileged: bool = False
    folders: Sequence[str] = ()


def install(agent: Agent, parent: pulumi.Resource) -> Manifest:
    """Register an agent's objects as a component's children; return its DaemonSet.

    The policy stands before the right that it narrows.
    """
    options = pulumi.ResourceOptions(parent=parent)
    policy = [Manifest(f"{agent.name}/{body['kind']}", body, options) for body in own_node_policy(agent)]
    rights = pulumi.ResourceOptions(parent=parent, depends_on=policy)
    foundation = [Manifest(f"{agent.name}/{body['kind']}", body, rights) for body in foundation_of(agent)]
    daemons = pulumi.ResourceOptions(parent=parent, depends_on=foundation)
    return Manifest(f"{agent.name}/DaemonSet", daemon_set(agent), daemons)


def own_node_policy(agent: Agent) -> Sequence[Document]:
    """Return the policy that holds an agent's account to labels of its own on its own node, and its binding."""
    claim = f"'{_NODE_CLAIM}'"
    may_write = " || ".join(
        f"name.startsWith('{label}')" if label.endswith("/") else f"name == '{label}'" for label in agent.labels
    )
    checks = {
        f"{agent.name} may only change the node that it runs on": (
            f"has(request.userInfo.extra) && {claim} in request.userInfo.extra && "
            f"request.userInfo.extra[{claim}][0] == object.metadata.name"
        ),
        f"{agent.name} may only change labels": (
            "object.spec == oldObject.spec && (has(object.metadata.annotations) ? object.metadata.annotations : {}) == "
            "(has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {})"
        ),
        f"{agent.name} may only write the labels {', '.join(agent.labels)}": (
            f"variables.now.all(name, {may_write} || "
            "(name in variables.before && variables.before[name] == variables.now[name])) && "
            f"variables.before.all(name, {may_write} || name in variables.now)"
        ),
    }
    user = pulumi.Output.concat(
        "request.userInfo.username == 'system:serviceaccount:", agent.namespace, ":", agent.name
    )
    metadata = {"name": agent.name}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    return [
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "matchConditions": [{"name": "account", "expression": pulumi.Output.concat(user, "'")}],
                "variables": [
                    {"name": "now", "expression": _labels_of("object")},
                    {"name": "before", "expression": _labels_of("oldObject")},
                ],
                "validations": [{"expression": check, "message": message} for message, check in checks.items()],
            },
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": agent.name, "validationActions": ["Deny"]},
        },
    ]


def foundation_of(agent: Agent) -> Sequence[Document]:
    """Return what an agent's pods need: account, rights and program."""
    local = {"name": agent.name, "namespace": agent.namespace}
    rights = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": local},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": agent.name},
            "rules": [rights],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": agent.name},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": agent.name},
            "subjects": [{"kind": "ServiceAccount", **local}],
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": local, "data": program(agent.module)},
    ]


def daemon_set(agent: Agent) -> Document:
    """Return the DaemonSet of an agent."""
    labels = {"app.kubernetes.io/name": agent.name}
    files = program(agent.module)
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        # A node that the agent cannot serve shows in its pod, and must not hold up everything else.
        "metadata": {
            "name": agent.name,
            "namespace": agent.namespace,
            "labels": labels,
            "annotations": dict(SKIP_AWAIT),
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {
                "metadata": {"annotations": checksum("".join(files.values())), "labels": labels},
                "spec": {
                    "serviceAccountName": agent.name,
                    "priorityClassName": names.SYSTEM_PRIORITY,
                    "nodeSelector": dict(agent.node_selector),
                    "tolerations": [dict(toleration) for toleration in agent.tolerations],
                    **_pod_security(agent),
                    "terminationGracePeriodSeconds": 5,
                    "containers": [_container(agent)],
                    "volumes": [_program_volume(agent), *(_volume(folder) for folder in agent.folders)],
                },
            },
        },
    }


def program(module: str) -> Mapping[str, str]:
    """Return the files of an agent's program: the module, and the one that all share."""
    package = resources.files(_PACKAGE)
    return {file: package.joinpath(file).read_text() for file in ("node.py", f"{module}.py")}


def _labels_of(node: str) -> str:
    return f"has({node}.metadata.labels) ? {node}.metadata.labels : {{}}"


def _pod_security(agent: Agent) -> Mapping[str, Any]:
    if agent.privileged:
        return {"hostPID": True}
    profile = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    return {"securityContext": profile}


def _container(agent: Agent) -> Document:
    probe = {"port": agent.port, "scheme": "HTTP"}
    security: dict[str, Any] = {"privileged": True, "readOnlyRootFilesystem": True}
    if not agent.privileged:
        security = {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
    return {
        "name": "agent",
        "image": agent.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", f"{_PACKAGE}.{agent.module}", *agent.arguments],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "PYTHONPATH", "value": _FOLDER},
            {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
        ],
        "ports": [{"containerPort": agent.port, "name": "health", "protocol": "TCP"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", **probe}, "initialDelaySeconds": 10, "periodSeconds": 30},
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}, "periodSeconds": 10},
        "resources": agent.resources.body(),
        "securityContext": security,
        "volumeMounts": [
            {"name": "program", "mountPath": _FOLDER, "readOnly": True},
            *({"name": _volume_name(folder), "mountPath": folder, "readOnly": True} for folder in agent.folders),
        ],
    }


def _program_volume(agent: Agent) -> Document:
    path = _PACKAGE.replace(".", "/")
    items = [{"key": file, "path": f"{path}/{file}"} for file in program(agent.module)]
    return {"name": "program", "configMap": {"name": agent.name, "items": items}}


def _volume(folder: str) -> Document:
    return {"name": _volume_name(folder), "hostPath": {"path": folder, "type": "Directory"}}


def _volume_name(folder: str) -> str:
    return "host" + folder.replace("/", "-")
