"""Programs for the nodes of AKS."""
