"""Manual changes in a running cluster: found with path and author, and reverted. Changes of controllers are ignored.

The tests of this module run in order on the dev stack, which is installed once.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes.dynamic.exceptions import ForbiddenError

from drift.check import Finding, check
from drift.cluster import connected
from drift.compare import render
from drift.state import read
from emulator.paths import Paths
from runner import webhooks
from runner.environment import inherited
from tests.local.environment import ROOT, Cluster, Project, dev_settings, drift, eventually
from tests.local.jobs import APPWRAPPER, KUEUE, running
from tests.local.standing import Standing

RBAC = "rbac.authorization.k8s.io/v1"
ADMISSION = "admissionregistration.k8s.io/v1"
NETWORK = "networking.k8s.io/v1"
SYSTEM = "mlbatch-system"
HAND = "kubectl-edit"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A write to one object: a JSON patch (a list), or a merge patch.

    path: where it is reported as drift, None if it must not be.
    recorded: whether the server records the author.
    """

    api: str
    kind: str
    name: str
    namespace: str | None = None
    patch: list[dict[str, Any]] | dict[str, Any]
    path: str | None = None
    recorded: bool = True
    manager: str = HAND
    subresource: str | None = None

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def add(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "add", "path": path, "value": value}]


def remove(path: str) -> list[dict[str, Any]]:
    return [{"op": "remove", "path": path}]


