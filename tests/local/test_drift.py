"""Manual changes in a running cluster: found with path and author, and reverted. Changes of controllers are ignored.

The tests of this module run in order on the dev stack, which is installed once.
"""

import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kubernetes.dynamic.exceptions import ForbiddenError

from components.tables import Table
from drift.check import Finding, check
from drift.cluster import connected
from drift.compare import render
from drift.state import read
from emulator.paths import Paths
from runner import webhooks
from runner.environment import inherited
from tests.local.environment import ROOT, Cluster, Project, dev_settings, drift, eventually, parts
from tests.local.jobs import KUEUE, running
from tests.local.standing import Standing

RBAC = "rbac.authorization.k8s.io/v1"
ADMISSION = "admissionregistration.k8s.io/v1"
SYSTEM = "mlbatch-system"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A write to one object. test_drift.yaml describes the fields."""

    object: str
    patch: list[dict[str, Any]] | dict[str, Any]
    path: str | None = None
    recorded: bool = True
    manager: str = "kubectl-edit"
    subresource: str | None = None


class _Changes(Table):
    by_hand: tuple[Change, ...]
    follows: frozenset[tuple[str, str, str | None]]
    at_run_time: tuple[Change, ...]


CHANGES = _Changes.load(__name__)
(SCALE,) = (change for change in CHANGES.at_run_time if change.subresource == "scale")
DELETED = (
    f"{RBAC} RoleBinding red/bob",
    f"v1 ConfigMap {SYSTEM}/appwrapper-operator-config",
    "v1 LimitRange red/requests",
    f"{ADMISSION} ValidatingAdmissionPolicyBinding mlbatch-team-lending-scope",
)


def title(named: str) -> str:
    """Return kind, namespace and name of an object in the notation of test_drift.yaml."""
    return named.partition(" ")[2]


def write(cluster: Cluster, change: Change) -> None:
    content = "application/json-patch+json" if isinstance(change.patch, list) else "application/merge-patch+json"
    api, kind, name, namespace = parts(change.object)
    resource = cluster.kind(api, kind)
    target = getattr(resource, change.subresource) if change.subresource else resource
    cluster.client.patch(
        target,
        name=name,
        namespace=namespace,
        body=change.patch,
        content_type=content,
        field_manager=change.manager,
    )


@pytest.fixture(scope="module", autouse=True)
def project(standing: Standing, cluster: Cluster) -> Project:
    project = standing.up("dev", lambda project: dev_settings(project.mirror))
    running(cluster, "blue", "sample-gang", pods=2)
    return project


def found(project: Project, paths: Paths) -> dict[str, Finding]:
    """Return the objects that drifted or could not be compared, by title."""
    state = read(project.engine.read_state())
    with connected(paths.kubeconfig, None) as cluster:
        findings = check(cluster, state.objects)
    return {finding.declared.title: finding for finding in findings if finding.drifted or finding.trouble}


def test_a_new_stack_has_no_drift(project: Project) -> None:
    done = drift(project)
    assert (done.returncode, done.stderr) == (0, "")
    assert "As declared: all of" in done.stdout


def test_changes_by_controllers_are_not_drift(project: Project, cluster: Cluster, paths: Paths) -> None:
    """Rotated certificates, quota figures and defaults of kinds exist from the beginning."""
    hooks = cluster.get(ADMISSION, "MutatingWebhookConfiguration", "kueue-mutating-webhook-configuration")
    assert hooks is not None
    assert all(hook["clientConfig"]["caBundle"] for hook in hooks["webhooks"])
    queue = cluster.get(KUEUE, "ClusterQueue", "red-cluster-queue")
    assert queue is not None
    assert queue["metadata"]["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]
    assert len(CHANGES.at_run_time) >= 30
    for change in CHANGES.at_run_time:
        write(cluster, change)
    left = found(project, paths)
    # The stack declares the number, so a scale by another owner is drift, unless the program ignores it.
    scaled = left.pop(title(SCALE.object))
    assert [(render(each.path), each.writer and each.writer.manager) for each in scaled.differences] == [
        ("spec.replicas", SCALE.manager)
    ]
    assert left == {}
    write(cluster, replace(SCALE, patch={"spec": {"replicas": 1}}))
    assert found(project, paths) == {}


def test_a_manual_change_is_named_with_its_writer(project: Project, cluster: Cluster, paths: Paths) -> None:
    assert len(CHANGES.by_hand) >= 30
    for change in CHANGES.by_hand:
        write(cluster, change)
    left = found(project, paths)
    assert not [finding.trouble for finding in left.values() if finding.trouble]
    seen = {
        (named, render(each.path), each.writer.manager if each.writer else None)
        for named, finding in left.items()
        for each in finding.differences
    }
    expected = {
        (title(change.object), change.path, change.manager if change.recorded else None) for change in CHANGES.by_hand
    }
    assert seen == expected | CHANGES.follows


def test_the_command_reports_a_change_and_reverts_it(project: Project, cluster: Cluster, paths: Paths) -> None:
    done = drift(project)
    assert done.returncode == 1
    assert 'live      {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}' in done.stdout
    assert "mallory" not in drift(project, "--no-values").stdout.replace('[name="mallory"]', "")
    done = drift(project, "--fix")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    rolled_out(cluster)
    assert found(project, paths) == {}
    queue = cluster.existing(KUEUE, "ClusterQueue", "red-cluster-queue")
    cpus = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert (cpus["name"], cpus["nominalQuota"]) == ("cpu", "224")


def test_a_changed_default_priority_is_reverted_with_the_declared_one(
    project: Project, cluster: Cluster, paths: Paths
) -> None:
    """A cluster has at most one default. The declared one can be compared only after the other is reverted."""

    def make_default() -> bool:
        try:
            cluster.patch("scheduling.k8s.io/v1", "PriorityClass", "low-priority", {"globalDefault": True})
        except ForbiddenError:  # the API server still has the other one
            return False
        return True

    cluster.patch("scheduling.k8s.io/v1", "PriorityClass", "default-priority", {"globalDefault": False})
    eventually("another class is the default", make_default)
    assert project.run("up", "--yes", "--skip-preview").returncode != 0
    assert cluster.get("scheduling.k8s.io/v1", "PriorityClass", "default-priority") is not None
    done = drift(project, "--fix")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert found(project, paths) == {}
    project.up()


def test_readers_of_a_reverted_configmap_are_restarted(project: Project, cluster: Cluster, paths: Paths) -> None:
    """Kueue may have started with the changed configuration, and would keep it."""
    config = cluster.existing("v1", "ConfigMap", "kueue-manager-config", SYSTEM)
    ((key, text),) = config["data"].items()
    patch = {"data": {key: f"{text}\n# by hand\n"}}
    write(cluster, Change(object=f"v1 ConfigMap {SYSTEM}/kueue-manager-config", patch=patch))
    pods = kueue_pods(cluster)
    done = drift(project, "--fix")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "+# by hand\n" in done.stdout
    restarted = f"Deployment {SYSTEM}/kueue-controller-manager: restarted, as it reads ConfigMap {SYSTEM}/"
    assert [line for line in done.stdout.splitlines() if "restarted" in line] == [
        f"{restarted}kueue-manager-config, which was restored"
    ]
    rolled_out(cluster)
    assert kueue_pods(cluster)
    assert not kueue_pods(cluster) & pods
    assert found(project, paths) == {}


def test_deleted_and_immutable_objects_are_created_again(project: Project, cluster: Cluster, paths: Paths) -> None:
    for named in DELETED:
        cluster.delete(*parts(named))
    binding = cluster.get(RBAC, "RoleBinding", "alice", "blue")
    assert binding is not None
    cluster.delete(RBAC, "RoleBinding", "alice", "blue")
    grants_all = {**binding["roleRef"], "name": "cluster-admin"}
    cluster.create({**binding, "metadata": {"name": "alice", "namespace": "blue"}, "roleRef": grants_all})
    left = found(project, paths)
    assert {named for named, finding in left.items() if finding.gone} == set(map(title, DELETED))
    changed = left["RoleBinding blue/alice"].differences
    assert [(render(each.path), each.declared, each.live) for each in changed] == [
        ("roleRef.name", "mlbatch-edit", "cluster-admin")
    ]
    done = drift(project, "--fix")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    rolled_out(cluster)
    assert found(project, paths) == {}


@pytest.mark.soak("half a minute; test_platform.py previews twice, too")
def test_the_engine_plans_no_change_after_it(project: Project) -> None:
    project.unchanged()


def test_another_cluster_and_an_absent_one_are_said(project: Project, paths: Paths) -> None:
    absent = drift(project, "--kubeconfig", "/nonexistent/kubeconfig")
    assert absent.returncode == 2
    assert "--kubeconfig" in absent.stderr
    silent = drift(project, KUBECONFIG=str(silenced(paths)))
    assert silent.returncode == 2
    assert "does not answer" in silent.stderr
    unknown = subprocess.run(
        [ROOT / "mlbatch", "drift", "--stack", "nobody"],
        cwd=ROOT,
        env={**inherited(), **project.engine.variables()},
        capture_output=True,
        text=True,
    )
    assert unknown.returncode == 2
    assert "nobody" in unknown.stderr
    assert "Traceback" not in absent.stderr + silent.stderr + unknown.stderr


def kueue_pods(cluster: Cluster) -> set[str]:
    """Return the identities of Kueue's pods that are not being deleted."""
    pods = cluster.list("v1", "Pod", SYSTEM, label_selector="app.kubernetes.io/name=kueue")
    return {pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def rolled_out(cluster: Cluster) -> None:
    """Wait until all pods of each Deployment have the newest template and are ready, and webhooks reach them."""

    def unfinished() -> list[str]:
        deployments = cluster.list("apps/v1", "Deployment")
        return [each["metadata"]["name"] for each in deployments if not _is_rolled_out(each)]

    eventually("every Deployment is rolled out", unfinished, lambda names: not names, seconds=180)
    eventually("every webhook is answered", lambda: webhooks.absent(cluster.client), lambda found: not found)


def _is_rolled_out(deployment: dict[str, Any]) -> bool:
    status, wanted = deployment["status"], deployment["spec"]["replicas"]
    figures = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return status.get("observedGeneration") == deployment["metadata"]["generation"] and figures == [wanted] * 3


def silenced(paths: Paths) -> Path:
    """Return a kubeconfig with an address that does not respond."""
    file = paths.state / "silent-kubeconfig"
    file.write_text(re.sub(r"server: \S+", "server: http://127.0.0.1:9", paths.kubeconfig.read_text()))
    return file
