"""The example of target openshift with monitoring: installed, changed manually, reverted, destroyed."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from cli.app import main
from components import names
from emulator.paths import Paths
from tests.helm import helm
from tests.local.environment import (
    Cluster,
    Project,
    eventually,
    gang,
    local_environment,
    mirrored,
    stack_settings,
)
from tests.local.member import as_member, dry_run, refused

pytestmark = pytest.mark.emulated("it is about the local OpenShift")

SECURITY, RBAC = "security.openshift.io/v1", "rbac.authorization.k8s.io/v1"
MONITORS = "monitoring.coreos.com/v1"
CONSTRAINT, QUEUE, RELEASE = "mlbatch-nfs-provisioner", "blue-cluster-queue", "kube-prometheus-stack"
USE = "system:openshift:scc:nonroot-v2"
STRANGER = "system:serviceaccount:default:default"


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    """Yield a local OpenShift with the tutorial's nodes."""
    with local_environment(openshift=True, stack="openshift") as paths:
        yield paths


@pytest.fixture(scope="module")
def project(paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("openshift"), paths, "openshift")
    changed = {"monitoring": {"enabled": True, "namespace": "prometheus"}, "tenancy": {"protect": False}}
    project.configure({**stack_settings("openshift"), **changed, **mirrored(project.mirror)})
    project.up()
    return project


def test_a_second_preview_is_empty(project: Project) -> None:
    project.unchanged()


def test_other_operators_are_rejected(project: Project) -> None:
    """The update would delete Kueue's definitions, with all queues."""
    said = project.previewed_with(openshift={"operators": "openshift-ai", "version": "3.4"})
    assert "a stack has installed the platform's own operators on this cluster" in said


def test_no_attack_goes_through(project: Project, paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", "--kubeconfig", str(paths.kubeconfig)]) == 0, capsys.readouterr().out


@pytest.mark.soak("two minutes; test_aks.py finds and reverts manual changes, too")
def test_refresh_finds_manual_changes_and_up_reverts_them(project: Project, paths: Paths, cluster: Cluster) -> None:
    declared = cluster.existing(names.KUEUE_API, "ClusterQueue", QUEUE)["spec"]["resourceGroups"]
    groups = copy.deepcopy(declared)
    quotas = {each["name"]: each for each in groups[0]["flavors"][0]["resources"]}
    quotas["nvidia.com/gpu"]["nominalQuota"] = "24"
    cluster.patch(names.KUEUE_API, "ClusterQueue", QUEUE, {"spec": {"resourceGroups": groups}})
    cluster.patch(SECURITY, "SecurityContextConstraints", CONSTRAINT, {"users": [STRANGER]})
    stranger = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    cluster.patch(RBAC, "RoleBinding", USE, {"subjects": [stranger]}, "prometheus")
    unlabelled = {"metadata": {"labels": {"release": None}}}
    cluster.patch(MONITORS, "ServiceMonitor", "kueue-metrics", unlabelled, names.SYSTEM_NAMESPACE)
    upgrade(paths, {"prometheus": {"prometheusSpec": {"retention": "1d"}}})
    found = project.drift()
    for changed in ('"24"', STRANGER, f'- release: "{RELEASE}"', '"1d"'):
        assert changed in found, f"{changed} is not in:\n{found}"
    project.up()
    assert cluster.existing(names.KUEUE_API, "ClusterQueue", QUEUE)["spec"]["resourceGroups"] == declared
    assert STRANGER not in cluster.existing(SECURITY, "SecurityContextConstraints", CONSTRAINT)["users"]
    subjects = cluster.existing(RBAC, "RoleBinding", USE, "prometheus")["subjects"]
    assert {each["namespace"] for each in subjects} == {"prometheus"}
    monitor = cluster.existing(MONITORS, "ServiceMonitor", "kueue-metrics", names.SYSTEM_NAMESPACE)
    assert monitor["metadata"]["labels"]["release"] == RELEASE
    prometheus = cluster.existing(MONITORS, "Prometheus", f"{RELEASE}-prometheus", "prometheus")
    assert prometheus["spec"]["retention"] != "1d"


def upgrade(paths: Paths, values: dict[str, Any]) -> None:
    """Change values of the release, like `helm upgrade --reuse-values --set`."""
    (chart,) = paths.mirror.glob(f"{RELEASE}-*.tgz")
    options = ["--namespace=prometheus", f"--kubeconfig={paths.kubeconfig}", "--reuse-values", "--no-hooks"]
    helm(paths.bin / "helm", "upgrade", RELEASE, str(chart), *options, values=values)


def test_a_member_creates_secrets_and_cannot_read_them(project: Project, paths: Paths) -> None:
    alice = as_member(paths, "alice")
    dry_run(alice, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "blue"}})
    assert 'cannot list resource "secrets"' in refused(alice.list, "v1", "Secret", "blue")


