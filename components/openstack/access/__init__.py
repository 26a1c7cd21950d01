"""Access to a VM's cluster: wait for its first boot, and return a kubeconfig that opens the SSH tunnel."""

from components.openstack.access.remote_cluster import RemoteCluster, RemoteClusterArgs

__all__ = ["RemoteCluster", "RemoteClusterArgs"]
