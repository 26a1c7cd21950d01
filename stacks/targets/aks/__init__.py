"""Target `aks`: the platform on Azure Kubernetes Service, after edwardsp/ai-on-aks."""
