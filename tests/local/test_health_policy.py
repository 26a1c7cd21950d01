"""What the health checks' account may do, asked of a real API server with a token that is bound to a pod."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest

from components.azure.node_check import NODE_CHECK
from components.health import reporter
from components.kubernetes import own_node
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from emulator.paths import Paths
from tests.local.environment import Cluster, eventually

NODES = ("health-0", "health-1")
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
OWN_TAINT = {"key": "aznhc", "value": "failed", "effect": "NoSchedule"}


def core(kubeconfig: Path, token: str | None = None) -> Any:
    """Return a client of the administrator, or of whom a token belongs to."""
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    if token is not None:
        administrator, configuration = configuration, kubernetes.client.Configuration()
        configuration.host, configuration.ssl_ca_cert = administrator.host, administrator.ssl_ca_cert
        configuration.api_key = {"authorization": f"Bearer {token}"}
    return kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))


@pytest.fixture(scope="module")
def account(paths: Paths, cluster: Cluster) -> Iterator[Any]:
    """A client of the account, with the token of a pod on the first of two nodes."""
    admin = core(paths.kubeconfig)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "check", "namespace": reporter.NAMESPACE},
        "spec": {
            "nodeName": NODES[0],
            "serviceAccountName": reporter.ACCOUNT,
            "containers": [{"name": "check", "image": "registry.example.org/check:1"}],
        },
    }
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.present": "true"}},
            "spec": {"taints": [GPU_TAINT]},
        }
        for name in NODES
    ]
    documents = [
        *nodes,
        namespace_body(NamespaceArgs(name=reporter.NAMESPACE, privileged=True)),
        *own_node.documents(reporter.account(reporter.NAMESPACE, (NODE_CHECK, reporter.NCCL_GATE))),
        pod,
    ]
    for document in documents:
        cluster.create(document)
    request = {"spec": {"audiences": [], "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "check"}}}
    answer = admin.create_namespaced_service_account_token(reporter.ACCOUNT, reporter.NAMESPACE, request)
    client = core(paths.kubeconfig, answer.status.token)

    eventually(
        "the policy is in force",
        # Another value each time: a patch that changes nothing is no update, and taken.
        lambda: denied(client, {"metadata": {"labels": {"probe": str(time.monotonic_ns())}}}),
        lambda message: "may change its own labels" in message,
        seconds=30,
    )
    yield client
    admin.delete_namespaced_pod("check", reporter.NAMESPACE, grace_period_seconds=0)
    for document in reversed(documents):
        metadata = document["metadata"]
        cluster.delete(document["apiVersion"], document["kind"], metadata["name"], metadata.get("namespace"))
    eventually("the namespace is gone", lambda: cluster.get("v1", "Namespace", reporter.NAMESPACE) is None, seconds=60)


def denied(client: Any, patch: dict[str, Any], node: str = NODES[0]) -> str:
    """Return why a patch was refused, nothing when it was taken."""
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
def test_a_verdict_on_its_own_node_is_taken(account: Any, patch: dict[str, Any]) -> None:
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


def test_another_node_is_none_of_its_business(account: Any) -> None:
    patch = {"metadata": {"labels": {"mlbatch/node-check": "fail"}}}
    assert "the node that it runs on, and no other" in denied(account, patch, NODES[1])


def test_a_token_of_no_pod_changes_nothing(account: Any, paths: Paths) -> None:
    admin = core(paths.kubeconfig)
    answer = admin.create_namespaced_service_account_token(
        reporter.ACCOUNT, reporter.NAMESPACE, {"spec": {"audiences": []}}
    )
    stolen = core(paths.kubeconfig, answer.status.token)
    assert "the node that it runs on" in denied(stolen, {"metadata": {"labels": {"mlbatch/node-check": "pass"}}})
