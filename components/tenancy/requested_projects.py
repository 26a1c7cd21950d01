"""Limit the pods in projects that users request for themselves, outside of all teams.

OpenShift lets every authenticated user request a project and makes this user its administrator. In it, the user can
create pods that no queue counts and no rule for teams' namespaces checks. Their priority class could make the scheduler
preempt running jobs. Sources: OpenShift documentation, "Configuring project creation", and "Including pod priority in
pod scheduling".
"""

from collections.abc import Sequence
from typing import Final

from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.scheduling.priorities import PRIORITIES

POLICY: Final = "mlbatch-requested-projects"
REQUESTER: Final = "openshift.io/requester"
"""Annotation of a requested project with its requester. Administrators of the project cannot change its annotations and
labels (openshift/openshift-apiserver, pkg/project/apiserver/validation, ValidateProjectUpdate)."""
ADMITTED: Final = "mlbatch/admitted"
"""Label that exempts a project's pods from the policy. A cluster administrator sets it."""

_NVIDIAS_RUNTIME: Final = "nvidia"
"""Prefix of the RuntimeClasses that select NVIDIA's runtime, which gives a pod GPUs through a variable
(NVIDIA/gpu-operator, assets/pre-requisites). Other RuntimeClasses, such as kata, do not."""

_ADMINISTRATORS: Final = ("system:admin", "kube:admin")
"""Users of a new installation: the one in the installer's kubeconfig, and the one with its password."""


def policy(resources: Sequence[str], queued: Sequence[str] = (), usual: str | None = None) -> AdmissionPolicy:
    """Return the policy.

    resources: resources that nodes offer as whole units and quotas count, such as GPUs.
    queued: projects of the stack whose pods may request these resources, because a queue and a ResourceQuota count
    them.
    usual: the priority class of pods that name none. The policy must admit it, or it would reject all pods.
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
