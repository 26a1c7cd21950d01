"""The service accounts of the chart kube-prometheus-stack, and the rights of their pods on OpenShift.

The names depend on the release's name (prometheus-community/helm-charts, charts/kube-prometheus-stack/templates).
"""

from typing import Final

import pulumi

from components.kubernetes.constraints import NONROOT, PRIVILEGED, Constraint, use
from components.kubernetes.manifests import Document

RELEASE: Final = "kube-prometheus-stack"
NODE_EXPORTER: Final = f"{RELEASE}-prometheus-node-exporter"
CONFINED: Final = tuple(
    f"{RELEASE}-{part}"
    for part in ("admission", "alertmanager", "grafana", "kube-state-metrics", "operator", "prometheus")
)
"""Service accounts whose pods set their own user and need no access to the node. The chart has the one of the admission
webhook if the webhook is enabled."""
ACCOUNTS: Final = (*CONFINED, NODE_EXPORTER)
CONSTRAINT: Final = "mlbatch-node-exporter"


def rights(namespace: str, bound_in: pulumi.Input[str], *, privileged: bool) -> list[Document]:
    """Return the objects that OpenShift needs before the chart's pods are created.

    bound_in: the namespace, known when it exists.
    privileged: all service accounts may run privileged pods, as in MLBatch's tutorial.
    """
    if privileged:
        return [use(PRIVILEGED, bound_in, ACCOUNTS)]
    exporter = Constraint(name=CONSTRAINT, namespace=namespace, account=NODE_EXPORTER, host=True)
    return [use(NONROOT, bound_in, CONFINED), exporter.document()]
