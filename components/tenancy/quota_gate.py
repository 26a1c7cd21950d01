"""The gate that every job waits behind: only Kueue and AppWrapper start jobs.

Members write the kinds of jobs that Kueue queues. These have the field that Kueue uses to start a job, the owner whose
quota covers the job, and the labels that attach the job to a Workload (Kueue v0.19.2, `reconciler.go` and `defaults.go`
of `pkg/controller/jobframework`).
"""

from typing import Final

from components import names
from components.job_kinds import APPWRAPPER, JOB_SET, PYTORCH_JOB, QUEUED, RAY_JOB, SUBMITTED, TRAIN_JOB
from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.tenancy import amounts, growing_jobs, pod_templates
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.callers import IS_PERSON, Gatekeepers
from components.tenancy.pod_templates import Rule
from components.tenancy.promises import Promise

_GROUPS: Final = dict.fromkeys((APPWRAPPER.group, PYTORCH_JOB.group, RAY_JOB.group, *(kind.group for kind in QUEUED)))
JOBS: Final = tuple((group, tuple(sorted(kind.plural for kind in QUEUED if kind.group == group))) for group in _GROUPS)
"""The jobs that Kueue queues: the resources of each API group."""

KNOWN: Final = (*(kind.identity for kind in SUBMITTED), JOB_SET.identity)
"""Kinds and versions that the rules for jobs support. People cannot create other kinds of these API groups."""
_ALLOWED_LABELS: Final = (names.QUEUE_LABEL, names.LONGEST_LABEL)
_GATE: Final = "({0}.?spec.?suspend.orValue(false) || {0}.?spec.?runPolicy.?suspend.orValue(false))"
_OWNERS: Final = "{0}.metadata.?ownerReferences.orValue([])"
LONGEST_END: Final = 30
"""Seconds that pods outside AppWrappers get to end, Kubernetes' default. Kueue frees the quota of such a job when the
job has finished, even if some of its pods still end. AppWrapper waits for them."""
_SHORT_END: Final = Rule(
    condition=f"{{0}}.?spec.?terminationGracePeriodSeconds.orValue({LONGEST_END}) <= {LONGEST_END}",
    message=f"pods outside an AppWrapper end within {LONGEST_END} s, because their quota is free when the job has "
    "finished: lower terminationGracePeriodSeconds, or wrap the job in an AppWrapper",
)


def policy(gpu_resource: str, gatekeepers: Gatekeepers) -> AdmissionPolicy:
    """Return the policy for new and changed jobs. gpu_resource: the resource name under which nodes offer GPUs."""
    return AdmissionPolicy(
        name=Promise.QUOTA_GATE.policy,
        requests=[Requests(group=group, resources=["*"], scope="Namespaced") for group in _GROUPS],
        namespaces=TEAM_NAMESPACES,
        variables={
            "person": IS_PERSON,
            "created": "request.operation == 'CREATE'",
            "templates": pod_templates.templates("object", alone=True),
        },
        validations=[
            Validation(
                expression=f"!variables.person || {pod_templates.identity('object')} in {words(KNOWN)}",
                message=f"members submit {', '.join(KNOWN)} alone: no rule counts the pods of other kinds and versions",
            ),
            Validation(
                expression=f"!variables.person || {_OWNERS.format('object')} == "
                f"(variables.created ? [] : {_OWNERS.format('oldObject')})",
                message="a job with another owner would run on that one's quota, or lose its Workload before its pods "
                "when that one is deleted: leave its ownerReferences as they are",
            ),
            Validation(
                expression=f"!variables.created || !(variables.person || {gatekeepers.makes_job_sets}) || "
                f"{_GATE.format('object')}",
                message="a job starts when its queue admits it: it is created suspended",
            ),
            Validation(
                expression=f"variables.created || request.resource.resource != '{TRAIN_JOB.plural}' || "
                f"!{_GATE.format('oldObject')} || {_GATE.format('object')} || "
                "object.?status.?jobsStatus.orValue([]).size() > 0",
                message="a TrainJob starts when Trainer has made its JobSet",
            ),
            Validation(
                expression=f"variables.created || {_GATE.format('object')} == {_GATE.format('oldObject')} || "
                f"{gatekeepers.is_one} || {gatekeepers.follows}",
                message="a job is started and suspended by its queue alone",
            ),
            Validation(
                expression="variables.created || !variables.person || object.spec == oldObject.spec",
                message="a submitted job is not changed: delete it, and submit it anew",
            ),
            Validation(
                expression="!variables.created || !variables.person || "
                + pod_templates.foreign_kueue_words("object.?metadata", labels=_ALLOWED_LABELS),
                message=f"of Kueue's labels and annotations a job has {' and '.join(_ALLOWED_LABELS)} alone",
            ),
            Validation(
                expression="variables.created || !variables.person || ("
                + " && ".join(_told_the_same(field) for field in ("labels", "annotations"))
                + ")",
                message="what a submitted job tells Kueue and KubeRay is not changed: delete it, and submit it anew",
            ),
            pod_templates.FEW_ITEMS.validation(
                "variables.templates", "!variables.created || !variables.person || ({rule})"
            ),
            pod_templates.FEW_CONTAINERS.validation(
                "[variables.templates]", "!variables.created || !variables.person || ({rule})"
            ),
            pod_templates.NO_RAY_WORDS.validation("object", "!variables.created || !variables.person || ({rule})"),
            *(
                rule.validation("object", "!variables.created || !variables.person || ({rule})")
                for rule in growing_jobs.alone(counts_ray=gatekeepers.counts_ray)
            ),
            *(
                rule.validation(
                    "pod", "!variables.created || !variables.person || variables.templates.all(pod, {rule})"
                )
                for rule in (*pod_templates.rules(gpu_resource), *amounts.TEMPLATE, _SHORT_END)
            ),
        ],
    )


def _told_the_same(field: str) -> str:
    """Return CEL that is true if a map of an object's metadata keeps its keys of Kueue and KubeRay."""
    new, old = f"object.metadata.?{field}", f"oldObject.metadata.?{field}"
    keys = (f"{each}.orValue({{}})" for each in (new, old))
    return " && ".join(
        f"{each}.all(key, (!key.contains('kueue.x-k8s.io/') && !key.startsWith('{pod_templates.RAY_WORDS}')) || "
        f"{new}[?key] == {old}[?key])"
        for each in keys
    )
