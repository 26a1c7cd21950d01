"""Limit the rights of the platform's operators, which upstream's roles grant for the whole cluster.

An attacker who controls one of these pods could use its service account:

- AppWrapper creates the contents of jobs, so its role has pods, Jobs and Secrets in all namespaces (config/rbac of
  v1.2.2). An attacker could create privileged pods in Kubernetes' namespaces and read tokens there.
- Kueue starts, places and ends pods and jobs of any namespace, and updates all CRDs (config/components/rbac of
  v0.19.2). An attacker could change the image of Kubernetes' own pods.
- KubeRay and the training operator create the pods of their jobs, in any namespace and of any kind.
- The slack controller patches ClusterQueues and the status of AppWrappers, and a patch may change any field. An
  attacker could stop queues, or free the quota of running jobs.

Admission policies do not apply to webhook configurations, because the API server does not evaluate policies for them.
The operators' roles therefore name their own configurations (`components.queueing.operators`).
"""

from collections.abc import Sequence
from typing import Final

from components import names
from components.job_kinds import APPWRAPPER as APPWRAPPERS
from components.job_kinds import JOB, JOB_SET, POD, POD_GROUP, RAY_CLUSTER, RAY_JOB
from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.tenancy.callers import ACCOUNTS, APPWRAPPER, JOB_OPERATORS, KUEUE
from components.tenancy.promises import Promise
from components.tenancy.prompt_deletion import OF_APPWRAPPER, replaced
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
"""Fields of a ClusterQueue's spec besides its resources, in both versions of its API, because a request may use either
(Kueue v0.19, clusterqueue_types.go of apis/kueue/v1beta1 and v1beta2)."""

_QUEUE_METADATA: Final = {"labels": "{}", "annotations": "{}", "finalizers": "[]", "ownerReferences": "[]"}
"""Fields of a ClusterQueue's metadata that other writers own, with the value for an absent field. With an owner that
does not exist, the garbage collector deletes the queue. Without its finalizer, the queue is then deleted while jobs are
in it."""

_EVERYTHING: Final = Requests(group="*", resources=["*/*"], operations=["CREATE", "UPDATE", "DELETE"])
_IN_TEAM: Final = f"namespaceObject.metadata.?labels[?'{names.TEAM_LABEL}'].orValue('') == 'true'"
_OF_JOBS: Final = f"(request.resource.resource == '{APPWRAPPERS.plural}')"
_MADE_AGAIN: Final = (*(kind.plural for kind in (POD, JOB, JOB_SET, RAY_CLUSTER, POD_GROUP)), "services")
"""Kinds that run pods, or that the operator of a job needs to suspend its pods."""
_REPLACED: Final = (
    f"(request.resource.resource in {words(_MADE_AGAIN)} && {replaced()} && "
    f"!(request.resource.resource == '{JOB.plural}' && {replaced([RAY_JOB.kind])}))"
)
"""CEL of a deletion after which another controller starts a replacement while the old pods still end. KubeRay does not
replace the Job that submits a RayJob.

AppWrapper deletes by name, also objects that existed before (v1.2.2, `resource_management.go`, deleteComponents), and
keeps a job's quota until they are gone. `wrapped_kinds` therefore refuses the names that such objects have. Every other
object of a team, AppWrapper may delete: if it could not, the quota would be held without pods."""
_IS_OWN_POD: Final = f"request.resource.resource == '{POD.plural}' && {OF_APPWRAPPER}"
"""CEL that is true for pods of AppWrapper's jobs. Members cannot write this label on pods, but on other objects that a
job takes over."""
_KEPT: Final = (
    f"(request.namespace == '{names.SYSTEM_NAMESPACE}' && (request.resource.resource in ['leases', 'events'] || "
    "(request.resource.resource == 'secrets' && request.operation == 'UPDATE')))"
)
"""CEL of what an operator writes in the platform's namespace."""


def policies(*, without: Sequence[str] = ()) -> list[AdmissionPolicy]:
    """Return the policies. They apply only to these accounts, in all namespaces.

    without: promises about operators that others install, with other accounts and namespaces.
    """
    left_out = {Promise(name).policy for name in without}
    found = (_appwrapper(), _kueue(), _job_operators(), _slack_controller())
    return [policy for policy in found if policy.name not in left_out]


def _account(name: str) -> dict[str, str]:
    return {"account": f"request.userInfo.username == '{name}'"}


def _appwrapper() -> AdmissionPolicy:
    return _in_teams(
        Promise.APPWRAPPER_SCOPE,
        _account(APPWRAPPER),
        "AppWrapper acts in the namespaces of teams, and keeps its lease and its certificate",
        Validation(
            expression=f"request.operation != 'DELETE' || !({_IN_TEAM}) || ({_IS_OWN_POD}) || !{_REPLACED}",
            message="AppWrapper does not delete what another controller would start again",
        ),
    )


def _job_operators() -> AdmissionPolicy:
    """Return the policy for operators of jobs. Each keeps a lease.

    JobSet, Trainer and the training operator also keep a certificate.
    """
    return _in_teams(
        Promise.JOB_OPERATOR_SCOPE,
        {"account": f"request.userInfo.username in {words(JOB_OPERATORS)}"},
        "operators of jobs act in the namespaces of teams, and keep their leases and certificates",
    )


def _in_teams(promise: Promise, accounts: dict[str, str], message: str, *more: Validation) -> AdmissionPolicy:
    """Return the policy for accounts that act only in teams' namespaces. accounts: match conditions by name."""
    return AdmissionPolicy(
        name=promise.policy,
        requests=[_EVERYTHING],
        conditions=accounts,
        bounded=False,
        validations=[
            Validation(expression=f"namespaceObject == null || {_IN_TEAM} || {_KEPT}", message=message),
            *more,
        ],
    )


def _kueue() -> AdmissionPolicy:
    """Return the policy. Events of cluster-scoped objects are in another namespace. Kueue owns Workloads everywhere."""
    own = "request.resource.group == 'kueue.x-k8s.io' || request.resource.resource == 'events'"
    return AdmissionPolicy(
        name=Promise.KUEUE_SCOPE.policy,
        requests=[_EVERYTHING],
        conditions=_account(KUEUE),
        bounded=False,
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
        requests=[
            Requests(group="kueue.x-k8s.io", resources=["clusterqueues"], operations=["UPDATE"]),
            Requests(group=APPWRAPPERS.group, resources=[f"{APPWRAPPERS.plural}/status"], operations=["UPDATE"]),
        ],
        conditions=_account(f"{ACCOUNTS}:{SLACK_CONTROLLER}"),
        bounded=False,
        validations=[
            Validation(
                expression=f"{_OF_JOBS} || ({' && '.join(kept)})",
                message="the slack controller changes what queues lend, and nothing else of them",
            ),
            Validation(
                expression=f"!{_OF_JOBS} || oldObject.?status.?conditions.orValue([])"
                ".exists(each, each.type == 'DeletingResources' && each.status == 'True')",
                message="the slack controller ends jobs whose objects AppWrapper deletes already",
            ),
        ],
    )


def _quotas(queue: str) -> str:
    """Return CEL of a queue's resource groups without their lending limits."""
    amounts = "[dyn(r.name), dyn(string(r.nominalQuota)), dyn(string(r.?borrowingLimit.orValue('')))]"
    flavors = f"g.flavors.map(f, [dyn(f.name), dyn(f.resources.map(r, {amounts}))])"
    return f"{queue}.spec.?resourceGroups.orValue([]).map(g, [dyn(g.coveredResources), dyn({flavors})])"
