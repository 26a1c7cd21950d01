"""Reject manifests that start more pods than Kueue counts, or that continue after they have ended. In CEL."""

from collections.abc import Mapping, Sequence
from typing import Final

from components.job_kinds import JOB, JOB_SET, PYTORCH_JOB, RAY_CLUSTER, RAY_JOB, RUN, SUBMITTED, TRAIN_JOB
from components.kubernetes.admission import words
from components.scheduling.priorities import PRIORITIES
from components.tenancy.amounts import MOST_PODS, counted
from components.tenancy.pod_templates import Rule, has_no_counted_labels, is_kind, templates

_CONTROLLERS: Final = tuple(dict.fromkeys(kind.controller for kind in (*RUN, *SUBMITTED) if kind.controller))
"""Values of `managedBy` that leave a job to its own controller."""

_MOST_RETRIES: Final = 1000
"""The most retries of a Job's failed pods. Each failed pod remains as an object."""

_RAY_RETRIES: Final = 3
"""The most retries of a RayJob: AppWrapper's default number of retries."""


def _counted(condition: str) -> Rule:
    """Return the rule that numbers of pods can be counted. AppWrapper counts those of a template in 32 bits."""
    return Rule(condition=condition, message=f"the pods of one template are from 0 to {MOST_PODS} in number")


def _number(specification: str) -> str:
    """Return CEL that is true if a Job's number of pods can be counted."""
    return " && ".join(counted(f"{specification}.?{field}.orValue(1)") for field in ("parallelism", "completions"))


def _jobs(jobs: str, specification: str) -> list[Rule]:
    """Return the rules for a list of Jobs in an AppWrapper.

    jobs: CEL of the list.
    specification: path of the specification in each `job` of the list.

    AppWrapper takes a Job as done when as many pods have succeeded as run in parallel and no pod runs at that moment
    (v1.2.2, `internal/controller/appwrapper/appwrapper_controller.go`). Other jobs then get its quota.
    """
    parallelism = f"{specification}.?parallelism.orValue(1)"
    return [
        Rule(
            condition=f"{jobs}.all(job, {specification}.?completions.orValue({parallelism}) <= {parallelism})",
            message="a Job whose completions are more than its parallelism starts pods when it counts as done: set "
            "both to one number, or submit a job for each",
        ),
        Rule(
            condition=f"{jobs}.all(job, !{specification}.?manualSelector.orValue(false))",
            message="a Job finds its own pods: leave manualSelector out",
        ),
        Rule(
            condition=f"{jobs}.all(job, {specification}.?backoffLimit.orValue(0) <= {_MOST_RETRIES})",
            message=f"a Job's backoffLimit is at most {_MOST_RETRIES}",
        ),
    ]


JOB_SET_SUFFIX: Final = "-jobset"
"""End of the names of wrapped JobSets, and of no TrainJob. Trainer gives its JobSets the names of their TrainJobs."""


def _ray(cluster: str) -> list[Rule]:
    """Return the rules for a Ray cluster's specification.

    KubeRay starts at least minReplicas of a group, even if replicas is smaller, and numOfHosts pods for each (v1.6.2,
    GetWorkerGroupDesiredReplicas). A group's labels override those of its template (mergeLabels).
    """
    groups = f"{cluster}.?workerGroupSpecs.orValue([])"
    return [
        Rule(
            condition=f"!{cluster}.?enableInTreeAutoscaling.orValue(false)",
            message="a Ray cluster with an autoscaler grows beyond what was counted: leave enableInTreeAutoscaling out",
        ),
        Rule(
            condition=f"{groups}.all(group, group.?minReplicas.orValue(0) <= group.?replicas.orValue(1))",
            message="a worker group's minReplicas is at most its replicas, which are what is counted",
        ),
        _counted(
            f"{groups}.all(group, {counted('group.?replicas.orValue(1)')} && "
            f"{counted('group.?numOfHosts.orValue(1)')} && "
            f"{counted('int(group.?replicas.orValue(1)) * int(group.?numOfHosts.orValue(1))')})"
        ),
        Rule(
            condition=f"{groups}.all(group, group.?scaleStrategy.?workersToDelete.orValue([]).size() == 0)",
            message="KubeRay deletes whatever pods scaleStrategy.workersToDelete names, other jobs' too: leave "
            "scaleStrategy out",
        ),
        Rule(
            condition=f"([{cluster}.headGroupSpec] + {groups}).all(group, "
            f"{has_no_counted_labels('group.?labels.orValue({})')})",
            message="labels of a Ray group become labels of its pods: those of kueue.x-k8s.io and "
            "workload.codeflare.dev are written by Kueue and AppWrapper alone",
        ),
        Rule(
            condition=f"!{cluster}.headGroupSpec.?enableIngress.orValue(false)",
            message="a team's Ray cluster is reached from the cluster alone: leave enableIngress out",
        ),
        Rule(
            condition=f"{cluster}.headGroupSpec.?headService.?metadata.?finalizers.orValue([]).size() == 0 && "
            f"!{cluster}.headGroupSpec.?headService.?metadata.?name.hasValue()",
            message="finalizers or a chosen name of a Ray cluster's Service would hold back its end: leave them out of "
            "headService",
        ),
        Rule(
            condition=f"!has({cluster}.upgradeStrategy)",
            message="KubeRay leaves a cluster alone whose upgradeStrategy it refuses, its end too: leave it out",
        ),
        Rule(
            condition=f"!has({cluster}.authOptions)",
            message="KubeRay ends no cluster whose token it cannot read, and members replace its Secret: leave "
            "authOptions out",
        ),
        Rule(
            condition=f"!has({cluster}.gcsFaultToleranceOptions)",
            message="KubeRay cleans up after a fault-tolerant cluster with pods that are not counted: leave "
            "gcsFaultToleranceOptions out",
        ),
    ]


