"""Rights of the health checks' account, tested on a real API server with a token that is bound to a pod."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes
import pytest

from components.azure.node_check import NODE_CHECK
from components.health import autopilot, repair, reporter
from components.health.autopilot import AutopilotArgs
from components.health.repair_state import KEY
from components.kubernetes import own_node
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.own_node import OwnNodeAccount
from components.kubernetes.placement import ANYWHERE
from emulator.paths import Paths
from tests.local.environment import Cluster, eventually, is_ready

NODES = ("health-0", "health-1")
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
OWN_TAINT = {"key": "aznhc", "value": "failed", "effect": "NoSchedule"}


def core(kubeconfig: Path, token: str | None = None) -> Any:
    """Return a client of the administrator, or of a token's owner."""
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    if token is not None:
        administrator, configuration = configuration, kubernetes.client.Configuration()
        configuration.host, configuration.ssl_ca_cert = administrator.host, administrator.ssl_ca_cert
        configuration.api_key = {"authorization": f"Bearer {token}"}
    return kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))


@pytest.fixture(scope="module", autouse=True)
def nodes(cluster: Cluster) -> Iterator[None]:
    """Create two nodes that send heartbeats, so that they have none of Kubernetes' taints for new and lost nodes."""
    documents = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"nvidia.com/gpu.present": "true"},
            },
            "spec": {"taints": [GPU_TAINT]},
            "status": {part: {"cpu": "1", "memory": "1Gi", "pods": "10"} for part in ("allocatable", "capacity")},
        }
        for name in NODES
    ]
    for document in documents:
        cluster.create(document)
    for name in NODES:
        eventually(f"{name} is ready", lambda name=name: is_ready(cluster, name))
        eventually(
            f"{name} has no taint but its own",
            lambda name=name: cluster.existing("v1", "Node", name)["spec"]["taints"],
            lambda found: found == [GPU_TAINT],
        )
    yield
    for name in NODES:
        cluster.delete("v1", "Node", name)


@pytest.fixture(scope="module")
def account(paths: Paths, cluster: Cluster, nodes: None) -> Iterator[Any]:
    """Yield a client of the checks' account, with the token of a pod on the first of two nodes."""
    given = reporter.account(reporter.NAMESPACE, (NODE_CHECK, reporter.NCCL_GATE))
    with client_of(paths, cluster, given, reporter.NAMESPACE) as client:
        yield client


@pytest.fixture(scope="module")
def autopilots(paths: Paths, cluster: Cluster, nodes: None) -> Iterator[Any]:
    """Yield a client of Autopilot's account, with the token of a pod on the first of two nodes."""
    given = autopilot.account(autopilot.NAMESPACE, AutopilotArgs(image="autopilot:1", nodes=ANYWHERE))
    with client_of(paths, cluster, given, autopilot.NAMESPACE) as client:
        yield client


@contextmanager
def client_of(paths: Paths, cluster: Cluster, account: OwnNodeAccount, namespace: str) -> Iterator[Any]:
    """Yield a client with the token of an account's pod, once the account's policy is in force."""
    admin = core(paths.kubeconfig)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "check", "namespace": namespace},
        "spec": {
            "nodeName": NODES[0],
            "serviceAccountName": account.name,
            "containers": [{"name": "check", "image": "registry.example.org/check:1"}],
        },
    }
    documents = [
        namespace_body(NamespaceArgs(name=namespace, privileged=True)),
        *own_node.documents(account),
        pod,
    ]
    for document in documents:
        cluster.create(document)
    request = {"spec": {"audiences": [], "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "check"}}}
    answer = admin.create_namespaced_service_account_token(account.name, namespace, request)
    client = core(paths.kubeconfig, answer.status.token)
    eventually(
        "the policy is in force",
        # A new value each time, because a patch without a change is accepted.
        lambda: denied(client, {"metadata": {"labels": {"probe": str(time.monotonic_ns())}}}),
        lambda message: "may change its own labels" in message,
    )
    yield client
    admin.delete_namespaced_pod("check", namespace, grace_period_seconds=0)
    for document in reversed(documents):
        metadata = document["metadata"]
        cluster.delete(document["apiVersion"], document["kind"], metadata["name"], metadata.get("namespace"))
    eventually("the namespace is gone", lambda: cluster.get("v1", "Namespace", namespace) is None)


def denied(client: Any, patch: dict[str, Any], node: str = NODES[0]) -> str:
    """Return the reason for rejecting a patch, empty if it was accepted."""
    try:
        client.patch_node(node, patch)
    except kubernetes.client.ApiException as error:
        return str(json.loads(error.body)["message"])
    return ""


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"labels": {"mlbatch/node-check": "fail", "autopilot.ibm.com/gpuhealth": "ERR"}}},
        {"metadata": {"labels": {"autopilot.ibm.com/gpuhealth": None}}},
        {"metadata": {"annotations": {"mlbatch/nccl-gate-report": "{}"}}},
        {"spec": {"taints": [GPU_TAINT, OWN_TAINT]}},
        {"spec": {"taints": [GPU_TAINT]}},
    ],
)
def test_a_verdict_on_its_own_node_is_accepted(account: Any, patch: dict[str, Any]) -> None:
    assert denied(account, patch) == ""


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ({"metadata": {"labels": {"example.org/other": "1"}}}, "may change its own labels only"),
        ({"metadata": {"labels": {"nvidia.com/gpu.present": None}}}, "may change its own labels only"),
        ({"metadata": {"labels": {"nvidia.com/gpu.present": "false"}}}, "may change its own labels only"),
        ({"metadata": {"annotations": {"example.org/other": "1"}}}, "may change its own annotations only"),
        ({"spec": {"taints": [{**OWN_TAINT, "key": "other"}, GPU_TAINT]}}, "may change its own taints only"),
        ({"spec": {"taints": None}}, "may change its own taints only"),
        ({"spec": {"unschedulable": True}}, "may not cordon a node"),
        ({"metadata": {"finalizers": ["example.org/held"]}}, "may not cordon a node"),
    ],
)
def test_anything_else_is_refused(account: Any, patch: dict[str, Any], reason: str) -> None:
    assert reason in denied(account, patch)


