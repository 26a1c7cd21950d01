"""Service accounts that may change only some fields of nodes, usually only those of the node of their pod.

RBAC cannot limit node access: an account that can patch one node can cordon, relabel and taint all nodes. A
ValidatingAdmissionPolicy restricts it. The API server adds the name of a pod's node to its token (kubernetes.io,
concepts/security/service-accounts; on by default since Kubernetes 1.30), and the policy compares it with the node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.rbac import Account, rule

_NODE_CLAIM: Final = "authentication.kubernetes.io/node-name"
_KEPT: Final = {
    "metadata.?finalizers": "[]",
    "metadata.?ownerReferences": "[]",
    "spec.?unschedulable": "false",
    "spec.?providerID": "''",
    "spec.?podCIDR": "''",
}
"""Fields of a node that no such account may change, with the value for an absent field."""


@dataclass(frozen=True, kw_only=True)
class OwnNodeAccount:
    """A service account and its rights on its node.

    cluster_name: name of the policy and the cluster-scoped permissions.
    who: the account in error messages.
    labels, annotations: names, or prefixes that end in `/`.
    taints: keys.
    reads: RBAC rules for other objects of the cluster that it needs.
    held: the policy is enforced. False if the cluster has no such policies, so that only RBAC applies.
    every_node: these rights are on all nodes, not only on that of the pod.
    """

    name: str
    namespace: pulumi.Input[str]
    cluster_name: str
    who: str
    labels: Sequence[str]
    annotations: Sequence[str] = ()
    taints: Sequence[str] = ()
    reads: Sequence[Document] = ()
    held: bool = True
    every_node: bool = False


def register(account: OwnNodeAccount, prefix: str, parent: pulumi.Resource) -> list[Manifest]:
    """Register an account's objects as a component's children, named `<prefix>/<kind>`, and return them.

    Each waits for the one before. The permission to patch nodes comes last, after the policy.
    """
    registered: list[Manifest] = []
    for document in documents(account):
        options = pulumi.ResourceOptions(parent=parent, depends_on=registered[-1:])
        registered.append(Manifest(f"{prefix}/{document['kind']}", document, options))
    return registered


def documents(account: OwnNodeAccount) -> list[Document]:
    """Return the service account, its policy and its permissions, in the order of creation."""
    own = Account(name=account.name, namespace=account.namespace)
    return [
        own.document(),
        *(policy(account).documents() if account.held else ()),
        *own.granted([rule("", ["nodes"], ["get", "patch"]), *account.reads], name=account.cluster_name),
    ]


def policy(account: OwnNodeAccount) -> AdmissionPolicy:
    """Return the policy. It applies only to this account."""
    who = account.who
    taints = "variables.taints == variables.oldTaints" if account.taints else "object.spec == oldObject.spec"
    kept = [f"object.{path}.orValue({empty}) == oldObject.{path}.orValue({empty})" for path, empty in _KEPT.items()]
    own_node = Validation(
        expression=f"request.userInfo.?extra[?'{_NODE_CLAIM}'].orValue([]) == [object.metadata.name]",
        message=f"{who} may change the node that it runs on, and no other",
    )
    return AdmissionPolicy(
        name=account.cluster_name,
        requests=[Requests(group="", versions=["v1"], resources=["nodes"], operations=["UPDATE"])],
        conditions={"account": _is_account(account)},
        bounded=False,
        variables={
            **_before_and_after("labels"),
            **_before_and_after("annotations"),
            "taints": _other_taints("object", account.taints),
            "oldTaints": _other_taints("oldObject", account.taints),
        },
        validations=[
            *([] if account.every_node else [own_node]),
            Validation(
                expression=_others_are_kept("labels", account.labels),
                message=f"{who} may change its own labels only: {', '.join(account.labels) or 'none'}",
            ),
            Validation(
                expression=_others_are_kept("annotations", account.annotations),
                message=f"{who} may change its own annotations only",
            ),
            Validation(expression=taints, message=f"{who} may change its own taints only"),
            Validation(
                expression=" && ".join(kept), message=f"{who} may not cordon a node or change what it belongs to"
            ),
        ],
    )


def _is_account(account: OwnNodeAccount) -> pulumi.Input[str]:
    before, after = "request.userInfo.username == 'system:serviceaccount:", f":{account.name}'"
    if isinstance(account.namespace, str):
        return f"{before}{account.namespace}{after}"
    return pulumi.Output.concat(before, account.namespace, after)


def _before_and_after(field: str) -> dict[str, str]:
    """Return variables with a map of the node's metadata after and before the request."""
    return {field: f"object.metadata.?{field}.orValue({{}})", _old(field): f"oldObject.metadata.?{field}.orValue({{}})"}


def _others_are_kept(field: str, own: Sequence[str]) -> str:
    """Return CEL that is true if two maps differ only in the account's keys."""
    new, old, is_own = f"variables.{field}", f"variables.{_old(field)}", _is_own(own)
    return (
        f"{new}.all(key, {is_own} || (key in {old} && {new}[key] == {old}[key])) && "
        f"{old}.all(key, {is_own} || key in {new})"
    )


def _is_own(own: Sequence[str]) -> str:
    prefixes = [name for name in own if name.endswith("/")]
    names = [name for name in own if name not in prefixes]
    return " || ".join([f"key in {words(names)}", *(f"key.startsWith('{prefix}')" for prefix in prefixes)])


def _old(field: str) -> str:
    return f"old{field.capitalize()}"


def _other_taints(node: str, own: Sequence[str]) -> str:
    return f"{node}.spec.?taints.orValue([]).filter(taint, !(taint.key in {words(own)}))"
