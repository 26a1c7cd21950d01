"""Find the pod templates in a job's manifest, and reject those that Kueue would count too low. In CEL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from components import names
from components.job_kinds import (
    DEPLOYMENT,
    JOB,
    JOB_SET,
    POD,
    PYTORCH_JOB,
    RAY_CLUSTER,
    RAY_JOB,
    STATEFUL_SET,
    TRAIN_JOB,
)
from components.kubernetes.admission import Validation, json_size, words
from components.scheduling.priorities import PRIORITIES

_KUEUE: Final = "kueue.x-k8s.io/"
_APPWRAPPER: Final = "workload.codeflare.dev/"
RAY_WORDS: Final = f"{RAY_CLUSTER.group}/"
"""Prefix of the labels and annotations that KubeRay uses to find the parts of a cluster and to decide how to treat it.
"""
_TOPOLOGY: Final = tuple(f"{_KUEUE}podset-{how}-topology" for how in ("required", "preferred", "unconstrained"))
"""Annotations of a pod set that requests nodes near to each other. Kueue's other annotations divide the pods by numbers
that AppWrapper does not check. Kueue before v0.18 crashed when it divided by 0 (`tas_flavor_snapshot.go`)."""


def _of_ray(cluster: str) -> tuple[str, str]:
    return f"{cluster}.headGroupSpec.template", f"{cluster}.workerGroupSpecs[].template"


TEMPLATES: Final[Mapping[str, Sequence[str]]] = {
    POD.identity: ("",),
    JOB.identity: ("spec.template",),
    DEPLOYMENT.identity: ("spec.template",),
    STATEFUL_SET.identity: ("spec.template",),
    JOB_SET.identity: ("spec.replicatedJobs[].template.spec.template",),
    PYTORCH_JOB.identity: ("spec.pytorchReplicaSpecs{}.template",),
    RAY_CLUSTER.identity: _of_ray("spec"),
    RAY_JOB.identity: (*_of_ray("spec.rayClusterSpec"), "spec.submitterPodTemplate"),
}
"""Paths of pod templates by kind. `[]` is each item of a list, and `{}` each value of a map. The paths are all fields
of the kind's CRD that contain a template. The kinds are those whose pods AppWrapper counts by itself, in the versions
that it supports (AppWrapper v1.2.2, `pkg/utils/utils.go`, InferPodSets)."""
_ALONE: Final = {
    TRAIN_JOB.identity: (
        "[{{'spec': {{'containers': [{{'resources': {0}.spec.?trainer.?resourcesPerNode.orValue({{}})}}]}}}}]"
    ),
}
"""Pod templates of the kinds outside AppWrappers. The runtime has the rest of a TrainJob's pods
(components/queueing/trainer.py)."""

COUNTED: Final = tuple(TEMPLATES)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A condition in CEL, with `{0}` for its subject, and the message of a violation."""

    condition: str
    message: str

    def validation(self, subject: str, within: str = "{rule}") -> Validation:
        """Return the rule for a subject as a policy's validation.

        within: CEL around the condition, with `{rule}` in the condition's place.
        """
        condition = self.condition.replace("{0}", subject)
        return Validation(expression=within.replace("{rule}", condition), message=self.message)


def identity(manifest: str) -> str:
    """Return CEL of a manifest's API version and kind, such as batch/v1/Job."""
    return f"({manifest}.apiVersion + '/' + {manifest}.kind)"


def is_kind(manifest: str, kind: str) -> str:
    """Return CEL that is true if a manifest has this kind."""
    version, _, name = kind.rpartition("/")
    return f"({manifest}.apiVersion == '{version}' && {manifest}.kind == '{name}')"


def templates(manifest: str, *, alone: bool = False) -> str:
    """Return CEL of the list of a manifest's pod templates. It is empty for kinds without pods.

    alone: include the kinds outside AppWrappers.
    """
    found = "[]"
    where = {kind: " + ".join(_at(manifest, path) for path in paths) for kind, paths in TEMPLATES.items()}
    if alone:
        where |= {kind: text.format(manifest) for kind, text in _ALONE.items()}
    for kind, lists in reversed(where.items()):
        found = f"({is_kind(manifest, kind)} ? dyn({lists}) : dyn({found}))"
    return found


def _at(manifest: str, path: str) -> str:
    """Return CEL of the list of values at a path of TEMPLATES. It is empty if the manifest lacks the path."""
    before, is_list, after = path.partition("[].")
    if is_list:
        return f"{_optional(manifest, before)}.orValue([]).map(each, each.{after})"
    before, is_map, after = path.partition("{}.")
    if is_map:
        return f"{_optional(manifest, before)}.orValue({{}}).map(key, {manifest}.{before}[key].{after})"
    return f"({_optional(manifest, path)}.hasValue() ? [{manifest}.{path}] : [])" if path else f"[{manifest}]"


def _optional(manifest: str, path: str) -> str:
    return manifest + "".join(f".?{name}" for name in path.split("."))


def foreign_kueue_words(metadata: str, *, labels: Sequence[str] = ()) -> str:
    """Return CEL that is true if an object's optional metadata has no word of Kueue except its queue.

    Kueue's labels and annotations can attach a job to an existing Workload, let it grow, or raise its priority.
    labels: allowed labels.
    """
    key = f"(!key.contains('{_KUEUE}')"
    return (
        f"{metadata}.?labels.orValue({{}}).all(key, {key} || key in {words(labels)})) && "
        f"{metadata}.?annotations.orValue({{}}).all(key, {key} || key in {words(_TOPOLOGY)}))"
    )


def has_no_counted_labels(labels: str) -> str:
    """Return CEL that is true if pod labels have none that Kueue and AppWrapper use to find and count pods."""
    return f"{labels}.all(key, !key.contains('{_KUEUE}') && !key.startsWith('{_APPWRAPPER}'))"


