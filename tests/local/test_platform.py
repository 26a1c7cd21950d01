"""The dev stack on the local cluster: up, no change, queueing, borrowing, recovery, drift, interruption, destroy.

The tests of this module run in order on one stack, which is installed once.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError

from components.queueing import migration
from components.tables import Table
from components.tenancy.editor import EditorRoleArgs, rules
from emulator import cluster as local_cluster
from emulator.paths import Paths
from runner import webhooks
from tests.local.environment import KUEUE_VERSION, Cluster, Project, dev_settings, eventually, gang, machines, parts
from tests.local.jobs import APPWRAPPER, KUEUE, lending_limit, mark, phase, pods_of, running
from tests.local.submission import submitted

RBAC = "rbac.authorization.k8s.io/v1"
RECOVERY = {"retryPauseSeconds": 1, "recoveryTimeoutSeconds": 15, "healthSeconds": 2}
"""Seconds for what takes minutes on a real cluster."""


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Project]) -> Project:
    return make_project("dev")


@pytest.fixture(scope="module")
def settings(project: Project) -> dict[str, Any]:
    return {**dev_settings(project.mirror), "recovery": RECOVERY}


@pytest.fixture(scope="module")
def bare(cluster: Cluster) -> set[str]:
    """Return the namespaces before the installation."""
    return {item["metadata"]["name"] for item in cluster.list("v1", "Namespace")}


@pytest.fixture(scope="module", autouse=True)
def platform(project: Project, settings: dict[str, Any], bare: set[str]) -> Iterator[None]:
    """Install the platform with its sample gang once for the module."""
    project.configure(settings)
    project.up()
    yield
    if any(each["type"] != "pulumi:pulumi:Stack" for each in project.resources()):
        project.destroy()


def test_a_second_preview_plans_no_change(project: Project) -> None:
    project.unchanged()


def test_the_sample_gang_runs_on_two_nodes(cluster: Cluster) -> None:
    (wrapper,) = cluster.list(APPWRAPPER, "AppWrapper")
    name, namespace = wrapper["metadata"]["name"], wrapper["metadata"]["namespace"]
    running(cluster, namespace, name, pods=2)
    assert len({pod["spec"]["nodeName"] for pod in pods_of(cluster, namespace, name)}) == 2


@pytest.mark.emulated("its kubeconfig has a token")
def test_no_secret_is_in_clear_text_in_the_state(project: Project, paths: Any) -> None:
    token = paths.kubeconfig.read_text().split("token:")[1].split()[0]
    state = project.state_file.read_text()
    assert token not in state
    assert '"kubernetes' in state or "kubernetes:" in state


def test_the_sample_is_deleted_when_it_is_switched_off(
    project: Project, settings: dict[str, Any], cluster: Cluster
) -> None:
    project.configure({**settings, "samples": {}})
    project.up()
    assert cluster.list(APPWRAPPER, "AppWrapper") == []
    eventually("no GPU is in use", lambda: cluster.list("v1", "Pod", "blue"), lambda pods: not pods)


def test_a_gang_above_the_lendable_quota_waits(cluster: Cluster) -> None:
    with submitted(cluster, gang("too-big", "blue", pods=4, gpus=8)):
        # Another condition, that its pods do not run, may come first. The sample's Workload may still be deleted.
        (condition,) = eventually(
            "Kueue has looked at the workload",
            lambda: [
                condition
                for workload in cluster.list(KUEUE, "Workload", "blue")
                if workload["metadata"]["name"].startswith("appwrapper-too-big-")
                for condition in (workload.get("status") or {}).get("conditions") or ()
                if condition["type"] == "QuotaReserved"
            ],
        )
        assert condition["status"] == "False"
        assert "nvidia.com/gpu" in condition["message"]
        eventually("the job waits", lambda: phase(cluster, "blue", "too-big"), lambda found: found == "Suspended")
        assert pods_of(cluster, "blue", "too-big") == []


def test_a_borrower_is_preempted_when_the_owner_submits_a_job(cluster: Cluster) -> None:
    borrowers = [gang(f"blue-{index}", "blue", pods=1, gpus=8) for index in range(3)]
    with submitted(cluster, *borrowers):
        for index in range(3):
            running(cluster, "blue", f"blue-{index}", pods=1)
        with submitted(cluster, gang("red-gang", "red", pods=2, gpus=4)):
            running(cluster, "red", "red-gang", pods=2)
            eventually(
                "one borrower gave way",
                lambda: sorted(str(phase(cluster, "blue", f"blue-{index}")) for index in range(3)),
                lambda phases: phases == ["Running", "Running", "Suspended"],
            )


def test_a_sick_node_lowers_what_the_slack_queue_lends(cluster: Cluster, project: Project) -> None:
    node = next(n for n in cluster.list("v1", "Node") if "nvidia.com/gpu" in n["status"]["allocatable"])
    name = node["metadata"]["name"]
    assert lending_limit(cluster) is None
    try:
        mark(cluster, name, "EVICT")
        eventually("the slack queue lends no GPUs", lambda: lending_limit(cluster), lambda limit: limit == "0")
        project.unchanged()
    finally:
        mark(cluster, name, None)
    eventually("the slack queue lends all again", lambda: lending_limit(cluster), lambda limit: limit is None)


SYSTEM = "mlbatch-system"
STORED_VERSIONS = migration.job_name(KUEUE_VERSION)


class _Platform(Table):
    changes: Mapping[str, dict[str, Any]]


CHANGES = {
    **{parts(named): change for named, change in _Platform.load(__name__).changes.items()},
    ("batch/v1", "Job", STORED_VERSIONS, SYSTEM): {"metadata": {"labels": {"app.kubernetes.io/name": "edited"}}},
}

DELETIONS = [
    *(
        entry
        for entry in CHANGES
        # Kueue protects flavors in use; other tests delete the gang; the certificate has its own test.
        if entry[1] not in ("ResourceFlavor", "AppWrapper", "Secret")
    ),
    (KUEUE, "LocalQueue", "default-queue", "blue"),
    ("storage.k8s.io/v1", "StorageClass", "simulated", None),
]


def kinds(project: Project) -> set[str]:
    return {r["inputs"]["kind"] for r in project.resources() if r["type"].startswith("kubernetes:")}


@pytest.mark.soak("a minute and a half; test_drift.py names and reverts manual changes, too")
def test_manual_changes_are_named_and_reverted(project: Project, cluster: Cluster) -> None:
    assert kinds(project) - {kind for _, kind, _, _ in CHANGES} == {"LocalQueue", "StorageClass"}
    for (api_version, kind, name, namespace), change in CHANGES.items():
        cluster.patch(api_version, kind, name, change, namespace)
    drift = project.drift()
    for _, kind, name, _ in CHANGES:
        assert any(kind in line and "~" in line for line in drift.splitlines()), f"{kind} {name} is not in:\n{drift}"
    project.up()
    project.unchanged()
    role = cluster.get(RBAC, "ClusterRole", "mlbatch-edit")
    assert role is not None
    assert role["rules"] == rules(EditorRoleArgs())


@pytest.mark.soak("a minute and a half; the next test deletes an object, too")
def test_manual_deletions_are_named_and_reverted(project: Project, cluster: Cluster) -> None:
    for api_version, kind, name, namespace in DELETIONS:
        cluster.delete(api_version, kind, name, namespace)
    # A namespace is emptied first, and Kueue releases only unused queues.
    eventually(
        "what was deleted is gone",
        lambda: [f"{kind} {name}" for api, kind, name, where in DELETIONS if cluster.get(api, kind, name, where)],
        lambda left: not left,
    )
    drift = project.drift()
    for _, kind, name, _ in DELETIONS:
        assert any(kind in line and "-" in line for line in drift.splitlines()), f"{kind} {name} is not in:\n{drift}"
    project.up()
    project.unchanged()
    running(cluster, "blue", "sample-gang", pods=2)


def test_a_lost_certificate_is_created_again(project: Project, cluster: Cluster) -> None:
    """The program declares an empty Secret. Kueue fills it, and updates the authority in the API server."""
    cluster.delete("v1", "Secret", "kueue-webhook-server-cert", SYSTEM)
    assert "kueue-webhook-server-cert" in project.drift()
    project.up()
    # The old certificate works until Kueue has filled the Secret. In between, no certificate is trusted.
    eventually("the API server knows the new authority", lambda: is_trusted(cluster))
    flavor = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "probe"}}
    eventually("Kueue's webhooks answer", lambda: accepted(cluster, flavor))
    cluster.delete(KUEUE, "ResourceFlavor", "probe")


def is_trusted(cluster: Cluster) -> bool:
    """Tell whether the API server trusts the Secret's authority for Kueue's webhooks.

    Kueue updates the admission webhooks first, and then the conversion webhooks (v0.19.2, `pkg/util/cert/cert.go`).
    """
    secret = cluster.existing("v1", "Secret", "kueue-webhook-server-cert", SYSTEM)
    queues = cluster.existing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "clusterqueues.kueue.x-k8s.io")
    trusted = queues["spec"]["conversion"]["webhook"]["clientConfig"].get("caBundle")
    return trusted is not None and trusted == (secret.get("data") or {}).get("ca.crt")


def accepted(cluster: Cluster, document: dict[str, Any]) -> bool:
    try:
        cluster.create(document)
    except (ApiException, DynamicApiError):
        return False
    return True


@pytest.mark.soak("a minute and a half; tests/unit/runner/test_webhooks.py finds what holds objects")
def test_a_plain_up_restores_kueue_scaled_to_0(project: Project, cluster: Cluster) -> None:
    """Conversion of a queue to another version would fail, but reading the declared version needs no conversion."""
    with submitted(cluster, gang("steady", "blue", pods=1, gpus=8)):
        running(cluster, "blue", "steady", pods=1)
        name = "kueue-controller-manager"
        cluster.patch("apps/v1", "Deployment", name, {"spec": {"replicas": 0}}, SYSTEM)
        kueue = {"label_selector": "app.kubernetes.io/name=kueue"}
        eventually("Kueue is away", lambda: cluster.list("v1", "Pod", SYSTEM, **kueue), lambda pods: pods == [])
        with pytest.raises((ApiException, DynamicApiError), match="conversion webhook"):
            cluster.get("kueue.x-k8s.io/v1beta1", "ClusterQueue", "red-cluster-queue")
        holding = eventually(
            "Kueue does not answer",
            lambda: webhooks.holding(cluster.client, {(KUEUE, "ClusterQueue"), ("v1", "Namespace")}),
        )
        assert {each.service: held for each, held in holding.items()} == {"kueue-webhook-service": ["ClusterQueue"]}
        assert project.changes() == {f"kueue/Deployment/{SYSTEM}/{name}": "update"}
        done = project.run("up", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        flavor = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "probe"}}
        eventually("Kueue's webhooks answer", lambda: accepted(cluster, flavor))
        cluster.delete(KUEUE, "ResourceFlavor", "probe")
        assert cluster.get("kueue.x-k8s.io/v1beta1", "ClusterQueue", "red-cluster-queue")
        assert webhooks.absent(cluster.client) == []
        running(cluster, "blue", "steady", pods=1)


@pytest.mark.emulated("it stops the API server")
def test_an_absent_api_server_is_a_clear_error_and_the_state_stays(project: Project, paths: Paths) -> None:
    before = {resource["urn"] for resource in project.resources()}
    server = str(local_cluster.status(paths).server)
    local_cluster.stop(paths)
    done = project.engine.capture("up", ["--yes", "--skip-preview", "--non-interactive"])
    assert done.returncode != 0
    assert server in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    local_cluster.start(paths, print)
    assert {resource["urn"] for resource in project.resources()} == before


def test_destroy_leaves_no_objects(project: Project, cluster: Cluster, bare: set[str]) -> None:
    project.destroy()
    assert project.resources() == [] or [r["type"] for r in project.resources()] == ["pulumi:pulumi:Stack"]
    namespaces = {item["metadata"]["name"] for item in cluster.list("v1", "Namespace")}
    assert namespaces == bare
    nodes = [item["metadata"]["name"] for item in cluster.list("v1", "Node")]
    assert nodes == machines(cluster)
    for api_version, kind in (
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ):
        assert cluster.list(api_version, kind) == []
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        left = [item["metadata"]["name"] for item in cluster.list(RBAC, kind)]
        assert not [name for name in left if name.startswith(("kueue", "appwrapper", "mlbatch", "slack"))]
