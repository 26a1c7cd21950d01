"""Stubs of Red Hat's operators for OpenShift AI 3: no package registry has the operators.

OLM installs them from the catalog, with pods that are simulated. While such a pod is ready, its stub does the part of
the operator's work that a stack depends on, with the operator's account and rights. Kueue and KubeRay, which the
operators install, are real.

Sources: openshift/kueue-operator at a82b72a1 (1.4.1); red-hat-data-services/rhods-operator at 8dc22631 (3.4.3).
"""
