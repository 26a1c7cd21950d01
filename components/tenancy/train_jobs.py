"""The fields that a member may set in a TrainJob.

Kueue counts the pods of a TrainJob from its runtime and its patches, and Trainer makes the pods from the same (Kueue
v0.19.2, `pkg/controller/jobs/trainjob`; Trainer v2.3.0, `pkg/runtime`). Both accept many fields that no rule of this
platform checks, and each release adds some. The policy therefore refuses every field that is not listed here. The quota
gate checks the amounts and the number of nodes.
"""

from collections.abc import Mapping
from typing import Any, Final

from components.job_kinds import TRAIN_JOB
from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, json_size, words
from components.queueing.trainer import NODE, SNAPSHOT, priorities
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.callers import TRAINER
from components.tenancy.pod_templates import JOB_ITEMS, TEMPLATE_SIZE
from components.tenancy.promises import Promise

_ANY: Final = None
_LABELS: Final = ()
"""Labels of nodes may have any value, except the directives of strategic merge patches. Trainer merges patches with
them."""
_FILES: Final = {"optional": _ANY, "items": [{"key": _ANY, "path": _ANY}]}
_KEY: Final = {"name": _ANY, "key": _ANY, "optional": _ANY}
VOLUMES: Final = {
    "configMap": {"name": _ANY, **_FILES},
    "secret": {"secretName": _ANY, **_FILES},
    "emptyDir": {"medium": _ANY},
    "persistentVolumeClaim": {"claimName": _ANY, "readOnly": _ANY},
}
_POD: Final = {
    "volumes": [{"name": _ANY, **VOLUMES}],
    "containers": [
        {
            "name": _ANY,
            "volumeMounts": [{"name": _ANY, "mountPath": _ANY, "subPath": _ANY, "readOnly": _ANY}],
        }
    ],
    "imagePullSecrets": [{"name": _ANY}],
    "nodeSelector": _LABELS,
}
FIELDS: Final[Mapping[str, Any]] = {
    "runtimeRef": {"name": _ANY, "apiGroup": _ANY, "kind": _ANY},
    "trainer": {
        "image": _ANY,
        "command": _ANY,
        "args": _ANY,
        "env": [
            {
                "name": _ANY,
                "value": _ANY,
                "valueFrom": {
                    "configMapKeyRef": _KEY,
                    "secretKeyRef": _KEY,
                    "fieldRef": {"apiVersion": _ANY, "fieldPath": _ANY},
                },
            }
        ],
        "numNodes": _ANY,
        "numProcPerNode": _ANY,
        "resourcesPerNode": {"requests": _ANY, "limits": _ANY},
    },
    "runtimePatches": [
        {
            "manager": _ANY,
            "time": _ANY,
            "trainingRuntimeSpec": {
                "template": {
                    "spec": {"replicatedJobs": [{"name": _ANY, "template": {"spec": {"template": {"spec": _POD}}}}]}
                }
            },
        }
    ],
    "suspend": _ANY,
    "managedBy": _ANY,
}
"""The allowed fields of `spec`. A mapping allows only its keys, a list has items of one form, and None allows any
value. The quota gate has rules for numbers and amounts. After a TrainJob with a value that they cannot parse, Trainer
and Kueue could not list TrainJobs."""

_MESSAGES: Final = {
    "runtimeRef": "a TrainJob's runtimeRef has name, kind and apiGroup alone",
    "trainer": f"a TrainJob's trainer has {', '.join(FIELDS['trainer'])} alone; variables come from a key of a "
    "ConfigMap or Secret, and resourcesPerNode has requests and limits; leave out a field that is empty or false",
    "runtimePatches": f"a TrainJob's runtimePatches add {', '.join(VOLUMES)} as volumes, volumeMounts, "
    "imagePullSecrets and nodeSelector, with the fields in docs/workloads/trainjob.md; remove all else, and what is "
    "empty or false",
}

_EMPTY: Final = "[dyn(''), dyn([]), dyn({}), dyn(false)]"
"""Kueue omits an empty value when it starts a TrainJob. The API server rejects this as a change of an immutable field
(Kueue v0.19.2, `pkg/controller/jobs/trainjob`). The job would keep its quota and never run."""
_SPEC: Final = "dyn(object.spec)"  # a map, so that CEL can list its keys
_JOBS: Final = "patch.?trainingRuntimeSpec.?template.?spec.?replicatedJobs.orValue([])"
_CONTAINERS: Final = "job.?template.?spec.?template.?spec.?containers.orValue([])"
_QUEUES_PATCH: Final = "kueue.x-k8s.io/"
"""Prefix of Kueue's manager. Kueue's webhook adds its patch empty, and Kueue fills it at admission."""


