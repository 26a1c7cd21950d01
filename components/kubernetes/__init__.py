"""Common parts of all layers for a cluster: manifests, quantities and the cluster itself."""
