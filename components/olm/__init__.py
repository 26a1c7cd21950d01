"""Operators from a catalog, installed by OpenShift's Operator Lifecycle Manager (OLM)."""
