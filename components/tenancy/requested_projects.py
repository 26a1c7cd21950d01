"""What pods may have in projects that people make for themselves, beside the queues of all teams.

OpenShift lets everybody who signs in make projects, and be their administrator: create pods in them, which no queue
counts and no rule of teams' namespaces judges, of a priority class for which the scheduler evicts running jobs.
Sources: OpenShift documentation, "Configuring project creation", and "Including pod priority in pod scheduling".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.scheduling.priorities import PRIORITIES

POLICY: Final = "mlbatch-requested-projects"
REQUESTER: Final = "openshift.io/requester"
"""The annotation of a project that somebody has requested, with who did. Its administrators change neither annotations
nor labels (openshift/openshift-apiserver, pkg/project/apiserver/validation, ValidateProjectUpdate)."""
ADMITTED: Final = "mlbatch/admitted"
"""The label by which an administrator of the cluster lets a project's pods be as they are."""

_NVIDIAS_RUNTIME: Final = "nvidia"
"""How the names of the RuntimeClasses begin by which a pod asks for NVIDIA's runtime, which gives it GPUs by a variable
(NVIDIA/gpu-operator, assets/pre-requisites). Others, such as kata, give none."""

_ADMINISTRATORS: Final = ("system:admin", "kube:admin")
"""Whom an installation has from the start: by the installer's kubeconfig, and by its password."""


def policy(resources: Sequence[str], queued: Sequence[str] = (), usual: str | None = None) -> AdmissionPolicy:
    """Return the policy.

    resources: those that nodes offer one by one and quotas count, such as GPUs. queued: projects of the stack's own,
    with a queue and a ResourceQuota for these, whose pods may ask for them. usual: the priority class that the cluster
    gives pods which name none: to refuse it would be to refuse all.
    """
    classes = words([usual] if usual is not None else [])
    asked = " && ".join(
        f"!c.?resources.?{part}.orValue({{}}).exists(key, key in {words(resources)})" for part in ("requests", "limits")
    )
    by_permission = f"an administrator of the cluster lets the project by the label {ADMITTED}=true"
    return AdmissionPolicy(
        name=POLICY,
        requests=[Requests(group="", versions=["v1"], resources=["pods"], operations=["CREATE"])],
        variables={
            "notes": "namespaceObject == null ? {} : namespaceObject.metadata.?annotations.orValue({})",
            "labels": "namespaceObject == null ? {} : namespaceObject.metadata.?labels.orValue({})",
            "admitted": f"variables.labels[?'{ADMITTED}'].orValue('') == 'true'",
            "requested": f"'{REQUESTER}' in variables.notes && "
            f"!(variables.notes['{REQUESTER}'] in {words(_ADMINISTRATORS)}) && !variables.admitted",
            "held": f"variables.requested || (request.namespace in {words(queued)} && !variables.admitted)",
            "containers": "dyn(object.spec.containers) + dyn(object.spec.?initContainers.orValue([]))",
        },
        validations=[
            Validation(
                expression=f"!variables.requested || variables.containers.all(c, {asked})",
                message=f"{' and '.join(resources)} are counted by the queues of teams: submit an AppWrapper in a "
                f"team's namespace; {by_permission}",
            ),
            Validation(
                expression="!variables.held || object.spec.?resourceClaims.orValue([]).size() == 0",
                message=f"spec.resourceClaims: no queue counts claimed devices; {by_permission}",
            ),
            Validation(
                expression="!variables.held || "
                f"!object.spec.?runtimeClassName.orValue('').startsWith('{_NVIDIAS_RUNTIME}')",
                message="spec.runtimeClassName: by NVIDIA's runtime a pod takes GPUs that it does not ask for, past "
                f"every queue; {by_permission}",
            ),
            Validation(
                expression="!variables.held || object.spec.?preemptionPolicy.orValue('') == 'Never' || "
                f"object.spec.?priorityClassName.orValue('') in {classes} || "
                f"object.spec.?priority.orValue(0) <= {min(PRIORITIES.values())}",
                message="spec.priorityClassName: the scheduler would evict jobs of teams for this pod; name a class "
                f"with preemptionPolicy Never, or none; {by_permission}",
            ),
        ],
    )
