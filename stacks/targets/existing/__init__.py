"""Target `existing`: the platform on any cluster with GPU nodes that a kubeconfig names."""