_LONGEST_WAIT: Final = 3600
"""Seconds that pods of a PodGroup wait for each other on their nodes. Without a value in the PodGroup, the scheduler's
setting applies (components/scheduling/coscheduling.py)."""

POD_GROUP: Final = (
    Rule(
        condition=f"{counted('{0}.spec.?minMember.orValue(1)', least=1)} && "
        "{0}.spec.?scheduleTimeoutSeconds.orValue(1) >= 1 && "
        f"{{0}}.spec.?scheduleTimeoutSeconds.orValue(1) <= {_LONGEST_WAIT}",
        message=f"a PodGroup has a minMember from 1 to {MOST_PODS}, and a scheduleTimeoutSeconds from 1 to "
        f"{_LONGEST_WAIT}",
    ),
    Rule(
        condition="{0}.spec.?minResources.orValue({}).all(key, isQuantity(string({0}.spec.minResources[key])))",
        message="a PodGroup's minResources are amounts of resources",
    ),
)
"""Rules for PodGroups. Their CRD accepts numbers and amounts that the scheduler cannot parse. After one of them, the
scheduler would not see any other PodGroup (scheduler-plugins v0.34.7, `scheduling.x-k8s.io_podgroups.yaml`)."""

_SUBMISSION: Final = Rule(
    condition="{0}.spec.?submissionMode.orValue('K8sJobMode') == 'HTTPMode' && !has({0}.spec.submitterPodTemplate)",
    message="KubeRay itself submits a RayJob's program, for a pod that does could run on when the job has ended: set "
    "submissionMode to HTTPMode, and leave submitterPodTemplate out",
)
"""In the other modes, a separate pod or a user submits the job, and the job waits for that after its admission (KubeRay
v1.6.2, `controllers/ray/rayjob_controller.go`)."""

_COUNTED: Final[Mapping[str, Sequence[Rule]]] = {
    PYTORCH_JOB.identity: [
        Rule(
            condition="{0}.spec.pytorchReplicaSpecs.all(name, name in ['Master', 'Worker'])",
            message="the replicas of a PyTorchJob are called Master and Worker: others are not counted, and run",
        ),
        _counted(
            "{0}.spec.pytorchReplicaSpecs.all(name, "
            + counted("{0}.spec.pytorchReplicaSpecs[name].?replicas.orValue(1)")
            + ")"
        ),
        Rule(
            condition="!has({0}.spec.elasticPolicy) || !has({0}.spec.elasticPolicy.metrics)",
            message="a PyTorchJob with metrics to grow by has more pods than were counted: leave them out",
        ),
    ],
    JOB.identity: [_counted(_number("{0}.spec"))],
    JOB_SET.identity: [
        _counted(f"{{0}}.spec.replicatedJobs.all(job, {_number('job.template.spec')})"),
        Rule(
            condition=(
                f"{{0}}.spec.replicatedJobs.all(job, {counted('job.?replicas.orValue(1)', least=1)} && "
                f"{counted('int(job.?replicas.orValue(1)) * int(job.template.spec.?parallelism.orValue(1))')})"
            ),
            message=f"a JobSet has from 1 to {MOST_PODS} replicas of a job, and at most so many pods of all of them",
        ),
    ],
    "apps/v1/Deployment": [_counted(counted("{0}.spec.?replicas.orValue(1)"))],
    "apps/v1/StatefulSet": [_counted(counted("{0}.spec.?replicas.orValue(1)"))],
    RAY_CLUSTER.identity: _ray("{0}.spec"),
    RAY_JOB.identity: [*_ray("{0}.spec.rayClusterSpec"), _SUBMISSION],
}
"""Rules by kind, both inside and outside AppWrappers. The operator changes `master` to `Master`, and AppWrapper does
not (training-operator v1.9.4, `pytorch_defaults.go`; AppWrapper v1.2.2, `pkg/utils/utils.go`)."""