def no_appwrapper_labels(labels: str) -> str:
    """Return CEL that is true if an object's labels have none that AppWrapper uses to find what it created."""
    return f"{labels}.all(key, !key.startsWith('{_APPWRAPPER}'))"


def _has_no_ray_words(metadata: str) -> str:
    """Return CEL that is true if an object's optional metadata has no word of KubeRay."""
    maps = (f"{metadata}.?{field}.orValue({{}})" for field in ("labels", "annotations"))
    return " && ".join(f"{each}.all(key, !key.startsWith('{RAY_WORDS}'))" for each in maps)


TEMPLATE_SIZE: Final = 32 * 1024
"""The most bytes of a pod template as JSON."""
JOB_ITEMS: Final = 1_000
"""The most opening braces in the notation of a job's pod templates. An empty toleration has two bytes there, and about
70 in each controller that has the job in memory."""
FEW_ITEMS: Final = Rule(
    condition=f"'%s'.format([{{0}}]).findAll('[{{]').size() <= {JOB_ITEMS}",
    message=f"the pod templates of a job have at most {JOB_ITEMS} opening braces, one for each environment "
    "variable or mount, because controllers keep all jobs in memory: remove some, and keep programs in a ConfigMap",
)
"""Rule for the list of a job's pod templates."""

CONTAINERS: Final = 32
"""The most containers in all pod templates of a job. Kueue v0.19.2 needs 7 KiB for each: its copies of the Workload,
with the defaults of the LimitRange."""
_PER_TEMPLATE: Final = " + ".join(
    f"pod.?spec.?{field}.orValue([]).size()" for field in ("containers", "initContainers", "ephemeralContainers")
)
FEW_CONTAINERS: Final = Rule(
    condition=f"{{0}}.map(pods, pods.map(pod, {_PER_TEMPLATE}).sum()).sum() <= {CONTAINERS}",
    message=f"the pod templates of a job together have at most {CONTAINERS} containers, because Kueue keeps all "
    "jobs in memory: remove some",
)
"""Rule for the lists of pod templates of a job's parts."""


def rules(gpu_resource: str) -> list[Rule]:
    """Return the rules for every pod template of a job. gpu_resource: resource name under which nodes offer GPUs."""
    containers = "({0}.spec.?containers.orValue([]) + {0}.spec.?initContainers.orValue([]))"
    asked = "container.?resources.?{part}.orValue({{}}).all(key, key == '{gpu}' || key.lowerAscii() != '{lower}')"
    parts = [asked.format(part=part, gpu=gpu_resource, lower=gpu_resource.lower()) for part in ("requests", "limits")]
    none = "container.?resources.?{part}.orValue({{}}).all(key, key.lowerAscii() != '{gpu}')"
    cards = " && ".join(none.format(part=part, gpu=names.GPU) for part in ("requests", "limits"))
    shared = Rule(
        condition=f"{containers}.all(container, {cards})",
        message=f"several pods share a GPU here, and nobody gets one whole: ask for {gpu_resource} and not {names.GPU}",
    )
    return [
        Rule(
            condition=json_size("'%s'.format([{0}])") + f" <= {TEMPLATE_SIZE}",
            message=f"a pod template has at most {TEMPLATE_SIZE // 1024} KiB, because each pod has a copy: keep "
            "programs in a ConfigMap",
        ),
        Rule(
            condition=f"{containers}.all(container, {' && '.join(parts)})",
            message=f"the resource's name is {gpu_resource}: a job that asks for another spelling would wait for ever",
        ),
        *([shared] if gpu_resource != names.GPU else []),
        Rule(
            condition=f"{{0}}.spec.?priorityClassName.orValue('') in {words(['', *PRIORITIES])}",
            message=f"a pod's priorityClassName is one of {', '.join(PRIORITIES)}",
        ),
        Rule(
            condition="!has({0}.spec.resources) && !has({0}.spec.resourceClaims)",
            message="resources of a pod as a whole are not counted: ask for them in its containers",
        ),
        Rule(
            condition=f"{containers}.all(container, !has(container.restartPolicyRules)) && "
            "{0}.spec.?containers.orValue([]).all(container, !has(container.restartPolicy))",
            message="a pod ends when its containers do, by the pod's own restartPolicy: leave a container's "
            "restartPolicy and restartPolicyRules out",
        ),
        Rule(
            condition="{0}.?metadata.?finalizers.orValue([]).size() == 0",
            message="a job's pods have no finalizers: they would hold back its end",
        ),
        Rule(
            condition=no_appwrapper_labels("{0}.?metadata.?labels.orValue({})"),
            message=f"labels of {_APPWRAPPER} on pods are written by AppWrapper alone, which counts its pods by them",
        ),
        NO_RAY_WORDS,
        Rule(
            condition=foreign_kueue_words("{0}.?metadata"),
            message=f"labels and annotations of {_KUEUE} on pods are written by Kueue alone, but for "
            + ", ".join(_TOPOLOGY),
        ),
    ]


NO_RAY_WORDS: Final = Rule(
    condition=_has_no_ray_words("{0}.?metadata"),
    message=f"labels and annotations of {RAY_WORDS} are written by KubeRay alone, which goes by them",
)
WRAPPED_RULES: Final = (
    Rule(
        condition="{0}.spec.?initContainers.orValue([]).all(container, !has(container.restartPolicy))",
        message="AppWrapper counts init containers as if they ended: a sidecar belongs among the containers",
    ),
)
"""More rules for the pod templates in AppWrappers. AppWrapper does not pass the restart policy of init containers to
Kueue (v1.2.2, `pkg/utils/utils.go`, copyContainers)."""