def test_openshifts_deployer_account_creates_no_pod_in_a_teams_namespace(
    project: Project, paths: Paths, cluster: Cluster
) -> None:
    """OpenShift lets it create pods in its namespace, and any job of a member may use it."""
    eventually("it may", lambda: cluster.get(RBAC, "RoleBinding", "system:deployers", "blue"))
    deployer = as_member(paths, "system:serviceaccount:blue:deployer")
    amounts = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "8"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": amounts, "limits": amounts}}
    metadata = {"name": "uncounted", "namespace": "blue"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    assert "a team's own service account creates no pod, which no queue would count" in refused(dry_run, deployer, pod)


def test_a_queue_admits_no_job_of_another_namespace(project: Project, cluster: Cluster) -> None:
    team = {"name": "stranger", "labels": {names.TEAM_LABEL: "true"}}
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": team})
    metadata = {"name": "default-queue", "namespace": "stranger"}
    leads = {"apiVersion": names.KUEUE_API, "kind": "LocalQueue", "metadata": metadata}
    cluster.create({**leads, "spec": {"clusterQueue": QUEUE}})
    cluster.create(gang("guest", "stranger", pods=1, gpus=1, labels={names.QUEUE_LABEL: "default-queue"}))
    # Until Kueue has the new queue and namespace, it reports these as the reason.
    eventually(
        "the job waits for its namespace's sake",
        lambda: why_not_reserved(cluster, "stranger"),
        lambda said: "namespace doesn't match ClusterQueue selector" in said,
    )
    cluster.delete("v1", "Namespace", "stranger")
    # Its job is deleted through AppWrapper, which the next test removes.
    eventually("stranger goes", lambda: cluster.get("v1", "Namespace", "stranger") is None)


def why_not_reserved(cluster: Cluster, namespace: str) -> str:
    """Return the reason why a namespace's job has no quota, empty before Kueue reports one."""
    for workload in cluster.list(names.KUEUE_API, "Workload", namespace):
        for condition in (workload.get("status") or {}).get("conditions") or ():
            if (condition["type"], condition["status"]) == ("QuotaReserved", "False"):
                return str(condition["message"])
    return ""


@pytest.mark.soak("a minute and a half; test_platform.py and test_aks.py destroy a stack, too")
def test_destroy_leaves_no_objects_of_the_stack(project: Project, cluster: Cluster) -> None:
    project.destroy()
    assert {each["type"] for each in project.resources()} <= {"pulumi:pulumi:Stack"}
    for namespace in ("prometheus", "nfs-provisioner", names.SYSTEM_NAMESPACE, "blue", "red"):
        eventually(f"{namespace} goes", lambda name=namespace: cluster.get("v1", "Namespace", name) is None)
    constraints = {each["metadata"]["name"] for each in cluster.list(SECURITY, "SecurityContextConstraints")}
    assert not [name for name in constraints if name.startswith("mlbatch")]