def _one_host(cluster: str, counts: str = "AppWrapper") -> Rule:
    """Return the rule that a Ray cluster has one host for each replica. counts: the controller that counts pods."""
    return Rule(
        condition=f"{cluster}.?workerGroupSpecs.orValue([]).all(group, group.?numOfHosts.orValue(1) <= 1)",
        message=f"{counts} counts one pod for each replica of a worker group: leave numOfHosts out",
    )


_ENDLESS: Final = Rule(
    condition=f"{templates('{0}')}.all(pod, pod.spec.?restartPolicy.orValue('Always') == 'Always')",
    message="KubeRay replaces pods that end, when AppWrapper may have counted them as done: leave restartPolicy out",
)
"""KubeRay keeps completed pods only if their restartPolicy is Always (v1.6.2, shouldDeletePod)."""

_JOB_SET: Final = (
    Rule(
        condition=" && ".join(f"!has({{0}}.spec.{field})" for field in ("failurePolicy", "successPolicy")),
        message="a JobSet that starts its Jobs anew, or ends before all of them, has pods when it counts as done: "
        "leave failurePolicy and successPolicy out; the AppWrapper is started again when it fails",
    ),
    Rule(
        condition="!has({0}.spec.ttlSecondsAfterFinished) && {0}.spec.replicatedJobs.all(job, "
        "!has(job.template.spec.ttlSecondsAfterFinished))",
        message="a Job of a JobSet that is deleted is made anew, when it may count as done: leave "
        "ttlSecondsAfterFinished out",
    ),
    Rule(
        condition="{0}.spec.replicatedJobs.all(job, job.template.spec.?parallelism.orValue(1) >= 1 && "
        "job.template.spec.?completions.orValue(1) >= 1)",
        message="each Job of a JobSet has a pod at least, in parallelism and in completions",
    ),
    Rule(
        condition="!has({0}.spec.volumeClaimPolicies)",
        message="a claim that a JobSet makes would hold back its end: create the PersistentVolumeClaim by itself, "
        "before the AppWrapper, and leave volumeClaimPolicies out",
    ),
    Rule(
        condition="{0}.spec.replicatedJobs.all(job, !has(job.template.spec.managedBy))",
        message="a Job of a JobSet is run by Kubernetes: leave managedBy out",
    ),
)
"""AppWrapper counts the pods of a JobSet and ignores its conditions. A JobSet is done when as many pods have succeeded
as were counted and no pod runs (v1.2.2, `internal/controller/appwrapper/appwrapper_controller.go`). JobSet recreates
its Jobs after a failure, and a deleted Job (v0.12.0, `pkg/controllers/failure_policy.go` and `jobset_controller.go`).
"""

_WRAPPED: Final[Mapping[str, Sequence[Rule]]] = {
    JOB.identity: _jobs("[{0}]", "job.spec"),
    "scheduling.x-k8s.io/v1alpha1/PodGroup": POD_GROUP,
    JOB_SET.identity: [*_jobs("{0}.spec.replicatedJobs", "job.template.spec"), *_JOB_SET],
    RAY_CLUSTER.identity: [_one_host("{0}.spec"), _ENDLESS],
    RAY_JOB.identity: [
        _one_host("{0}.spec.rayClusterSpec"),
        _ENDLESS,
        Rule(
            condition="{0}.spec.?backoffLimit.orValue(0) == 0",
            message="AppWrapper starts a RayJob again when it fails, and counts one cluster: leave backoffLimit out",
        ),
    ],
}

_LONGEST_TRAIN_JOB: Final = 49
"""The most characters of a TrainJob's name plus the number of its last node. JobSet builds a pod's name from them,
which has at most 63 characters (v0.12.0, `pkg/webhooks/jobset_webhook.go`)."""

