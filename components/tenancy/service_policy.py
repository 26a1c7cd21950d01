"""Limit Services in teams' namespaces to names for a job's pods, reachable only from the cluster.

Limit NetworkPolicies there, too. Operators of jobs write some, and each adds allowed connections to those of the team's
own: KubeRay of OpenShift AI 3.4 opens a port of each Ray cluster to all namespaces (red-hat-data-services/kuberay,
rhoai-3.4, `networkpolicy_controller.go`), and its Trainer replaces the one with a TrainJob's name
(red-hat-data-services/trainer, rhoai-3.4, `pkg/rhai/networkpolicy.go`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from components.job_kinds import PYTORCH_JOB
from components.kubernetes import network
from components.kubernetes.admission import API, AdmissionPolicy, Requests, Validation, words
from components.tenancy import pod_templates
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.callers import IS_PERSON
from components.tenancy.promises import Promise

SHORTEST_PREFIX: Final = 8
"""Shortest prefix of a network that a load balancer admits. Otherwise two halves could cover all addresses."""
PORTS: Final = 16
"""The most ports of a Service. Its EndpointSlices and each node's network rules have one entry for each port and pod,
and one controller writes these for all teams."""
_CLOUDS_WORDS: Final = "service.beta.kubernetes.io/"
"""Prefix of the annotations that change a load balancer of a cloud, including the clients that it admits
(kubernetes.io, reference/labels-annotations-taints)."""
_NETWORKS: Final = "networkpolicies"
_TRAINING: Final = "training.kubeflow.org"
"""Prefix of the labels of a job's Services. The training operator does not look at the owner of these Services (v1.9.4,
`pkg/controller.v1/common/service.go`, GetServicesForJob)."""
_ADMINISTERS: Final = (
    f"authorizer.group('{API.partition('/')[0]}').resource('validatingadmissionpolicies').check('update').allowed()"
)
"""CEL that is true for callers who can change this policy, such as the stack's user."""


_KEPT: Final = Validation(
    expression=f"object != null || oldObject.metadata.name != '{network.NAME}' || {_ADMINISTERS} || "
    "has(namespaceObject.metadata.deletionTimestamp)",
    message=f"only the platform's administrators delete NetworkPolicy {network.NAME} (the limits of a team's network)",
)
"""Kubernetes' own controller deletes the NetworkPolicy with its namespace."""


@dataclass(frozen=True, kw_only=True)
class ServiceRules:
    """The allowed Services.

    load_balancers, node_ports: namespaces whose Services may have these types.
    annotations: annotations of a load balancer that a cloud reads and that are allowed.
    """

    load_balancers: Sequence[str] = ()
    node_ports: Sequence[str] = ()
    annotations: Sequence[str] = ()


def policy(rules: ServiceRules) -> AdmissionPolicy:
    """Return the policy. It admits updates that do not change a Service, so that a Service can be deleted."""
    return AdmissionPolicy(
        name=Promise.SERVICE_EXPOSURE.policy,
        requests=[
            Requests(group="", versions=["v1"], resources=["services"]),
            Requests(
                group="networking.k8s.io",
                versions=["v1"],
                resources=[_NETWORKS],
                operations=["CREATE", "UPDATE", "DELETE"],
            ),
        ],
        namespaces=TEAM_NAMESPACES,
        conditions={
            "changes": "object == null || oldObject == null || object.spec != oldObject.spec || "
            "object.metadata.?annotations.orValue({}) != oldObject.metadata.?annotations.orValue({}) || "
            "object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({}) || "
            "object.metadata.?ownerReferences.orValue([]) != oldObject.metadata.?ownerReferences.orValue([])"
        },
        variables={"type": "object.spec.?type.orValue('ClusterIP')"},
        validations=[
            *(
                replace(each, expression=f"object == null || ({each.expression})")
                for each in (*_validations(rules), *_of_networks())
            ),
            _KEPT,
        ],
    )


