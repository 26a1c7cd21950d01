"""Access to a VM's cluster: waiting for its first boot, and a kubeconfig that opens the SSH tunnel by itself."""

from __future__ import annotations

from components.openstack.access.remote_cluster import RemoteCluster, RemoteClusterArgs

__all__ = ["RemoteCluster", "RemoteClusterArgs"]