def test_a_verdict_on_another_node_is_refused(account: Any) -> None:
    patch = {"metadata": {"labels": {"mlbatch/node-check": "fail"}}}
    assert "the node that it runs on, and no other" in denied(account, patch, NODES[1])


def test_a_token_without_a_pod_cannot_change_nodes(account: Any, paths: Paths) -> None:
    admin = core(paths.kubeconfig)
    answer = admin.create_namespaced_service_account_token(
        reporter.ACCOUNT, reporter.NAMESPACE, {"spec": {"audiences": []}}
    )
    stolen = core(paths.kubeconfig, answer.status.token)
    assert "the node that it runs on" in denied(stolen, {"metadata": {"labels": {"mlbatch/node-check": "pass"}}})


def test_autopilot_marks_its_own_node_and_reads_what_its_checks_need(autopilots: Any) -> None:
    marks = {"autopilot.ibm.com/gpuhealth": "EVICT", "autopilot.ibm.com/dcgm.level.3": "ERR_2026-01-01_00.00.00UTC"}
    output = {"autopilot.ibm.com/dcgm.level.3.output": "memory_bandwidth.0.1"}
    assert denied(autopilots, {"metadata": {"labels": marks, "annotations": output}}) == ""
    assert {node.metadata.name for node in autopilots.list_node().items} >= set(NODES)
    assert autopilots.list_pod_for_all_namespaces().items


@pytest.mark.parametrize(
    ("patch", "node", "reason"),
    [
        ({"metadata": {"labels": {"nvidia.com/gpu.present": None}}}, NODES[0], "may change its own labels only"),
        ({"metadata": {"annotations": {"example.org/other": "1"}}}, NODES[0], "may change its own annotations only"),
        ({"spec": {"taints": None}}, NODES[0], "may change its own taints only"),
        ({"spec": {"unschedulable": True}}, NODES[0], "Autopilot may"),
        ({"metadata": {"labels": {"autopilot.ibm.com/gpuhealth": "EVICT"}}}, NODES[1], "and no other"),
    ],
)
def test_autopilot_cannot_make_other_changes(autopilots: Any, patch: dict[str, Any], node: str, reason: str) -> None:
    assert reason in denied(autopilots, patch, node)


def test_the_repair_controller_changes_its_taint_and_annotation_of_every_node(paths: Paths, cluster: Cluster) -> None:
    given = replace(repair.account(), namespace="repairs")
    out = {"key": KEY, "value": "xid-error", "effect": "NoSchedule"}
    with client_of(paths, cluster, given, "repairs") as controller:
        for node in NODES:
            before = cluster.existing("v1", "Node", node)["spec"]["taints"]
            marked = {"metadata": {"annotations": {KEY: "{}"}}, "spec": {"taints": [*before, out]}}
            assert denied(controller, marked, node) == ""
            returned = {"metadata": {"annotations": {KEY: None}}, "spec": {"taints": before}}
            assert denied(controller, returned, node) == ""
        for other, reason in (
            ({"spec": {"taints": None}}, "may change its own taints only"),
            ({"spec": {"unschedulable": True}}, "may not cordon a node"),
            ({"metadata": {"annotations": {"example.org/other": "1"}}}, "may change its own annotations only"),
            ({"metadata": {"labels": {"autopilot.ibm.com/gpuhealth": "EVICT"}}}, "may change its own labels only"),
        ):
            assert reason in denied(controller, other, NODES[1])
