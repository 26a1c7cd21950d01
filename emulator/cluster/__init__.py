"""A Kubernetes cluster on this machine: a real control plane, simulated nodes, and a kubelet for known controllers.

Everything listens on loopback or on Unix sockets of the user. `start`, `stop`, `kill`, `reset`, `wipe` and `status` are
the interface. The other modules run under the daemon in `emulator.cluster.supervisor`.
"""

from emulator.cluster.cluster_status import ClusterStatus, ProcessStatus
from emulator.cluster.lifecycle import ClusterError, kill, reset, start, status, stop, wipe

__all__ = ["ClusterError", "ClusterStatus", "ProcessStatus", "kill", "reset", "start", "status", "stop", "wipe"]
