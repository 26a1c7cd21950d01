"""Limit AppWrappers to kinds that run only counted pods and grant no rights.

AppWrapper creates its contents with its own permissions, which are wider than a member's.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from components.job_kinds import APPWRAPPER, ENDLESS, JOB, JOB_SET, POD, POD_GROUP, RAY_CLUSTER, RUN
from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.queueing.trainer import SNAPSHOT
from components.tenancy import amounts, growing_jobs, nulls, pod_templates
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.growing_jobs import JOB_SET_SUFFIX
from components.tenancy.pod_templates import WRAPPED_RULES, Rule
from components.tenancy.promises import Promise

WRAPPED_KINDS: Final = (
    POD.identity,
    "v1/Service",
    "v1/ConfigMap",
    *(kind.identity for kind in RUN),
    POD_GROUP.identity,
)
"""Kinds that every AppWrapper may contain. AppWrapper counts the pods of these kinds. Members may also create the kinds
without pods directly."""

FURTHER_KINDS: Final = tuple(kind.identity for kind in ENDLESS)
"""Kinds that AppWrapper counts and may create, but that are not jobs, because they never end."""

_GENERATED: Final = "-[bcdfghjklmnpqrstvwxz2456789]{5}$"
"""End of generated names (k8s.io/apimachinery, pkg/util/rand, SafeEncodeString)."""
_MADE_AGAIN: Final = {
    "v1/ConfigMap": f"([.]crt|-ca-bundle|-cabundle|-ca-root-cert|{SNAPSHOT})$",
    POD.identity: "(-(master|worker)-[0-9]+|-head)$",
    "v1/Service": "(-(master|worker)-[0-9]+|-head-svc|-headless)$",
}
"""Ends of the names of objects that controllers of Kubernetes, OpenShift, PyTorchJobs, Ray and TrainJobs make again
when AppWrapper deletes them. AppWrapper would delete them forever, and keep its quota."""
_OF_JOB_SETS: Final = f"(-(node|launcher|dataset-initializer|model-initializer)|{JOB_SET_SUFFIX}-.*)-[0-9]+$"
"""End of the names of a JobSet's Jobs: its name, the replicated job's and a number. Trainer's runtimes have these
replicated jobs (kubeflow/trainer v2.3.0, manifests/base/runtimes)."""

COMPONENTS: Final = 16
"""The most components of an AppWrapper. AppWrapper has one worker. It creates all components of a job in one pass, and
updates the AppWrapper's status twice for each (v1.2.2, `internal/controller/appwrapper/resource_management.go`)."""
_FEW: Final = f"object.spec.components.size() <= {COMPONENTS}"

REFUSED_KINDS: Final = {
    "v1/PersistentVolumeClaim": "whoever else mounts a claim would hold back the end of the job that contains it",
    "v1/Secret": "AppWrapper could not look after it without reading the Secrets of the whole cluster",
}
"""Kinds that members create separately, and the reason. Kubernetes keeps a PVC while any pod mounts it, and AppWrapper
keeps a job's quota until all its parts are deleted. A small job could therefore keep the quota of a large one, and the
large job's owner could not change that. AppWrapper also caches the kinds that it contains: it lists and watches
them in all namespaces (v1.2.2, `getComponentStatus`). Upstream's role also has no right to create these kinds.
"""

_LONGEST_NAME: Final = 63
"""Characters of a label's value. AppWrapper writes its name into a label of all that it creates."""


