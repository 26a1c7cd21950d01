"""Names that several components, or other programs, use as strings.

Sources: project-codeflare/mlbatch, `setup.k8s` (CLUSTER-SETUP.md, TEAM-SETUP.md, mlbatch-priorities.yaml); Kueue's
`pkg/controller/constants` and AppWrapper's `pkg/config`.
"""

from typing import Final

SYSTEM_NAMESPACE: Final = "mlbatch-system"
WORKLOADS_NAMESPACE: Final = "workloads"
"""Default namespace of jobs outside teams: those of Volcano, and plain ones."""
TEAM_LABEL: Final = "mlbatch-team-namespace"
"""Kueue manages all jobs in namespaces with this label and the value "true"."""

FLAVOR: Final = "default-flavor"
LOCAL_QUEUE: Final = "default-queue"
"""The queue that AppWrapper sets if a job names none. Every team's namespace has one with this name."""
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
LONGEST_LABEL: Final = "kueue.x-k8s.io/max-exec-time-seconds"
"""Label with the number of seconds after which Kueue ends a running job."""
USER_QUEUES: Final = "mlbatch/user-queues"
"""Annotation of a team's namespace: a line `queue=user` for each user who has a queue."""
SLACK_TEAM: Final = "slack"
EDITOR_ROLE: Final = "mlbatch-edit"
SYSTEM_PRIORITY: Final = "system-node-critical"
"""Built-in priority class of Kubernetes. All MLBatch controllers use it."""

HOST: Final = "kubernetes.io/hostname"

LOW_PRIORITY: Final = "low-priority"
DEFAULT_PRIORITY: Final = "default-priority"
HIGH_PRIORITY: Final = "high-priority"

CPU: Final = "cpu"
MEMORY: Final = "memory"
GPU: Final = "nvidia.com/gpu"
SHARED_GPU: Final = "nvshare.com/gpu"
"""A share of a GPU, which NVshare's device plugin offers instead of GPU. Inside this program, amounts then still have
the key GPU. Objects in the cluster have the name that nodes offer."""
RDMA: Final = "nvidia.com/roce_gdr"
INFINIBAND: Final = "nvidia.com/mlnxnics"
"""An InfiniBand port, offered by the SR-IOV device plugin of NVIDIA's network operator (edwardsp/ai-on-aks)."""
SHARED_INFINIBAND: Final = "rdma/rdma_shared_device_a"
"""All InfiniBand ports of a node, offered by the RDMA shared device plugin. NVIDIA's network operator used this name up
to 24.7. No queue counts it."""
DISK: Final = "ephemeral-storage"
"""What containers write to their node's disk: their file systems, logs and emptyDir volumes. No queue counts it."""
PODS: Final = "pods"
RESOURCES: Final = (CPU, MEMORY, GPU, RDMA, INFINIBAND, PODS)
"""Resources of every ClusterQueue, in this order. A job that requests another resource is never admitted, unless
Kueue's configuration excludes the resource."""

RBAC: Final = "rbac.authorization.k8s.io"
"""The API group of roles and their bindings."""
KUEUE_GROUP: Final = "kueue.x-k8s.io"
KUEUE_API: Final = f"{KUEUE_GROUP}/v1beta2"
"""The version that Kueue stores. For any other version, the API server needs Kueue to convert objects. Without a
running Kueue, the preview of its repair would fail."""
KUEUE_API_BEFORE: Final = f"{KUEUE_GROUP}/v1beta1"
"""The only version that the Kueue of OpenShift AI 2 serves."""
APPWRAPPER_GROUP: Final = "workload.codeflare.dev"
APPWRAPPER_API: Final = f"{APPWRAPPER_GROUP}/v1beta2"


def cluster_queue(team: str) -> str:
    """Return the name of a team's ClusterQueue (MLBatch TEAM-SETUP.md)."""
    return f"{team}-cluster-queue"


SLACK_QUEUE: Final = cluster_queue(SLACK_TEAM)
