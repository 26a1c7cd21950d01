"""What the platform's own operators may do with their rights, which upstream's roles give for the whole cluster.

Whoever takes AppWrapper's pod over could make privileged pods beside Kubernetes' own with its account, and read tokens
there: it makes what jobs contain, so that its role has pods, Jobs and Secrets everywhere (config/rbac of v1.2.2).
Whoever takes Kueue's over could give Kubernetes' own pods another image: it starts, places and ends pods and jobs of
any namespace, and updates all definitions of kinds (config/components/rbac of v0.19.2). KubeRay and the training
operator make the pods of their jobs, in any namespace and of any kind. Whoever takes the slack controller over could
stop queues, for who may patch a ClusterQueue may patch all of it.

No policy holds for webhook configurations: the API server asks none about them. The operators' roles name their own
(`components.queueing.operators`).
"""

from __future__ import annotations

from typing import Final

from components import names
from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.tenancy.callers import ACCOUNTS, APPWRAPPER, JOB_OPERATORS, KUEUE
from components.tenancy.promises import Promise
from components.tenancy.slack import CONTROLLER as SLACK_CONTROLLER

_QUEUE_FIELDS: Final = (
    "admissionChecks",
    "admissionChecksStrategy",
    "admissionScope",
    "cohort",
    "cohortName",
    "concurrentAdmissionPolicy",
    "fairSharing",
    "flavorFungibility",
    "namespaceSelector",
    "preemption",
    "queueingStrategy",
    "stopPolicy",
)
"""What a ClusterQueue's spec has beside its resources, in either version of its API, for a request may be made in both
(Kueue v0.19, clusterqueue_types.go of apis/kueue/v1beta1 and v1beta2)."""

_QUEUE_METADATA: Final = {"labels": "{}", "annotations": "{}", "finalizers": "[]", "ownerReferences": "[]"}
"""What a ClusterQueue's metadata has that others wrote, with the value of what is absent. An owner that is not there
has the garbage collector delete the queue, and no finalizer keeps the jobs in it then."""

_EVERYTHING: Final = Requests(group="*", resources=["*/*"], operations=["CREATE", "UPDATE", "DELETE"])
_IN_TEAM: Final = f"namespaceObject.metadata.?labels[?'{names.TEAM_LABEL}'].orValue('') == 'true'"
_APPWRAPPERS_LABEL: Final = f"{names.APPWRAPPER_GROUP}/appwrapper"
"""Of all that AppWrapper makes. It deletes by name, also what was there before it (v1.2.2, `resource_management.go`,
deleteComponents), such as the JobSet of a TrainJob, which Trainer would then make again."""
_KEPT: Final = (
    f"(request.namespace == '{names.SYSTEM_NAMESPACE}' && (request.resource.resource in ['leases', 'events'] || "
    "(request.resource.resource == 'secrets' && request.operation == 'UPDATE')))"
)
"""What an operator writes in the platform's own namespace."""


def policies(*, own_operators: bool = True) -> list[AdmissionPolicy]:
    """Return the policies. They hold for these accounts alone, wherever they ask.

    own_operators: the platform installs the operators of jobs; somebody else's have other accounts, and act elsewhere.
    """
    return [*([_appwrapper(), _kueue(), _job_operators()] if own_operators else []), _slack_controller()]


def _account(name: str) -> dict[str, str]:
    return {"account": f"request.userInfo.username == '{name}'"}


def _appwrapper() -> AdmissionPolicy:
    return _in_teams(
        Promise.APPWRAPPER_SCOPE,
        _account(APPWRAPPER),
        "AppWrapper acts in the namespaces of teams, and keeps its lease and its certificate",
        Validation(
            expression=f"request.operation != 'DELETE' || !({_IN_TEAM}) || "
            f"'{_APPWRAPPERS_LABEL}' in oldObject.metadata.?labels.orValue({{}})",
            message="AppWrapper deletes only what it has made, not another object of the same name",
        ),
    )


def _job_operators() -> AdmissionPolicy:
    """Return the policy. Each keeps a lease; JobSet, Trainer and the training operator a certificate, too."""
    return _in_teams(
        Promise.JOB_OPERATOR_SCOPE,
        {"account": f"request.userInfo.username in {words(JOB_OPERATORS)}"},
        "operators of jobs act in the namespaces of teams, and keep their leases and certificates",
    )


def _in_teams(promise: Promise, accounts: dict[str, str], message: str, *more: Validation) -> AdmissionPolicy:
    """Return the policy of accounts that act in teams' namespaces alone. accounts: the condition that they ask."""
    return AdmissionPolicy(
        name=promise.policy,
        requests=[_EVERYTHING],
        conditions=accounts,
        validations=[
            Validation(expression=f"namespaceObject == null || {_IN_TEAM} || {_KEPT}", message=message),
            *more,
        ],
    )


def _kueue() -> AdmissionPolicy:
    """Return the policy. Events of what has no namespace are in another one; Workloads are Kueue's own, wherever."""
    own = "request.resource.group == 'kueue.x-k8s.io' || request.resource.resource == 'events'"
    return AdmissionPolicy(
        name=Promise.KUEUE_SCOPE.policy,
        requests=[_EVERYTHING],
        conditions=_account(KUEUE),
        validations=[
            Validation(
                expression=f"namespaceObject == null || {_IN_TEAM} || {own} || {_KEPT}",
                message="Kueue acts in the namespaces of teams, and keeps its queues, its lease and its certificate",
            ),
            Validation(
                expression="request.resource.resource != 'customresourcedefinitions' || "
                "request.name.endsWith('.kueue.x-k8s.io')",
                message="Kueue writes its certificate into the definitions of its own kinds",
            ),
        ],
    )


def _slack_controller() -> AdmissionPolicy:
    kept = [f"object.spec.?{field} == oldObject.spec.?{field}" for field in _QUEUE_FIELDS]
    kept += [
        f"object.metadata.?{field}.orValue({empty}) == oldObject.metadata.?{field}.orValue({empty})"
        for field, empty in _QUEUE_METADATA.items()
    ]
    kept.append(f"{_quotas('object')} == {_quotas('oldObject')}")
    return AdmissionPolicy(
        name=Promise.LENDING_SCOPE.policy,
        requests=[Requests(group="kueue.x-k8s.io", resources=["clusterqueues"], operations=["UPDATE"])],
        conditions=_account(f"{ACCOUNTS}:{SLACK_CONTROLLER}"),
        validations=[
            Validation(
                expression=" && ".join(kept),
                message="the slack controller changes what queues lend, and nothing else of them",
            )
        ],
    )


def _quotas(queue: str) -> str:
    """Return CEL of a queue's resource groups without what they lend."""
    amounts = "[dyn(r.name), dyn(string(r.nominalQuota)), dyn(string(r.?borrowingLimit.orValue('')))]"
    flavors = f"g.flavors.map(f, [dyn(f.name), dyn(f.resources.map(r, {amounts}))])"
    return f"{queue}.spec.?resourceGroups.orValue([]).map(g, [dyn(g.coveredResources), dyn({flavors})])"
