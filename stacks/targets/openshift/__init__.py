"""Target `openshift`: the platform on an OpenShift cluster that a kubeconfig names."""
