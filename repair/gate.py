"""The health gate on one node: a copy of the stack's NCCL gate (components/health/nccl_gate.py)."""

from copy import deepcopy
from typing import Final

from kubernetes.dynamic.exceptions import NotFoundError

from components import names
from components.health.repair_state import KEY, Json
from components.health.reporter import NAMESPACE, NCCL_GATE
from runner.report import Client

_LONGEST_PREFIX: Final = 57
"""Characters of a Job's name before the five that the API server adds, so that its pods' names are valid."""
_KEPT_SECONDS: Final = 24 * 3600
_HOW: Final = (
    "Set mlbatch:health.ncclGate.enabled to true, its mode to gate and its scope to node, and run `pulumi up`, or "
    "return the node without a test: --untested."
)


class NoGateError(Exception):
    """The stack has no gate that can test a single node. The message gives the fix."""


def start(client: Client, node: Json) -> tuple[str, str]:
    """Run the gate on a node; return the name of the Job and the cluster's time of its creation. Raises NoGateError."""
    jobs = client.resources.get(api_version="batch/v1", kind="Job")
    try:
        template = jobs.get(name=NCCL_GATE.name, namespace=NAMESPACE).to_dict()
    except NotFoundError:
        raise NoGateError(f"the stack has no health gate: no Job {NAMESPACE}/{NCCL_GATE.name}. {_HOW}") from None
    metadata = jobs.create(body=copied(template, node), namespace=NAMESPACE).metadata
    return str(metadata.name), str(metadata.creationTimestamp)


def copied(gate: Json, node: Json) -> Json:
    """Return the gate's Job for one node, also while it is in repair. Raises NoGateError."""
    pod = deepcopy(gate["spec"]["template"])
    spec = pod["spec"]
    measure = spec["initContainers"][-1]
    if "serviceAccountName" not in spec:
        raise NoGateError(f"the health gate does not mark nodes: its mode is check. {_HOW}")
    if measure.get("ports"):
        raise NoGateError(f"the health gate tests all nodes together: its scope is fabric. {_HOW}")
    missing = {k: v for k, v in (spec.get("nodeSelector") or {}).items() if node["metadata"]["labels"].get(k) != v}
    if missing:
        raise NoGateError(
            f"the health gate tests nodes with the labels {missing} only. After a test of your own, return the node by "
            "--untested."
        )
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), names.HOST: node["metadata"]["labels"][names.HOST]}
    spec["tolerations"] = [*(spec.get("tolerations") or []), {"key": KEY, "operator": "Exists"}]
    metadata = pod["metadata"]
    of_the_job = ("controller-uid", "job-name")
    labels = {key: value for key, value in metadata["labels"].items() if key.rpartition("/")[2] not in of_the_job}
    name = f"{NCCL_GATE.name}-{node['metadata']['name']}"[:_LONGEST_PREFIX].rstrip("-.")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"{name}-", "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "activeDeadlineSeconds": gate["spec"]["activeDeadlineSeconds"],
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "template": {"metadata": {"labels": labels, "annotations": metadata.get("annotations")}, "spec": spec},
        },
    }
