"""Volcano: starts the pods of an MPI job together, outside all teams' quotas.

Kueue does not count Volcano's jobs. Quotas would still promise the GPUs of these jobs to teams. The jobs therefore
never run in a team's namespace, and the quotas must exclude what they need.

Source of use, service account and binding: edwardsp/ai-on-aks, which installs Volcano 1.7 from a branch. That release
is out of support. volcano-sh/volcano, README.md lists the chart's versions and their Kubernetes versions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pulumi

from components.artifacts import LocatedChart
from components.kubernetes.charts import Chart, ChartArgs
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.rbac import READ, Account, rule
from components.kubernetes.resource_quota import critical_pods
from components.kubernetes.resources import Resources
from components.layer import Layer
from components.workloads.volcano_job import LAUNCHER_ACCOUNT

NAMESPACE: Final = "volcano-system"
QUEUE: Final = "workloads"
RELEASE: Final = "volcano"
RESOURCES: Final = Resources(cpu_request="100m", memory_request="128Mi", cpu_limit="1", memory_limit="1Gi")


class LauncherView(StrEnum):
    """Objects that the launchers of MPI jobs can read through the API."""

    PODS = "pods"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class VolcanoArgs:
    """The arguments of Volcano.

    namespace: of the jobs. It must exist and not be a team's. It is plain, because the chart's values are.
    queue: queue of the jobs. Its weight counts only against other Volcano queues.
    launcher_view: PODS lets a job's launcher list the pods of its namespace. ALL binds Kubernetes' ClusterRole `view`,
    as edwardsp/ai-on-aks does: the launcher can then read all objects of the namespace except Secrets and roles.
    """

    chart: LocatedChart
    namespace: str
    queue: str = QUEUE
    launcher_view: LauncherView = LauncherView.PODS
    nodes: NodeGroup = ANYWHERE


class Volcano(Layer):
    """Install Volcano into volcano-system, with one queue and the service account for MPI launchers."""

    def __init__(self, name: str, args: VolcanoArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:scheduling:Volcano", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        system = Manifest(f"{name}/Namespace", namespace_body(NamespaceArgs(name=NAMESPACE)), child)
        in_it = pulumi.ResourceOptions(parent=self, depends_on=[system])
        critical = Manifest(f"{name}/ResourceQuota", critical_pods(NAMESPACE), in_it)
        chart = Chart(
            name,
            ChartArgs(chart=args.chart, namespace=system.object_name, release=RELEASE, values=values(args)),
            pulumi.ResourceOptions(parent=self, depends_on=[critical]),
        )
        made = [
            Manifest(f"{name}/Queue", queue(args.queue), pulumi.ResourceOptions(parent=self, depends_on=chart.ready))
        ]
        for document in launcher_access(args.namespace, args.launcher_view):
            replaced = ["roleRef"] if document["kind"] == "RoleBinding" else None
            options = pulumi.ResourceOptions(
                parent=self, replace_on_changes=replaced, delete_before_replace=True if replaced else None
            )
            made.append(Manifest(f"{name}/{document['kind']}", document, options))
        self.ready = [*chart.ready, *made]
        self.register_outputs({"queue": args.queue})


def values(args: VolcanoArgs) -> Mapping[str, Any]:
    """Return the chart's values.

    Its webhooks fail closed. They apply only to the jobs' namespace, so that a failed Volcano does not block others.
    """
    share = {key: dict(part) for key, part in RESOURCES.body().items()}
    tolerations = [dict(toleration) for toleration in args.nodes.tolerations]
    watched = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [args.namespace]}
    return {
        "basic": {"image_pull_policy": "IfNotPresent"},
        "custom": {
            "admission_resources": share,
            "controller_resources": share,
            "scheduler_resources": share,
            "webhooks_namespace_selector_expressions": [watched],
            **({"default_ns": dict(args.nodes.node_selector)} if args.nodes.node_selector else {}),
            **({"default_tolerations": tolerations} if tolerations else {}),
        },
    }


def queue(name: str) -> Document:
    """Return the queue of the jobs."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True},
    }


def launcher_access(namespace: pulumi.Input[str], view: LauncherView) -> list[Document]:
    """Return the service account of MPI launchers and its rights."""
    account = Account(name=LAUNCHER_ACCOUNT, namespace=namespace)
    if view is LauncherView.ALL:
        return [account.document(), account.bound("view", namespace, name="default-view", of_cluster=True)]
    return [account.document(), *account.granted([rule("", ["pods"], READ)], namespace)]
