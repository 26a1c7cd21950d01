"""What every layer uses to speak to a cluster: manifests, quantities, the cluster itself."""