_ALONE: Final[Mapping[str, Sequence[Rule]]] = {
    PYTORCH_JOB.identity: [
        Rule(
            condition="{0}.spec.?runPolicy.?schedulingPolicy.?priorityClass.orValue('') in " + words(["", *PRIORITIES]),
            message=f"a job's priorityClass is one of {', '.join(PRIORITIES)}",
        ),
        Rule(
            condition="{0}.spec.?runPolicy.?cleanPodPolicy.orValue('None') in ['Running', 'All']",
            message="workers that outlive their PyTorchJob are not counted: set runPolicy.cleanPodPolicy to Running, "
            "or wrap the job in an AppWrapper",
        ),
    ],
    RAY_JOB.identity: [
        Rule(
            condition="{0}.spec.?ttlSecondsAfterFinished.orValue(0) == 0 && !has({0}.spec.deletionStrategy)",
            message="a cluster that outlives its RayJob is not counted: leave ttlSecondsAfterFinished and "
            "deletionStrategy out, or wrap the job in an AppWrapper",
        ),
        Rule(
            condition=f"{{0}}.spec.?backoffLimit.orValue(0) <= {_RAY_RETRIES}",
            message=f"a RayJob's backoffLimit is at most {_RAY_RETRIES}: a new cluster starts while the last one ends",
        ),
    ],
    TRAIN_JOB.identity: [
        Rule(
            condition=f"!{{0}}.metadata.name.endsWith('{JOB_SET_SUFFIX}')",
            message=f"only JobSets in AppWrappers have names that end in {JOB_SET_SUFFIX}: write another name",
        ),
        # Kueue counts a TrainJob's pods by creating a Workload of its name in a dry run, and does not suspend the job
        # if there is one (v0.19.2, `trainjob_controller.go`, PodSets).
        Rule(
            condition="!{0}.metadata.name.matches('-[0-9a-f]{5}$')",
            message="a name that ends in a hyphen and five hexadecimal digits could be that of a Workload: write "
            "another name",
        ),
        Rule(
            condition="{0}.metadata.name.size() + string(int({0}.spec.?trainer.?numNodes.orValue(1)) - 1).size() <= "
            f"{_LONGEST_TRAIN_JOB}",
            message=f"a TrainJob's name has at most {_LONGEST_TRAIN_JOB - 1} characters, {_LONGEST_TRAIN_JOB - 2} with "
            "more than 10 nodes, and so on: the names of its pods begin with it",
        ),
        *(
            Rule(
                condition=counted(f"{{0}}.spec.?trainer.?{number}.orValue(1)", least=1),
                message=f"a TrainJob's {number} is from 1 to {MOST_PODS}",
            )
            for number in ("numNodes", "numProcPerNode")
        ),
    ],
}
"""Rules for jobs outside AppWrappers. Kueue gives their quota to others when their status says that they are done."""

_OLD_KUEUE: Final = "this cluster's Kueue"
_UNCOUNTED: Final[Mapping[str, Sequence[Rule]]] = {
    RAY_CLUSTER.identity: [_one_host("{0}.spec", _OLD_KUEUE)],
    RAY_JOB.identity: [_one_host("{0}.spec.rayClusterSpec", _OLD_KUEUE)],
}
"""Rules for jobs in the queues of an old Kueue, which assigns GPUs that it does not count (red-hat-data-services/kueue,
rhoai-2.16, pkg/controller/jobs/rayjob/rayjob_controller.go, PodSets)."""

_OWN_CONTROLLER: Final = Rule(
    condition=" && ".join(
        f"{{0}}.?spec.{path}.orValue('{_CONTROLLERS[0]}') in {words(_CONTROLLERS)}"
        for path in ("?managedBy", "?runPolicy.?managedBy")
    ),
    message="a job is run by its own controller: leave managedBy out",
)


def wrapped() -> list[Rule]:
    """Return the rules for the contents of an AppWrapper."""
    return [*_for_kinds(_COUNTED), *_for_kinds(_WRAPPED), _OWN_CONTROLLER]


def alone(*, counts_ray: bool = True) -> list[Rule]:
    """Return the rules for a job outside AppWrappers. counts_ray: Kueue counts all pods of Ray kinds."""
    uncounted = {} if counts_ray else _UNCOUNTED
    return [*_for_kinds(_COUNTED), *_for_kinds(_ALONE), *_for_kinds(uncounted), _OWN_CONTROLLER]


def _for_kinds(rules: Mapping[str, Sequence[Rule]]) -> list[Rule]:
    return [
        Rule(condition=f"!{is_kind('{0}', kind)} || ({rule.condition})", message=rule.message)
        for kind, each in rules.items()
        for rule in each
    ]
