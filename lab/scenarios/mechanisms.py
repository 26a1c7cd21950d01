"""Disables the mechanism of a promise for a while. A scenario that then succeeds is not a proof."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubernetes.client.exceptions import ApiException

from components.tenancy.promises import Promise
from lab.scenarios.attacks import ADMITTED, PLACED, admitted, placed
from lab.scenarios.size import TEAMS, Size, scenario_settings
from lab.scenarios.stage import asked
from runner.report import message
from tests.local.admission import ADMISSION, anew, unbound
from tests.local.environment import Cluster, Project, eventually
from tests.local.jobs import KUEUE, gpu_nodes
from tests.local.member import dry_run

SYSTEM: Final = "mlbatch-system"
Breaking = contextlib.AbstractContextManager[None]


@contextlib.contextmanager
def queues(cluster: Cluster, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[None]:
    """Change the specification of every team's ClusterQueue, for the length of the context."""
    names = [f"{team}-cluster-queue" for team in TEAMS]
    before = {name: cluster.existing(KUEUE, "ClusterQueue", name)["spec"] for name in names}
    for name, spec in before.items():
        cluster.patch(KUEUE, "ClusterQueue", name, {"spec": change(spec)})
    try:
        yield
    finally:
        for name, spec in before.items():
            cluster.patch(KUEUE, "ClusterQueue", name, {"spec": {key: spec.get(key) for key in change(spec)}})


def _large(spec: dict[str, Any]) -> dict[str, Any]:
    """Return resource groups with practically unlimited quota."""
    groups = [
        {
            **group,
            "flavors": [
                {**flavor, "resources": [{**item, "nominalQuota": "1M"} for item in flavor["resources"]]}
                for flavor in group["flavors"]
            ],
        }
        for group in spec["resourceGroups"]
    ]
    return {"resourceGroups": groups}


@contextlib.contextmanager
def stopped(cluster: Cluster, operator: str) -> Iterator[None]:
    """Stop a controller, for the length of the context."""
    selector = f"app.kubernetes.io/name={operator}"
    (found,) = cluster.list("apps/v1", "Deployment", SYSTEM, label_selector=selector)
    name, replicas = found["metadata"]["name"], found["spec"]["replicas"]

    def scaled(count: int) -> None:
        cluster.patch("apps/v1", "Deployment", name, {"spec": {"replicas": count}}, SYSTEM)
        eventually(
            f"{count} of {name} run",
            lambda: cluster.existing("apps/v1", "Deployment", name, SYSTEM)["status"].get("readyReplicas") or 0,
            lambda ready: ready == count,
        )

    scaled(0)
    try:
        yield
    finally:
        scaled(replicas)


@contextlib.contextmanager
def without_appwrapper(cluster: Cluster) -> Iterator[None]:
    """Stop AppWrapper and its webhooks, for the length of the context. With the webhooks, every job would be
    rejected.
    """
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    found = [
        {**item, "apiVersion": ADMISSION, "kind": kind}
        for kind in kinds
        for item in cluster.list(ADMISSION, kind)
        if item["metadata"]["name"].startswith("appwrapper-")
    ]
    for item in found:
        cluster.delete(ADMISSION, item["kind"], item["metadata"]["name"])
    try:
        with stopped(cluster, "appwrapper"):
            yield
    finally:
        for item in found:
            cluster.create(anew(item))


@contextlib.contextmanager
def without_fair_sharing(cluster: Cluster) -> Iterator[None]:
    """Make Kueue order jobs by priority and age, for the length of the context. Kueue reads the scope at its start."""
    with queues(cluster, lambda spec: {"admissionScope": None}):
        with stopped(cluster, "kueue"):
            pass
        yield
    with stopped(cluster, "kueue"):
        pass


@contextlib.contextmanager
def not_in_force(cluster: Cluster, promise: Promise, document: Mapping[str, Any], reason: str) -> Iterator[None]:
    """Disable an admission policy, for the length of the context.

    document: an object that only this policy rejects.
    reason: part of its error. The API server notices changes a moment later.
    """

    def refuses() -> bool:
        try:
            asked(lambda: dry_run(cluster, document))
        except ApiException as error:
            return reason in message(error)
        return False

    try:
        with unbound(cluster, promise.policy):
            eventually(f"{promise} is not in force", lambda: not refuses())
            yield
    finally:
        eventually(f"{promise} is in force", refuses)


@contextlib.contextmanager
def spread(project: Project, size: Size) -> Iterator[None]:
    """Make Kubernetes' own scheduler place the jobs, for the length of the context."""
    usual = scenario_settings(project, size)
    project.configure({**usual, "scheduling": {"packing": "none"}})
    project.up()
    try:
        yield
    finally:
        project.configure(usual)
        project.up()


MECHANISMS: Final[dict[str, Callable[[Cluster, Project, Size], Breaking]]] = {
    "quota": lambda cluster, *_: queues(cluster, _large),
    "cohort": lambda cluster, *_: queues(cluster, lambda spec: {"cohortName": None}),
    "reclaim": lambda cluster, *_: queues(cluster, lambda spec: {"preemption": {"reclaimWithinCohort": "Never"}}),
    "preemption": lambda cluster, *_: queues(cluster, lambda spec: {"preemption": {"withinClusterQueue": "Never"}}),
    "fair-sharing": lambda cluster, *_: without_fair_sharing(cluster),
    "packing": lambda _, project, size: spread(project, size),
    "slack-controller": lambda cluster, *_: stopped(cluster, "slack-controller"),
    "repair-controller": lambda cluster, *_: stopped(cluster, "repair-controller"),
    "appwrapper": lambda cluster, *_: without_appwrapper(cluster),
    "quota-gate": lambda cluster, *_: not_in_force(cluster, Promise.QUOTA_GATE, admitted("dodge", "blue"), ADMITTED),
    "pod-isolation": lambda cluster, *_: not_in_force(
        cluster, Promise.POD_ISOLATION, placed("placed", "blue", gpu_nodes(cluster)[0]), PLACED
    ),
}
"""Mechanism's name -> function that returns a context without it."""
