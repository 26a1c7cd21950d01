"""What a simulated node lacks for a repair: a detector of broken GPUs, and the results of the health gate."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from components.health.check_job import CheckArgs, GateArgs
from components.health.nccl_gate import NcclGateArgs, job_documents
from components.health.repair_state import KEY, change
from components.health.reporter import ACCOUNT, NAMESPACE, NCCL_GATE
from components.health.thresholds import Threshold
from components.kubernetes.fabric import Fabric
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup
from components.kubernetes.rbac import Account
from components.workloads.pods import NodePods
from lab.scenarios.size import GPUS_PER_NODE
from repair import nodes
from runner.repairs import repairs
from tests.local.environment import Cluster, eventually

CONDITION: Final = "SysLogsGPUFallenOff"
"""NVSentinel's node condition for XID 79 (NVIDIA/NVSentinel, docs/INTEGRATIONS.md)."""


def detect(cluster: Cluster, node: str, *, is_broken: bool) -> None:
    """Set the condition of a detector."""
    condition = {
        "type": CONDITION,
        "status": str(is_broken),
        "reason": "HardwareFailure" if is_broken else "Healthy",
        "message": "XID 79: GPU has fallen off the bus" if is_broken else "",
    }
    body = {"status": {"conditions": [condition]}}
    kind = cluster.kind("v1", "Node")
    kind.status.patch(name=node, body=body, content_type="application/strategic-merge-patch+json")


def state(cluster: Cluster, node: str) -> str | None:
    """Return the state of a node's repair. None if it is in service."""
    return next((each.state for each in repairs(cluster.list("v1", "Node")) if each.node == node), None)


def report_host(cluster: Cluster, node: str) -> None:
    """Do what `mlbatch repair report --case` does."""
    nodes.reported(cluster.client, node, "2611270040001234")


def test(cluster: Cluster, node: str) -> str:
    """Do what `mlbatch repair return` does; return the gate's Job."""
    return nodes.test(cluster.client, node)


def heal(cluster: Cluster, node: str) -> None:
    """Take the condition, the annotation and the taint of a broken GPU away, if the node has them."""
    found = cluster.existing("v1", "Node", node)
    if any(each["type"] == CONDITION and each["status"] == "True" for each in found["status"]["conditions"]):
        detect(cluster, node, is_broken=False)
        found = cluster.existing("v1", "Node", node)
    if KEY in (found["metadata"].get("annotations") or {}):
        cluster.patch("v1", "Node", node, change(found, None))


@contextmanager
def health_gate(cluster: Cluster) -> Iterator[None]:
    """Create the Job of the stack's health gate, suspended, for the length of the context."""
    pods = NodePods(
        image="registry.example.org/nccl:1",
        nodes=1,
        placement=NodeGroup(tolerations=[GPU_TOLERATION]),
        gpus=GPUS_PER_NODE,
        cpu="4",
        memory="16Gi",
        fabric=Fabric(),
        shared_memory="8Gi",
        deadline_seconds=600,
    )
    check = CheckArgs(pods=pods, trigger="1", gate=GateArgs(), python_image="registry.example.org/python:3")
    threshold = Threshold(expected=478, warn=460, fail=300, source="a test")
    (job,) = (each for each in job_documents(NcclGateArgs(check=check, threshold=threshold)) if each["kind"] == "Job")
    job["spec"]["suspend"] = True
    cluster.create(namespace_body(NamespaceArgs(name=NAMESPACE, privileged=True)))
    try:
        cluster.create(Account(name=ACCOUNT, namespace=NAMESPACE).document())
        cluster.create(job)
        yield
    finally:
        cluster.delete("v1", "Namespace", NAMESPACE)
        eventually(f"{NAMESPACE} is gone", lambda: cluster.get("v1", "Namespace", NAMESPACE) is None)


def gate_nodes(cluster: Cluster, job: str) -> list[str]:
    """Return the nodes of a gate's pods that have one."""
    pods = cluster.list("v1", "Pod", NAMESPACE, label_selector=f"batch.kubernetes.io/job-name={job}")
    return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]


def report_gate(cluster: Cluster, node: str, state: str) -> None:
    """Write the gate's report on a node, as its reporter does (components/health/node_report.py)."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    report = {"check": NCCL_GATE.name, "trigger": "1", "time": now, "state": state, "reason": "478.10 GB/s"}
    metadata = {"labels": {NCCL_GATE.label: state}, "annotations": {NCCL_GATE.annotation: json.dumps(report)}}
    cluster.patch("v1", "Node", node, {"metadata": metadata})