def policy(further: Sequence[str], gpu_resource: str) -> AdmissionPolicy:
    """Return the policy for new AppWrappers. The quota gate's policy rejects changes of their contents.

    further: more allowed kinds.
    gpu_resource: resource name under which nodes offer GPUs.
    """
    allowed = [*WRAPPED_KINDS, *further]
    foreign = f"variables.manifests.filter(item, !({pod_templates.identity('item')} in {words(allowed)}))"
    listed = f"{foreign}.map(item, {pod_templates.identity('item')}).join(', ')"
    metadata = "{0}.?metadata"
    own = [
        Rule(
            condition=f"{metadata}.?namespace.orValue(request.namespace) == request.namespace",
            message="what an AppWrapper contains is in its own namespace",
        ),
        Rule(
            condition="{0}.?metadata.?name.hasValue() && !{0}.?metadata.?generateName.hasValue()",
            message="what an AppWrapper contains has a name, and no generateName: AppWrapper would not find it again",
        ),
        *_names_of_others(),
        Rule(
            condition=f"!{pod_templates.is_kind('{0}', 'v1/Service')} || "
            "{0}.?spec.?type.orValue('ClusterIP') == 'ClusterIP'",
            message="a Service of type LoadBalancer or NodePort would hold back the end of its AppWrapper: create it "
            "before the AppWrapper",
        ),
        Rule(
            condition=f"{metadata}.?finalizers.orValue([]).size() == 0",
            message="what an AppWrapper contains has no finalizers: they would hold back its end",
        ),
        Rule(
            condition=f"{metadata}.?ownerReferences.orValue([]).size() == 0",
            message="what an AppWrapper contains belongs to nothing else",
        ),
        Rule(
            condition=pod_templates.foreign_kueue_words(metadata),
            message="an AppWrapper is queued as a whole: what it contains has no labels of kueue.x-k8s.io",
        ),
        Rule(
            condition=pod_templates.no_appwrapper_labels(f"{metadata}.?labels.orValue({{}})"),
            message=f"labels of {APPWRAPPER.group} on what an AppWrapper contains are written by AppWrapper alone",
        ),
        pod_templates.NO_RAY_WORDS,
        *growing_jobs.wrapped(),
    ]
    template_rules = [*pod_templates.rules(gpu_resource), *WRAPPED_RULES, *amounts.TEMPLATE]
    return AdmissionPolicy(
        name=Promise.WRAPPED_KINDS.policy,
        requests=[Requests(group=APPWRAPPER.group, resources=[APPWRAPPER.plural], operations=["CREATE"])],
        namespaces=TEAM_NAMESPACES,
        variables={
            # Without this bound, the API server would work for seconds on an AppWrapper that it then rejects.
            "manifests": f"{_FEW} ? object.spec.components.map(component, component.template) : []",
            "empty": nulls.EMPTY,
            "templates": f"variables.manifests.map(item, {pod_templates.templates('item')})",
        },
        validations=[
            nulls.VALIDATION,
            Validation(
                expression=f"object.metadata.name.size() <= {_LONGEST_NAME}",
                message=f"an AppWrapper's name has at most {_LONGEST_NAME} characters, because it is a label of the "
                "job's pods: write a shorter one",
            ),
            Validation(
                expression=_FEW,
                message=f"an AppWrapper has at most {COMPONENTS} components, because AppWrapper creates those of all "
                "jobs one after the other: submit several AppWrappers",
            ),
            *(
                rule.validation("variables.templates")
                for rule in (pod_templates.FEW_ITEMS, pod_templates.FEW_CONTAINERS)
            ),
            *(
                Validation(
                    expression=f"variables.manifests.all(item, !{pod_templates.is_kind('item', kind)})",
                    message=f"{why}: create the {kind.rpartition('/')[2]} by itself, before the AppWrapper",
                )
                for kind, why in REFUSED_KINDS.items()
            ),
            Validation(
                expression=f"{foreign}.size() == 0",
                message=f"an AppWrapper contains {', '.join(allowed)} alone",
                message_expression=f"'an AppWrapper may not contain ' + {listed} + '; allowed: {', '.join(allowed)}'",
            ),
            Validation(
                expression="object.spec.components.all(component, !has(component.podSetInfos))",
                message="podSetInfos are Kueue's to write",
            ),
            Validation(
                expression="object.spec.components.all(component, component.?podSets.orValue([]).size() == 0)",
                message="AppWrapper finds the pods of all that it may contain by itself: leave podSets out",
            ),
            *(rule.validation("item", "variables.manifests.all(item, {rule})") for rule in own),
            *(
                rule.validation("pod", "variables.templates.all(pods, pods.all(pod, {rule}))")
                for rule in template_rules
            ),
        ],
    )


def _names_of_others() -> Iterator[Rule]:
    """Yield rules that no wrapped object has the name of one that another controller makes.

    AppWrapper would take such an object for its own if the owner has the AppWrapper's name, or else fail, and keep its
    quota until the object is gone.
    """
    name = "{0}.metadata.name"
    yield Rule(
        condition=f"!{pod_templates.is_kind('{0}', JOB_SET.identity)} || {name}.endsWith('{JOB_SET_SUFFIX}')",
        message=f"the name of a JobSet in an AppWrapper ends in {JOB_SET_SUFFIX}, because Trainer names JobSets "
        "like TrainJobs",
    )
    yield Rule(
        condition=f"!{pod_templates.is_kind('{0}', JOB.identity)} || !{name}.matches('{_OF_JOB_SETS}')",
        message="a Job of this name could be one of a JobSet: write another name",
    )
    for kind, ends in _MADE_AGAIN.items():
        yield Rule(
            condition=f"!{pod_templates.is_kind('{0}', kind)} || !{name}.matches('{ends}')",
            message=f"another controller could make a {kind.rpartition('/')[2]} of this name again and again: write "
            "another name",
        )
    generated = f"{pod_templates.is_kind('{0}', POD.identity)} || {pod_templates.is_kind('{0}', RAY_CLUSTER.identity)}"
    yield Rule(
        condition=f"!({generated}) || !{name}.matches('{_GENERATED}')",
        message="a name that ends like a generated one could be that of another pod or Ray cluster: write another",
    )
