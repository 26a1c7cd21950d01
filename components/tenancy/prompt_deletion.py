"""Free all resources of a deleted job: no part of it is held back or left behind.

- A finalizer keeps an object as long as its author wants. AppWrapper keeps the quota of a deleted job until all parts
  are deleted.
- Deletion without dependents leaves running pods that no queue counts.
- Deletion in the foreground deletes the job's Workload first, because it is a dependent. The job loses its quota while
  its pods still end. The garbage collector also applies it to dependents of a deleted ConfigMap or of any other owner.
- A TrainJob ends when Trainer has updated its PodGroup (v2.3.0, `pkg/runtime/framework/plugins/coscheduling`). Members
  could fill the PodGroup until this update exceeds a bound.
- A deleted pod runs as long as the request says, despite its specification (k8s.io/apiserver v0.34.2,
  `pkg/registry/rest/delete.go`). Some controllers replace the pod meanwhile, so each deletion adds a pod.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from components import names
from components.job_kinds import ENDLESS, JOB, JOB_SET, POD, POD_GROUP, RAY_CLUSTER, RAY_JOB, TRAIN_JOB
from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.callers import IS_PERSON
from components.tenancy.promises import Promise
from components.tenancy.quota_gate import JOBS, LONGEST_END

_CLAIMS: Final = "kubernetes.io/pvc-protection"
"""Kubernetes adds this finalizer to PVCs in their author's name and removes it again. It does not remove it from other
kinds."""

_WRAPPERS: Final = "workload.codeflare.dev/finalizer"
"""Finalizer of AppWrappers. Up to 0.30, AppWrapper's webhook adds it in their author's name (`internal/webhook`). From
1.0 on, its controller does. The controller removes it when all parts of the job are deleted."""

_WRITTEN: Final = (
    ("", ("services", "secrets", "configmaps", "persistentvolumeclaims")),
    (POD_GROUP.group, (POD_GROUP.plural,)),
    *JOBS,
)
"""Kinds that members write, and that AppWrappers may contain. The policy for pods has the same rule for pods."""

_DELETED: Final = (
    (POD.group, (POD.plural,)),
    (JOB.group, (JOB.plural,)),
    ("apps", tuple(kind.plural for kind in ENDLESS)),
    *JOBS,
)

REPLACING: Final = (JOB.kind, "ReplicaSet", JOB_SET.kind, RAY_CLUSTER.kind, RAY_JOB.kind, TRAIN_JOB.kind)
"""Controllers that start a replacement while a deleted pod still ends. The controllers of PyTorchJobs and StatefulSets
wait, because the replacement has the same name. AppWrapper waits too."""
APPWRAPPERS_LABEL: Final = f"{names.APPWRAPPER_GROUP}/appwrapper"
"""Label of all objects that AppWrapper creates, and of the pods of its jobs."""
OF_APPWRAPPER: Final = f"'{APPWRAPPERS_LABEL}' in oldObject.metadata.?labels.orValue({{}})"
"""CEL that is true for an object with this label before the request."""
_MAY_RUN_PODS: Final = "authorizer.group('').resource('pods').namespace(request.namespace).check('create').allowed()"
"""CEL that is true for administrators, who delete pods from lost nodes, and for the program, which deletes in the
foreground. It is false for members."""
_NEW: Final = "object.metadata.?finalizers.orValue([])"
_OLD: Final = "(oldObject == null ? [] : oldObject.metadata.?finalizers.orValue([]))"
_PROPAGATION: Final = "request.options.?propagationPolicy.orValue(request.resource.group == 'batch' ? 'Orphan' : '')"
_GRACE: Final = (
    "(request.operation == 'DELETE' ? request.options.?gracePeriodSeconds : object.?deleteOptions.?gracePeriodSeconds)"
)
"""The grace period of a deletion or of an eviction."""
_GONE: Final = (
    "request.resource.resource == 'pods' && (oldObject.?spec.?nodeName.orValue('') == '' || "
    "oldObject.?status.?phase.orValue('') in ['Succeeded', 'Failed'])"
)
"""CEL that is true if a pod runs on no node."""
_AT_ONCE: Final = (
    "request.resource.resource == 'pods' && request.options.?gracePeriodSeconds.orValue(1) == 0 && "
    "oldObject.spec.?terminationGracePeriodSeconds.orValue(1) != 0"
)


def replaced(controllers: Sequence[str] = REPLACING) -> str:
    """Return CEL that is true if an object that is deleted has one of these kinds of controllers."""
    return (
        "oldObject.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false) && "
        f"owner.kind in {words(controllers)})"
    )


def policy(grace_seconds: int) -> AdmissionPolicy:
    """Return the policy. grace_seconds: the longest time that a pod of an AppWrapper gets to end."""
    return AdmissionPolicy(
        name=Promise.PROMPT_DELETION.policy,
        requests=[
            *(Requests(group=group, resources=resources) for group, resources in _WRITTEN),
            *(
                Requests(group=group, resources=resources, operations=["DELETE"])
                for group, resources in dict.fromkeys((*_WRITTEN, *_DELETED))
            ),
            Requests(group="", resources=["pods/eviction"], operations=["CREATE"]),
        ],
        namespaces=TEAM_NAMESPACES,
        conditions={"person": IS_PERSON},
        variables={"gone": _GONE},
        validations=[*_of_finalizers(), *_of_owners(), *_of_deletion(grace_seconds)],
    )


def _of_finalizers() -> Iterator[Validation]:
    yield Validation(
        expression=f"request.operation == 'DELETE' || {_NEW}.all(name, name in {_OLD} || "
        f"(name == '{_CLAIMS}' && request.resource.resource == 'persistentvolumeclaims') || "
        f"(name == '{_WRAPPERS}' && request.resource.resource == 'appwrappers'))",
        message="finalizers would hold back the end of a job, and what it had with it",
    )
    yield Validation(
        expression=f"request.operation == 'DELETE' || {_OLD}.all(name, name in {_NEW}) || {_MAY_RUN_PODS}",
        message="finalizers are taken off by the controller that put them there, when all of a job is gone",
    )


def _of_owners() -> Iterator[Validation]:
    """Yield the rule that members write no owners.

    For each new owner, Kubernetes' garbage collector asks the API server twice whether it exists, about 40 times a
    second in all (kube-controller-manager v1.35, `app/core.go`, startGarbageCollectorController). A ConfigMap with 700
    owners would delay the end of all teams' jobs by half a minute. With a controller, Trainer could not update a
    PodGroup or suspend its job.
    """
    owners = "{0}.metadata.?ownerReferences.orValue([])"
    yield Validation(
        expression=f"request.operation == 'DELETE' || {owners.format('object')}.all(owner, oldObject != null && "
        f"owner in {owners.format('oldObject')}) || {_MAY_RUN_PODS}",
        message="Kubernetes looks for each owner of an object, and the jobs of others end later meanwhile: leave "
        "ownerReferences out",
    )


def _of_deletion(grace_seconds: int) -> Iterator[Validation]:
    yield Validation(
        expression=f"request.operation != 'DELETE' || ({_PROPAGATION} != 'Orphan' && "
        "!request.options.?orphanDependents.orValue(false))",
        message="a job is deleted with its pods: set propagationPolicy to Background, as kubectl does by itself",
    )
    yield Validation(
        expression=f"request.operation != 'DELETE' || {_PROPAGATION} != 'Foreground' || {_MAY_RUN_PODS}",
        message="in the foreground, a job's quota would be free before its pods have ended: set propagationPolicy to "
        "Background, as kubectl does by itself",
    )
    outside = min(grace_seconds, LONGEST_END)
    has_longer = f"oldObject == null || {OF_APPWRAPPER}"
    yield Validation(
        expression="request.resource.resource != 'pods' || "
        f"{_GRACE}.orValue(1) <= ({has_longer} ? {grace_seconds} : {outside})",
        message=f"a pod ends within {grace_seconds} seconds, outside an AppWrapper within {outside}: leave "
        "gracePeriodSeconds out, or ask for less",
    )
    yield Validation(
        expression=f"request.operation != 'DELETE' || variables.gone || !({_AT_ONCE}) || {_MAY_RUN_PODS}",
        message="a pod that is deleted with a gracePeriodSeconds of 0 runs on uncounted: use 1, as kubectl "
        "delete --now does",
    )
    yield Validation(
        expression=f"request.operation == 'CREATE' || variables.gone || !{replaced()} || {_MAY_RUN_PODS}",
        message="this belongs to a job, whose operator makes it again or needs it to end the job: delete the job",
    )
