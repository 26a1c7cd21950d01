"""Messages of Kueue and of the API server about a job, and the labels that lead from a job to its Workload and pods."""

import re
from typing import Final

from ask import wrapped
from components.job_kinds import APPWRAPPER, PYTORCH_JOB, RAY_CLUSTER, TRAIN_JOB
from components.kubernetes.quantity import Quantity

MOST: Final = re.compile(
    r"insufficient quota for (?P<resource>\S+) in flavor (?P<flavor>[^\s,]+), previously considered podsets requests "
    r"\((?P<before>\S+)\) \+ current podset request \((?P<asked>\S+)\) > maximum capacity \((?P<most>[^\s)]+)\)"
)
_LACKS: Final = re.compile(
    r"insufficient unused quota(?: in cohort)? for (?P<resource>\S+) in flavor (?P<flavor>\S+), "
    r"(?P<amount>[^\s,;]+) more needed"
)
SHORT: Final = re.compile(
    r"insufficient unused quota in cohort for (\S+) in flavor|borrowing limit for (\S+) in flavor"
    r"|insufficient quota for (\S+) in flavor \S+ in ClusterQueue"
)
"""Quota that is missing in Kueue 0.8.3, of OpenShift AI. Its message is the same for now and for ever."""
UNCOVERED: Final = re.compile(r"resource (\S+) unavailable in ClusterQueue")
OTHER_NODES: Final = re.compile(
    r"flavor (?P<selected>[^\s,]+) doesn't match node affinity|untolerated taint [^,]* in flavor (?P<tainted>[^\s,]+)"
)
"""Messages of Kueue about a job that it does not admit (v0.19.2, `pkg/scheduler/flavorassigner/flavorassigner.go`).
The Kueue of OpenShift AI (0.8.3, the same file) has another message for missing quota, and none for the maximum.
"""
PREEMPTING: Final = "Pending the preemption"
POLICY: Final = re.compile(r"ValidatingAdmissionPolicy '([^']+)'.*?denied request: (.*)", re.DOTALL)

POD_LABELS: Final = {
    APPWRAPPER.kind: wrapped.LABEL,
    PYTORCH_JOB.kind: "training.kubeflow.org/job-name",
    RAY_CLUSTER.kind: "ray.io/cluster",
    TRAIN_JOB.kind: "jobset.sigs.k8s.io/jobset-name",
}
"""Labels of pods with the name of their job, by its kind, or of the JobSet with a TrainJob's name. Pods of a RayJob
name the RayCluster that KubeRay creates for it, and the Job with the RayJob's name that submits its program
(KubeRay v1.6.2, `controllers/ray/utils/constant.go`)."""
OF_JOB: Final = "kueue.x-k8s.io/job-uid"
"""Label of the Workload that Kueue creates for a job (v0.19.2 and 0.8.3, `pkg/controller/constants/constants.go`)."""


def lacks(message: str) -> str:
    """Return the missing quota that a message names, with amounts. Empty if it names none.

    Flavors are alternatives. Kueue adds the pod sets of a job up, so the last amount of a flavor is for all of them.
    """
    found = {(each["resource"], each["flavor"]): each["amount"] for each in _LACKS.finditer(message)}
    several = len({flavor for _, flavor in found}) > 1
    return ", ".join(
        f"{amount} {resource} more" + (f" in {flavor}" if several else "")
        for (resource, flavor), amount in sorted(found.items())
    )


def added(first: str, second: str) -> Quantity:
    """Return the sum of two amounts, in the format of the second."""
    one, other = Quantity.parse(first), Quantity.parse(second)
    return Quantity(one.nano + other.nano, other.format)