def _validations(rules: ServiceRules) -> Iterator[Validation]:
    yield Validation(
        expression="object.spec.?externalIPs.orValue([]).size() == 0",
        message="spec.externalIPs: a team takes no addresses for itself, for with them it could take the traffic of "
        "others (CVE-2020-8554); remove them",
    )
    yield Validation(
        expression=f"object.spec.?ports.orValue([]).size() <= {PORTS}",
        message=f"spec.ports: a Service has at most {PORTS} ports, because every endpoint and every node has a copy; "
        "remove some",
    )
    yield pod_templates.NO_RAY_WORDS.validation("object", f"!{IS_PERSON} || ({{rule}})")
    yield Validation(
        expression=f"object.metadata.?labels.orValue({{}}).all(key, !key.startsWith('{_TRAINING}/')) || "
        "object.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false) && "
        f"owner.apiVersion == '{PYTORCH_JOB.api}')",
        message=f"labels of {_TRAINING} are the training operator's, which would run out of memory for a large "
        "replica-index: remove them",
    )
    owned = "oldObject.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false))"
    yield Validation(
        expression=f"oldObject == null || !{IS_PERSON} || !{owned}",
        message="this Service belongs to a job, whose operator looks for it as it is; create one of your own",
    )
    yield Validation(
        expression="variables.type != 'ExternalName'",
        message="spec.type ExternalName: a team's Services stand for its own pods; use the other name itself",
    )
    for kind, allowed, key in (
        ("LoadBalancer", rules.load_balancers, "services.loadBalancers"),
        ("NodePort", rules.node_ports, "services.nodePorts"),
    ):
        yield Validation(
            expression=f"variables.type != '{kind}' || request.namespace in {words(allowed)}",
            message=f"spec.type {kind}: this team's Services are reached from within the cluster; use ClusterIP and a "
            f"port-forward, or have the platform's administrator set the team's {key}",
        )
    yield Validation(
        expression="variables.type != 'LoadBalancer' || (object.spec.?loadBalancerSourceRanges.orValue([]).size() > 0 "
        f"&& object.spec.loadBalancerSourceRanges.all(r, int(r.split('/')[1]) >= {SHORTEST_PREFIX}))",
        message="spec.loadBalancerSourceRanges: a load balancer says from which addresses it is reached, in networks "
        f"of /{SHORTEST_PREFIX} or smaller; add them",
    )
    allowed = f"k in {words(rules.annotations)}" if rules.annotations else "false"
    yield Validation(
        expression="variables.type != 'LoadBalancer' || object.metadata.?annotations.orValue({}).all(k, "
        f"!k.startsWith('{_CLOUDS_WORDS}') || {allowed})",
        message=f"metadata.annotations: {_CLOUDS_WORDS}... would open a load balancer beside its "
        "spec.loadBalancerSourceRanges; remove them",
    )


def _of_networks() -> Iterator[Validation]:
    yield _unless_administrator(
        f"object.metadata.name != '{network.NAME}'",
        f"only the platform's administrators write NetworkPolicy {network.NAME}; if an operator gives it the name of a "
        "job, rename the job",
    )
    peers = " + ".join(
        f"dyn(object.spec.?{rules}.orValue([]).map(rule, rule.?{ends}.orValue([])))"
        for rules, ends in (("ingress", "from"), ("egress", "to"))
    )
    yield _unless_administrator(
        f"({peers}).all(ends, ends.size() > 0 && ends.all(end, !has(end.namespaceSelector) && !has(end.ipBlock)))",
        "only the platform's administrators open a team's network; a NetworkPolicy of others names only pods of the "
        "same namespace",
    )


def _unless_administrator(expression: str, message: str) -> Validation:
    return Validation(
        expression=f"request.resource.resource != '{_NETWORKS}' || {expression} || {_ADMINISTERS}", message=message
    )