def policy(trainer: str = TRAINER) -> AdmissionPolicy:
    """Return the policy for new TrainJobs and for copies of runtimes. The quota gate refuses changes of a TrainJob.

    trainer: Trainer's user name.
    """
    runtimes = tuple(priorities())
    return AdmissionPolicy(
        name=Promise.TRAIN_JOBS.policy,
        requests=[
            Requests(group=TRAIN_JOB.group, resources=[TRAIN_JOB.plural], operations=["CREATE"]),
            Requests(group="", resources=["configmaps"]),
        ],
        namespaces=TEAM_NAMESPACES,
        conditions={"others": f"request.userInfo.username != '{trainer}'"},
        validations=[
            Validation(
                expression=f"request.resource.resource != 'configmaps' || !object.metadata.name.endsWith('{SNAPSHOT}')",
                message=f"a ConfigMap whose name ends with {SNAPSHOT} is what Trainer runs a TrainJob by: choose "
                "another name",
            ),
            _of_train_jobs(
                json_size(f"'%s'.format([{_SPEC}])") + f" <= {TEMPLATE_SIZE}",
                f"a TrainJob has at most {TEMPLATE_SIZE // 1024} KiB, because each pod has a copy: keep programs in a "
                "ConfigMap",
            ),
            _of_train_jobs(
                f"'%s'.format([{_SPEC}]).findAll('[{{]').size() <= {JOB_ITEMS}",
                f"a TrainJob has at most {JOB_ITEMS} opening braces, one for each environment variable, because "
                "controllers keep all jobs in memory: remove some",
            ),
            _of_train_jobs(
                f"{_SPEC}.runtimeRef.name in {words(runtimes)} && "
                f"{_SPEC}.runtimeRef.?kind.orValue('ClusterTrainingRuntime') == 'ClusterTrainingRuntime' && "
                f"{_SPEC}.runtimeRef.?apiGroup.orValue('{TRAIN_JOB.group}') == '{TRAIN_JOB.group}'",
                f"a TrainJob's runtimeRef is one of the ClusterTrainingRuntimes {', '.join(runtimes)}",
            ),
            _of_train_jobs(
                f"{_SPEC}.?trainer.?image.orValue('') != ''",
                "a TrainJob names its image, for runtimes have none: set trainer.image",
            ),
            _of_train_jobs(_alone(_SPEC, dict.fromkeys(FIELDS)), f"a TrainJob's spec has {', '.join(FIELDS)} alone"),
            *(
                _of_train_jobs(f"!has({_SPEC}.{name}) || {_within(f'{_SPEC}.{name}', FIELDS[name])}", message)
                for name, message in _MESSAGES.items()
            ),
            _of_train_jobs(
                f"{_SPEC}.?runtimePatches.orValue([]).all(patch, {_JOBS}.all(job, job.name == '{NODE}' && "
                f"{_CONTAINERS}.all(container, container.name == '{NODE}')))",
                f"runtimePatches change the replicated job {NODE} and its container {NODE} alone: another one would be "
                "added without an image, and would never run",
            ),
            _of_train_jobs(
                f"{_SPEC}.?runtimePatches.orValue([]).all(patch, !patch.manager.startsWith('{_QUEUES_PATCH}') || "
                f"{_JOBS}.size() == 0)",
                f"runtimePatches of a manager of {_QUEUES_PATCH} are written by Kueue alone: name another manager",
            ),
        ],
    )


def _of_train_jobs(expression: str, message: str) -> Validation:
    return Validation(
        expression=f"request.resource.resource != '{TRAIN_JOB.plural}' || ({expression})", message=message
    )


def _within(path: str, fields: Any, depth: int = 0, *, is_full: bool = False) -> str:
    """Return CEL that is true if the value at a path has only these fields. is_full: and none of them is empty."""
    if fields == _LABELS:
        return f"{path}.all(key, !key.startsWith('$'))"
    if fields is _POD or fields is FIELDS["trainer"]:
        is_full = True
    if isinstance(fields, list):
        item = f"item{depth}"
        return f"{path}.all({item}, {_within(item, fields[0], depth + 1, is_full=is_full)})"
    inner = (
        f"(!has({path}.{name}) || {_within(f'{path}.{name}', each, depth, is_full=is_full)})"
        for name, each in fields.items()
        if each is not _ANY
    )
    return " && ".join([_alone(path, fields, is_full=is_full), *inner])


def _alone(path: str, fields: Mapping[str, Any], *, is_full: bool = False) -> str:
    full = f" && !(dyn({path}[key]) in {_EMPTY})" if is_full else ""
    return f"{path}.all(key, key in {words(tuple(fields))}{full})"
