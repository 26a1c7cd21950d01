"""The namespace of health checks, and the account that writes their verdicts on nodes.

RBAC knows nodes as a whole: who may patch one may cordon, relabel and taint all. An admission policy narrows the
account down to the checks' own labels, annotations and taints, of the node that its pod runs on: the API server takes
the node's name from the pod's token (Kubernetes 1.30 and later, by default).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.layer import Layer
from components.queueing.appwrapper import AUTOPILOT_TAINTS

NAMESPACE: Final = "mlbatch-health"
ACCOUNT: Final = "health-reporter"
POLICY: Final = "mlbatch-health-reporter"

NODE_CHECK: Final = "node-check"
NCCL_GATE: Final = "nccl-gate"
CHECKS: Final = (NODE_CHECK, NCCL_GATE)
TAINTS: Final = {NODE_CHECK: "aznhc", NCCL_GATE: "nccl-gate"}
"""Keys of the taints of failed nodes; `aznhc` is that of edwardsp/ai-on-aks."""
TAINT_VALUE: Final = "failed"
QUEUE_LABEL: Final = next(iter(AUTOPILOT_TAINTS.values()))[0]["key"]
"""The label of Autopilot, which AppWrapper and the slack controller watch."""
QUEUE_VALUES: Final = {"NoSchedule": "ERR", "NoExecute": "EVICT"}
"""What the label says for a taint's effect: keep jobs away, or move them away as well."""

_GROUP: Final = "rbac.authorization.k8s.io"
_NODE_CLAIM: Final = "authentication.kubernetes.io/node-name"


def state_label(check: str) -> str:
    """Return the label with a check's state: pass, warn, fail or unknown."""
    return f"mlbatch/{check}"


def report_annotation(check: str) -> str:
    """Return the annotation with a check's last report."""
    return f"mlbatch/{check}-report"


@dataclass(frozen=True, kw_only=True)
class ReporterArgs:
    """writes: whether verdicts are written on nodes at all; without it there is no account."""

    writes: bool = True


class Reporter(Layer):
    """Create the checks' namespace and, where verdicts are written, their account with its policy."""

    namespace: pulumi.Output[str]

    ready: Sequence[pulumi.Resource]
    """Depend on these to run checks."""

    def __init__(self, name: str, args: ReporterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:health:Reporter", name, None, opts)
        # The node check reads the host's kernel log, which no stricter level allows.
        body = namespace_body(NamespaceArgs(name=NAMESPACE, privileged=True))
        namespace = Manifest(f"{name}/Namespace", body, pulumi.ResourceOptions(parent=self))
        self.namespace = namespace.object_name
        registered = [namespace]
        for document in account(self.namespace) if args.writes else []:
            # Each waits for the one before: the permission to patch nodes comes last, when the policy is in force.
            registered.append(
                Manifest(
                    f"{name}/{document['kind']}",
                    document,
                    pulumi.ResourceOptions(parent=self, depends_on=[registered[-1]]),
                )
            )
        self.ready = registered
        self.register_outputs({"namespace": self.namespace})


def account(namespace: pulumi.Input[str]) -> list[Document]:
    """Return the account, its policy and its permissions, in the order of their creation."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}},
        policy(),
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": POLICY},
            "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
        },
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": POLICY},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}],
        },
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": POLICY},
            "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": POLICY},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
    ]


def policy() -> Document:
    """Return the policy. It holds for the account alone, and refuses while it cannot be evaluated."""
    labels = [*(state_label(check) for check in CHECKS), QUEUE_LABEL]
    annotations = [report_annotation(check) for check in CHECKS]
    taints = list(TAINTS.values())
    kept = " && ".join(
        _old_and_new(path, empty)
        for path, empty in (
            ("spec.?unschedulable", "false"),
            ("spec.?providerID", "''"),
            ("spec.?podCIDR", "''"),
            ("metadata.?finalizers", "[]"),
            ("metadata.?ownerReferences", "[]"),
        )
    )
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["UPDATE"],
                        "resources": ["nodes"],
                        "scope": "*",
                    }
                ],
            },
            "matchConditions": [
                {
                    "name": "health-reporter",
                    "expression": f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:{ACCOUNT}'",
                }
            ],
            "variables": [
                _variable("labels", "object.metadata.?labels.orValue({})"),
                _variable("oldLabels", "oldObject.metadata.?labels.orValue({})"),
                _variable("annotations", "object.metadata.?annotations.orValue({})"),
                _variable("oldAnnotations", "oldObject.metadata.?annotations.orValue({})"),
                _variable("taints", _other_taints("object", taints)),
                _variable("oldTaints", _other_taints("oldObject", taints)),
            ],
            "validations": [
                _rule(
                    f"request.userInfo.?extra[?'{_NODE_CLAIM}'].orValue([]) == [object.metadata.name]",
                    "a health check may change the node that it runs on, and no other",
                ),
                _rule(_same("labels", "oldLabels", labels), "a health check may change its own labels only"),
                _rule(
                    _same("annotations", "oldAnnotations", annotations),
                    "a health check may change its own annotations only",
                ),
                _rule("variables.taints == variables.oldTaints", "a health check may change its own taints only"),
                _rule(kept, "a health check may not cordon a node or change what it belongs to"),
            ],
        },
    }


def _variable(name: str, expression: str) -> dict[str, Any]:
    return {"name": name, "expression": expression}


def _rule(expression: str, message: str) -> dict[str, Any]:
    return {"expression": expression, "message": message}


def _other_taints(node: str, own: Sequence[str]) -> str:
    return f"{node}.spec.?taints.orValue([]).filter(taint, !(taint.key in {_list(own)}))"


def _same(now: str, before: str, own: Sequence[str]) -> str:
    """Return the expression for two maps that differ in some keys only."""
    new, old, keys = f"variables.{now}", f"variables.{before}", _list(own)
    return (
        f"{new}.all(key, key in {keys} || (key in {old} && {new}[key] == {old}[key])) && "
        f"{old}.all(key, key in {keys} || key in {new})"
    )


def _old_and_new(path: str, empty: str) -> str:
    return f"object.{path}.orValue({empty}) == oldObject.{path}.orValue({empty})"


def _list(words: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"
