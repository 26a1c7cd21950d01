"""Volcano Jobs: a launcher and its workers, which start together or not at all."""

from collections.abc import Mapping
from typing import Final

from components import names
from components.kubernetes.manifests import Document
from components.workloads.pods import WORKLOAD_LABEL, Container, NodePods, pod_spec
from components.workloads.submission import Submission

LAUNCHER_TASK: Final = "mpimaster"
WORKER_TASK: Final = "mpiworker"
LAUNCHER_ACCOUNT: Final = "mpi-worker-view"


def volcano_job(
    name: str,
    submission: Submission,
    pods: NodePods,
    *,
    launcher: Container,
    worker: Container,
    annotations: Mapping[str, str] | None = None,
) -> Document:
    """Return a Volcano Job with one launcher and a worker on each node, which start together or not at all.

    Volcano's plugins give the pods an SSH key, names, and the workers' host file. The job is complete when the launcher
    is, and ends when any pod fails. Source of the shape: edwardsp/ai-on-aks, examples/metaseq and nccl-allreduce.
    """
    worker_spec = pod_spec(pods, worker, priority_class=submission.priority_class)
    launcher_spec = {
        **pod_spec(pods, launcher, priority_class=submission.priority_class),
        "serviceAccountName": LAUNCHER_ACCOUNT,
        "automountServiceAccountToken": True,
    }
    share = {names.CPU: "1", names.MEMORY: "8Gi"}
    launcher_spec["containers"][0]["resources"] = {"requests": share, "limits": share}
    metadata = {"labels": {WORKLOAD_LABEL: name}, **({"annotations": dict(annotations)} if annotations else {})}
    deadline = {"activeDeadlineSeconds": pods.deadline_seconds}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": submission.namespace, "labels": {WORKLOAD_LABEL: name}},
        "spec": {
            "minAvailable": pods.nodes + 1,
            "schedulerName": "volcano",
            "queue": submission.queue,
            "maxRetry": 3,
            "plugins": {"ssh": [], "svc": []},
            "policies": [
                {"event": "PodEvicted", "action": "RestartJob"},
                {"event": "PodFailed", "action": "TerminateJob"},
            ],
            "tasks": [
                {
                    "name": LAUNCHER_TASK,
                    "replicas": 1,
                    "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
                    "template": {"metadata": metadata, "spec": {**launcher_spec, **deadline}},
                },
                {
                    "name": WORKER_TASK,
                    "replicas": pods.nodes,
                    "template": {
                        "metadata": metadata,
                        "spec": {**worker_spec, **deadline, "terminationGracePeriodSeconds": 0},
                    },
                },
            ],
        },
    }
