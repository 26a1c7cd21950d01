"""Names that more than one component, or somebody outside of this program, refers to by string.

Sources: project-codeflare/mlbatch, `setup.k8s` (CLUSTER-SETUP.md, TEAM-SETUP.md, mlbatch-priorities.yaml); Kueue's
`pkg/controller/constants` and AppWrapper's `pkg/config`.
"""

from __future__ import annotations

from typing import Final

SYSTEM_NAMESPACE: Final = "mlbatch-system"
WORKLOADS_NAMESPACE: Final = "workloads"
"""Of jobs that no team submits, unless the stack names another: those of Volcano, and plain ones."""
TEAM_LABEL: Final = "mlbatch-team-namespace"
"""Kueue manages every job in the namespaces that carry this label with the value "true"."""

FLAVOR: Final = "default-flavor"
LOCAL_QUEUE: Final = "default-queue"
"""The queue AppWrapper fills in when a job names none; every team namespace has one of this name."""
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
LONGEST_LABEL: Final = "kueue.x-k8s.io/max-exec-time-seconds"
"""After how many seconds of running Kueue ends a job."""
SLACK_TEAM: Final = "slack"
EDITOR_ROLE: Final = "mlbatch-edit"
SYSTEM_PRIORITY: Final = "system-node-critical"
"""Built into Kubernetes; all MLBatch controllers run with it."""

HOST: Final = "kubernetes.io/hostname"

LOW_PRIORITY: Final = "low-priority"
DEFAULT_PRIORITY: Final = "default-priority"
HIGH_PRIORITY: Final = "high-priority"

CPU: Final = "cpu"
MEMORY: Final = "memory"
GPU: Final = "nvidia.com/gpu"
SHARED_GPU: Final = "nvshare.com/gpu"
"""A share of a GPU, as NVshare's device plugin offers it in place of GPU. Where it does, GPU is the key of amounts
within this program all the same; what is written to a cluster names what its nodes offer."""
RDMA: Final = "nvidia.com/roce_gdr"
INFINIBAND: Final = "nvidia.com/mlnxnics"
"""An InfiniBand port, as the SR-IOV device plugin of NVIDIA's network operator offers it (edwardsp/ai-on-aks)."""
SHARED_INFINIBAND: Final = "rdma/rdma_shared_device_a"
"""All InfiniBand ports of a node at once, as the RDMA shared device plugin offers them, under the name that NVIDIA's
network operator gave them up to 24.7. No queue counts it."""
DISK: Final = "ephemeral-storage"
"""What containers write to their node's own disk: into themselves, their logs and emptyDir volumes. No queue counts
it."""
PODS: Final = "pods"
RESOURCES: Final = (CPU, MEMORY, GPU, RDMA, INFINIBAND, PODS)
"""What every ClusterQueue covers, in the order in which it lists them. A job that names any other is never admitted,
unless Kueue is told to pass over it."""

KUEUE_GROUP: Final = "kueue.x-k8s.io"
KUEUE_API: Final = f"{KUEUE_GROUP}/v1beta2"
"""The version in which Kueue stores objects. The API server has Kueue convert an object to any other version, so that
without a running Kueue a preview of its repair would fail."""
KUEUE_API_BEFORE: Final = f"{KUEUE_GROUP}/v1beta1"
"""The only version that the Kueue of OpenShift AI 2 serves."""
APPWRAPPER_GROUP: Final = "workload.codeflare.dev"
APPWRAPPER_API: Final = f"{APPWRAPPER_GROUP}/v1beta2"


def cluster_queue(team: str) -> str:
    """Return the name of a team's ClusterQueue (MLBatch TEAM-SETUP.md)."""
    return f"{team}-cluster-queue"


SLACK_QUEUE: Final = cluster_queue(SLACK_TEAM)