def user(name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def rbac(kind: str, name: str, namespace: str | None = None, **rest: Any) -> Change:
    return Change(api=RBAC, kind=kind, name=name, namespace=namespace, **rest)


def admission(kind: str, name: str, **rest: Any) -> Change:
    return Change(api=ADMISSION, kind=kind, name=name, **rest)


def core(kind: str, name: str, namespace: str | None = None, **rest: Any) -> Change:
    return Change(api="v1", kind=kind, name=name, namespace=namespace, **rest)


def slack_controller(**rest: Any) -> Change:
    return Change(api="apps/v1", kind="Deployment", name="slack-controller", namespace=SYSTEM, **rest)


def queue(name: str, **rest: Any) -> Change:
    return Change(api=KUEUE, kind="ClusterQueue", name=f"{name}-cluster-queue", **rest)


OPENED = "appwrapper-controller-manager-metrics-service"
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
HOOK = {
    "name": "spy.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "failurePolicy": "Ignore",
    "clientConfig": {"url": "https://spy.example.com/"},
    "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["spies"]}],
}
POD = "/spec/template/spec"
FIRST = f"{POD}/containers/0"
OF_CONTROLLER = 'spec.template.spec.containers[name="controller"]'

BY_HAND = [
    # rights
    rbac("RoleBinding", "alice", "blue", patch=add("/subjects/-", user("mallory")), path='subjects[name="mallory"]'),
    rbac("RoleBinding", "bob", "red", patch={"subjects": [user("mallory")]}, path='subjects[name="mallory"]'),
    rbac(
        "ClusterRoleBinding", "kueue-metrics-auth-rolebinding", patch={"subjects": []}, path="subjects", recorded=False
    ),
    rbac("ClusterRole", "mlbatch-edit", patch=add("/rules/-", EVERYTHING), path="rules[16]"),
    rbac("ClusterRole", "slack-controller", patch=add("/rules/0/verbs/-", "delete"), path="rules[0].verbs[2]"),
    rbac("Role", "appwrapper-leader-election-role", SYSTEM, patch=remove("/rules/0"), path="rules[0]"),
    # pods and their rights
    slack_controller(patch={"spec": {"replicas": 2}}, path="spec.replicas"),
    slack_controller(
        patch=add(f"{FIRST}/env/-", {"name": "SPY", "value": "1"}), path=f'{OF_CONTROLLER}.env[name="SPY"]'
    ),
    slack_controller(patch=add(f"{FIRST}/env/0/value", "/tmp"), path=f'{OF_CONTROLLER}.env[name="PYTHONPATH"].value'),
    slack_controller(
        patch=add(f"{FIRST}/securityContext/allowPrivilegeEscalation", True),
        path=f"{OF_CONTROLLER}.securityContext.allowPrivilegeEscalation",
    ),
    slack_controller(
        patch=add(f"{FIRST}/lifecycle", {"preStop": {"sleep": {"seconds": 1}}}), path=f"{OF_CONTROLLER}.lifecycle"
    ),
    slack_controller(patch=add(f"{POD}/hostNetwork", True), path="spec.template.spec.hostNetwork"),
    # in the name of a controller with another task
    slack_controller(patch=add(f"{POD}/hostPID", True), path="spec.template.spec.hostPID", manager="kueue"),
    slack_controller(
        patch=add(f"{POD}/tolerations/-", {"operator": "Exists"}), path="spec.template.spec.tolerations[2]"
    ),
    slack_controller(
        patch=add(f"{POD}/volumes/-", {"name": "host", "hostPath": {"path": "/"}}),
        path='spec.template.spec.volumes[name="host"]',
    ),
    slack_controller(
        patch=add(f"{POD}/initContainers", [{"name": "spy", "image": "docker.io/library/busybox:1.37.0"}]),
        path="spec.template.spec.initContainers",
    ),
    Change(
        api="apps/v1",
        kind="Deployment",
        name="scheduler-plugins-controller",
        namespace="scheduler-plugins",
        patch={"spec": {"paused": True}},
        path="spec.paused",
    ),
    # a second type for a declared volume, which the API server rejects
    Change(
        api="apps/v1",
        kind="Deployment",
        name="scheduler-plugins-scheduler",
        namespace="scheduler-plugins",
        patch=[
            {
                "op": "replace",
                "path": f"{POD}/volumes/0",
                "value": {"name": "scheduler-config", "hostPath": {"path": "/etc"}},
            }
        ],
        path='spec.template.spec.volumes[name="scheduler-config"].hostPath',
    ),
    # network access
    core(
        "Service",
        "kueue-visibility-server",
        SYSTEM,
        patch=add("/spec/ports/-", {"name": "spy", "port": 22, "protocol": "TCP", "targetPort": 22}),
        path='spec.ports[name="spy"]',
    ),
    core(
        "Service",
        "kueue-visibility-server",
        SYSTEM,
        patch={"spec": {"externalIPs": ["192.0.2.1"]}},
        path="spec.externalIPs",
    ),
    core(
        "Service",
        OPENED,
        SYSTEM,
        patch={"spec": {"type": "NodePort"}},
        path="spec.type",
    ),
    # labels that rules select namespaces by
    core(
        "Namespace",
        SYSTEM,
        patch={"metadata": {"labels": {"pod-security.kubernetes.io/warn": "privileged"}}},
        path='metadata.labels["pod-security.kubernetes.io/warn"]',
        recorded=False,  # the API server records no owners for an object that was applied with only its name
    ),
    core("Namespace", "blue", patch={"metadata": {"labels": {"metrics": "enabled"}}}, path="metadata.labels.metrics"),
    Change(
        api=NETWORK,
        kind="NetworkPolicy",
        name="network-boundary",
        namespace="red",
        patch=add("/spec/egress/-", {}),
        path="spec.egress[4]",
    ),
    Change(
        api=NETWORK,
        kind="NetworkPolicy",
        name="network-boundary",
        namespace="blue",
        patch={"spec": {"policyTypes": ["Egress"]}},
        path="spec.policyTypes[0]",
    ),
    # admission and quotas
    admission(
        "MutatingWebhookConfiguration",
        "appwrapper-mutating-webhook-configuration",
        patch=add("/webhooks/-", HOOK),
        path='webhooks[name="spy.example.com"]',
    ),
    admission(
        "ValidatingWebhookConfiguration",
        "appwrapper-validating-webhook-configuration",
        patch=add("/webhooks/0/failurePolicy", "Ignore"),
        path='webhooks[name="vappwrapper.kb.io"].failurePolicy',
    ),
    admission(
        "ValidatingAdmissionPolicy",
        "mlbatch-team-quota-gate",
        patch={"spec": {"failurePolicy": "Ignore"}},
        path="spec.failurePolicy",
    ),
    admission(
        "ValidatingAdmissionPolicyBinding",
        "mlbatch-team-pod-isolation",
        patch={"spec": {"validationActions": ["Audit"]}},
        path="spec.validationActions[0]",
    ),
    queue(
        "red",  # not for GPUs: the slack controller reverts these, and writes the same list
        patch=add("/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "7"),
        path='spec.resourceGroups[0].flavors[name="default-flavor"].resources[name="cpu"].nominalQuota',
    ),
    queue("blue", patch={"spec": {"stopPolicy": "Hold"}}, path="spec.stopPolicy"),
    Change(
        api=KUEUE,
        kind="LocalQueue",
        name="default-queue",
        namespace="red",
        patch={"spec": {"stopPolicy": "HoldAndDrain"}},
        path="spec.stopPolicy",
    ),
    Change(
        api=KUEUE,
        kind="ResourceFlavor",
        name="default-flavor",
        patch=add("/spec/tolerations/-", {"operator": "Exists"}),
        path="spec.tolerations[1]",
    ),
    core("ResourceQuota", "bounds", "blue", patch={"spec": {"hard": {"services": "5k"}}}, path="spec.hard.services"),
    core(
        "ResourceQuota",
        "bounds",
        "red",
        patch={"spec": {"hard": {"secrets": None}}},
        path="spec.hard.secrets",
        recorded=False,
    ),
    core(
        "LimitRange",
        "requests",
        "blue",
        patch=add("/spec/limits/0/defaultRequest/cpu", "2"),
        path="spec.limits[0].defaultRequest.cpu",
    ),
    Change(
        api="scheduling.k8s.io/v1",
        kind="PriorityClass",
        name="default-priority",
        patch={"globalDefault": False},
        path="globalDefault",
        recorded=False,
    ),
    # configuration of controllers
    core(
        "ConfigMap",
        "appwrapper-operator-config",
        SYSTEM,
        patch={"data": {"extra.yaml": "{}"}},
        path='data["extra.yaml"]',
    ),
    core(
        "ConfigMap", "slack-controller", SYSTEM, patch={"data": {"settings.json": "{}"}}, path='data["settings.json"]'
    ),
    core(
        "Namespace",
        "red",
        patch={"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
        path='metadata.labels["pod-security.kubernetes.io/enforce"]',
    ),
    core(
        "Node",
        "gpu-node-2",
        patch={"metadata": {"labels": {"nvidia.com/gpu.present": "false"}}},
        path='metadata.labels["nvidia.com/gpu.present"]',
    ),
    Change(
        api="apiregistration.k8s.io/v1",
        kind="APIService",
        name="v1beta2.visibility.kueue.x-k8s.io",
        patch={"spec": {"versionPriority": 1}},
        path="spec.versionPriority",
    ),
    Change(
        api="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        name="cohorts.kueue.x-k8s.io",
        patch=add("/spec/versions/0/served", False),
        path='spec.versions[name="v1beta1"].served',
    ),
    Change(
        api=APPWRAPPER,
        kind="AppWrapper",
        name="sample-gang",
        namespace="blue",
        patch={"metadata": {"annotations": {"mlbatch/submitted-for": "bob"}}},
        path='metadata.annotations["mlbatch/submitted-for"]',
    ),
]
"""Manual changes of every sort: changed, added and removed; in maps, in lists by key, by value and as a whole."""

FOLLOWS = {
    (
        "Deployment scheduler-plugins/scheduler-plugins-scheduler",
        'spec.template.spec.volumes[name="scheduler-config"].configMap',
        None,
    ),  # the volume's former type
    ("RoleBinding red/bob", 'subjects[name="bob"]', HAND),  # the replaced user
    (f"Service {SYSTEM}/kueue-visibility-server", "spec.externalTrafficPolicy", HAND),  # a default with external IPs
    (f"Service {SYSTEM}/{OPENED}", "spec.externalTrafficPolicy", HAND),
    (
        f"Service {SYSTEM}/{OPENED}",
        'spec.ports[name="https"].nodePort',
        None,
    ),
}

KCM = "kube-controller-manager"
LENDING = "/spec/resourceGroups/0/flavors/0/resources/2/lendingLimit"
SCALE = Change(
    api="apps/v1",
    kind="Deployment",
    name="scheduler-plugins-controller",
    namespace="scheduler-plugins",
    patch={"spec": {"replicas": 2}},
    manager=KCM,
    subresource="scale",
)


def annotated(key: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {key: "true"}}}


def labelled(key: str) -> dict[str, Any]:
    return {"metadata": {"labels": {key: "true"}}}


AT_RUN_TIME = [
    # controllers of this platform
    queue("slack", patch=add(LENDING, "0"), manager="slack-controller"),
    queue("blue", patch=add(LENDING, "4"), manager="slack-controller"),
    queue("red", patch={"status": {"pendingWorkloads": 7}}, manager="kueue", subresource="status"),
    queue(
        "red",
        patch=annotated("example.com/seen"),
        manager="kueue",
    ),
    Change(
        api=KUEUE,
        kind="ResourceFlavor",
        name="default-flavor",
        patch=annotated("example.com/seen"),
        manager="kueue",
    ),
    core("Secret", "kueue-webhook-server-cert", SYSTEM, patch={"data": {"next.crt": "YQ=="}}, manager="kueue"),
    Change(
        api="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        name="cohorts.kueue.x-k8s.io",
        patch=annotated("cert-manager.io/inject-ca-from"),
        manager="cainjector",
    ),
    admission(
        "MutatingWebhookConfiguration",
        "appwrapper-mutating-webhook-configuration",
        patch=annotated("rotated"),
        manager="manager",
    ),
    admission(
        "ValidatingWebhookConfiguration",
        "appwrapper-validating-webhook-configuration",
        patch=add(
            "/webhooks/0/namespaceSelector",
            {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]},
        ),
        manager="admissionsenforcer",
    ),
    # nodes
    core("Node", "gpu-node-1", patch=labelled("kubernetes.azure.com/cluster"), manager="kubelet"),
    core(
        "Node",
        "gpu-node-1",
        patch=annotated("volumes.kubernetes.io/controller-managed-attach-detach"),
        manager="kubelet",
    ),
    core(
        "Node",
        "gpu-node-1",
        patch=add("/spec/taints/-", {"key": "example.com/sick", "effect": "PreferNoSchedule"}),
        manager=KCM,
    ),
    core("Node", "gpu-node-2", patch={"spec": {"unschedulable": True}}, manager="kubectl-cordon"),
    core("Node", "gpu-node-2", patch={"spec": {"providerID": "azure:///2"}}, manager="cloud-node-manager"),
    core(
        "Node",
        "gpu-node-1",
        patch=add("/status/conditions/-", {"type": "FrequentRestart", "status": "False"}),
        manager="node-problem-detector",
        subresource="status",
    ),
    # deployments
    SCALE,
    Change(
        api="apps/v1",
        kind="Deployment",
        name="scheduler-plugins-controller",
        namespace="scheduler-plugins",
        patch={"spec": {"template": annotated("kubectl.kubernetes.io/restartedAt")}},
        manager="kubectl-rollout",
    ),
    Change(
        api="apps/v1",
        kind="Deployment",
        name="scheduler-plugins-controller",
        namespace="scheduler-plugins",
        patch=annotated("autoscaling.example.com/seen"),
        manager="vpa-recommender",
    ),
    Change(
        api="apps/v1",
        kind="Deployment",
        name="scheduler-plugins-controller",
        namespace="scheduler-plugins",
        patch={"spec": {"progressDeadlineSeconds": 900}},
    ),
    Change(
        api="apps/v1",
        kind="Deployment",
        name="scheduler-plugins-scheduler",
        namespace="scheduler-plugins",
        patch={"spec": {"revisionHistoryLimit": 5}},
    ),
    # what clouds and distributions add
    core("Namespace", "blue", patch=annotated("openshift.io/sa.scc.uid-range"), manager="cluster-policy-controller"),
    core("Namespace", "blue", patch=labelled("security.example.com/scanned"), manager="scanner"),
    core(
        "ServiceAccount",
        "slack-controller",
        SYSTEM,
        patch={"imagePullSecrets": [{"name": "dockercfg"}]},
        manager="openshift-controller-manager",
    ),
    core(
        "ServiceAccount",
        "slack-controller",
        SYSTEM,
        patch={"secrets": [{"name": "dockercfg"}]},
        manager="openshift-controller-manager",
    ),
    core(
        "Service",
        "kueue-visibility-server",
        SYSTEM,
        patch=annotated("service.example.com/id"),
        manager="cloud-controller-manager",
    ),
    core(
        "Service",
        "kueue-visibility-server",
        SYSTEM,
        patch={"spec": {"sessionAffinity": "ClientIP"}},
        manager="cloud-controller-manager",
    ),
    core(
        "ConfigMap",
        "scheduler-config",
        "scheduler-plugins",
        patch=annotated("reloader.example.com/seen"),
        manager="reloader",
    ),
    rbac("ClusterRole", "mlbatch-edit", patch=labelled("rbac.example.com/audited"), manager="auditor"),
    rbac("RoleBinding", "alice", "blue", patch=annotated("rbac.example.com/audited"), manager="auditor"),
    # status fields
    Change(
        api=NETWORK,
        kind="NetworkPolicy",
        name="network-boundary",
        namespace="red",
        patch=annotated("policy.example.com/programmed"),
        manager="cilium-operator",
    ),
    core(
        "ResourceQuota",
        "bounds",
        "blue",
        patch={"status": {"used": {"services": "1"}}},
        manager=KCM,
        subresource="status",
    ),
    Change(
        api=KUEUE,
        kind="LocalQueue",
        name="default-queue",
        namespace="red",
        patch={"status": {"pendingWorkloads": 3}},
        manager="kueue",
        subresource="status",
    ),
    Change(
        api=APPWRAPPER,
        kind="AppWrapper",
        name="sample-gang",
        namespace="blue",
        patch=annotated("example.com/seen"),
        manager="manager",
    ),
]
"""Fields that controllers write while the platform runs, and fields that the stack leaves to users."""

DELETED = [
    rbac("RoleBinding", "bob", "red", patch={}),
    core("ConfigMap", "appwrapper-operator-config", SYSTEM, patch={}),
    core("LimitRange", "requests", "red", patch={}),
    admission("ValidatingAdmissionPolicyBinding", "mlbatch-team-lending-scope", patch={}),
]


def write(cluster: Cluster, change: Change) -> None:
    content = "application/json-patch+json" if isinstance(change.patch, list) else "application/merge-patch+json"
    resource = cluster.kind(change.api, change.kind)
    target = getattr(resource, change.subresource) if change.subresource else resource
    cluster.client.patch(
        target,
        name=change.name,
        namespace=change.namespace,
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
    assert len(AT_RUN_TIME) >= 30
    for change in AT_RUN_TIME:
        write(cluster, change)
    left = found(project, paths)
    # The stack declares the number, so a scale by another owner is drift, unless the program ignores it.
    scaled = left.pop(SCALE.title)
    assert [(render(each.path), each.writer and each.writer.manager) for each in scaled.differences] == [
        ("spec.replicas", KCM)
    ]
    assert left == {}
    write(cluster, Change(**{**vars(SCALE), "patch": {"spec": {"replicas": 1}}}))
    assert found(project, paths) == {}


def test_a_manual_change_is_named_with_its_writer(project: Project, cluster: Cluster, paths: Paths) -> None:
    assert len(BY_HAND) >= 30
    for change in BY_HAND:
        write(cluster, change)
    left = found(project, paths)
    assert not [finding.trouble for finding in left.values() if finding.trouble]
    seen = {
        (title, render(each.path), each.writer.manager if each.writer else None)
        for title, finding in left.items()
        for each in finding.differences
    }
    expected = {(change.title, change.path, change.manager if change.recorded else None) for change in BY_HAND}
    assert seen == expected | FOLLOWS


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
    write(cluster, core("ConfigMap", "kueue-manager-config", SYSTEM, patch={"data": {key: f"{text}\n# by hand\n"}}))
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
    for change in DELETED:
        cluster.delete(change.api, change.kind, change.name, change.namespace)
    binding = cluster.get(RBAC, "RoleBinding", "alice", "blue")
    assert binding is not None
    cluster.delete(RBAC, "RoleBinding", "alice", "blue")
    grants_all = {**binding["roleRef"], "name": "cluster-admin"}
    cluster.create({**binding, "metadata": {"name": "alice", "namespace": "blue"}, "roleRef": grants_all})
    left = found(project, paths)
    assert {title for title, finding in left.items() if finding.gone} == {change.title for change in DELETED}
    changed = left["RoleBinding blue/alice"].differences
    assert [(render(each.path), each.declared, each.live) for each in changed] == [
        ("roleRef.name", "mlbatch-edit", "cluster-admin")
    ]
    done = drift(project, "--fix")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    rolled_out(cluster)
    assert found(project, paths) == {}


def test_the_engine_carries_on_after_it(project: Project) -> None:
    project.up()
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
