"""Azure: the resource group, the network, the cluster with its GPU pool, the registry and the blob storage."""
