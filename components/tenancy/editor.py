"""The rights of a team's members in the team's namespace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import names
from components.job_kinds import (
    APPWRAPPER,
    ENDLESS,
    JOB,
    JOB_SET,
    POD,
    POD_GROUP,
    PYTORCH_JOB,
    RAY_CLUSTER,
    RAY_JOB,
    TRAIN_JOB,
    JobKind,
)
from components.kubernetes import rbac
from components.kubernetes.manifests import Manifest

_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_END: Final = ("delete", "get", "list", "watch")


def _rule(verbs: Sequence[str], *kinds: JobKind) -> tuple[str, Sequence[str], Sequence[str]]:
    """Return the rule for kinds of one API group."""
    (group,) = {kind.group for kind in kinds}
    return group, tuple(kind.plural for kind in kinds), verbs


RULES: Final = (
    _rule(_END, POD),
    _rule(_END, *ENDLESS),
    ("", ("services", "configmaps", "persistentvolumeclaims"), _WRITE),
    ("", ("secrets",), ("create", "delete")),
    ("kueue.x-k8s.io", ("*",), _READ),
    ("visibility.kueue.x-k8s.io", ("localqueues/pendingworkloads",), ("get",)),
    _rule(_WRITE, PYTORCH_JOB),
    _rule(_END, RAY_JOB, RAY_CLUSTER),
    _rule(_WRITE, TRAIN_JOB),
    _rule(_READ, JOB_SET),
    _rule(_END, JOB),
    _rule(_WRITE, APPWRAPPER),
    ("scheduling.k8s.io", ("priorityclasses",), _READ),
    _rule(_WRITE, POD_GROUP),
    ("", ("events",), _READ),
    ("", ("namespaces", "pods/log"), ("get",)),
    ("", ("pods/portforward",), ("create",)),
)
"""API group, resources and verbs. Members cannot create pods, Jobs or Deployments directly, because everything that
runs must pass through a queue. Source: project-codeflare/mlbatch, `setup.k8s/mlbatch-edit-role.yaml`, except for
TrainJobs, their JobSets, the order of pending jobs, and the three rules below."""
READS_SECRETS: Final = ("", ("secrets",), _WRITE)
"""The response to a change of a Secret contains the Secret. Members who cannot read Secrets therefore cannot change
them."""
UNWRAPPED_RAY: Final = _rule(_WRITE, RAY_JOB, RAY_CLUSTER)
"""Ray kinds outside AppWrappers. KubeRay decides from the answers of the team's pods that such a job has ended, which
returns its quota."""
ENTERS_PODS: Final = ("", ("pods/exec",), ("create",))


OF_PROJECTS: Final = (
    ("route.openshift.io", ("routes",), _END),
    ("", ("projects",), ("get",)),
    ("project.openshift.io", ("projects",), ("get",)),
)
"""The rights of a member on OpenShift. `oc project` and the console read the project, and OpenShift AI publishes the
dashboards of Ray clusters as Routes. Source: project-codeflare/mlbatch, `setup.RHOAI-v2.19/mlbatch-edit-role.yaml`."""


@dataclass(frozen=True, kw_only=True)
class EditorRoleArgs:
    """The rights beyond RULES. MLBatch's roles contain all of them.

    reads_secrets: READS_SECRETS.
    enters_pods: ENTERS_PODS.
    unwrapped_ray: UNWRAPPED_RAY.
    has_projects: OF_PROJECTS.
    """

    reads_secrets: bool = False
    unwrapped_ray: bool = False
    enters_pods: bool = False
    has_projects: bool = False


class EditorRole(pulumi.ComponentResource):
    """Create the ClusterRole mlbatch-edit. Team binds it to members."""

    name: pulumi.Output[str]

    def __init__(self, name: str, args: EditorRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:tenancy:EditorRole", name, None, opts)
        document = rbac.role(names.EDITOR_ROLE, rules(args))
        self.name = Manifest(names.EDITOR_ROLE, document, pulumi.ResourceOptions(parent=self)).object_name
        self.register_outputs({"name": self.name})


def rules(args: EditorRoleArgs) -> Sequence[dict[str, Any]]:
    """Return the role's rules in the form of the Kubernetes API."""
    chosen = [*RULES]
    if args.reads_secrets:
        chosen.append(READS_SECRETS)
    if args.enters_pods:
        chosen.append(ENTERS_PODS)
    if args.unwrapped_ray:
        chosen.append(UNWRAPPED_RAY)
    if args.has_projects:
        chosen += OF_PROJECTS
    return [rbac.rule(*each) for each in chosen]
