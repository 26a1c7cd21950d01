"""Operators that OpenShift's Operator Lifecycle Manager (OLM) installs from a catalog."""
