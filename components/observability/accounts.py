"""The accounts of the chart kube-prometheus-stack, and what OpenShift has to let their pods have.

The names follow from the release's (prometheus-community/helm-charts, charts/kube-prometheus-stack/templates).
"""

from __future__ import annotations

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
"""Of pods that name a user of their own, and need nothing of their node. That of the admission webhook is the chart's
where the webhook is on."""
ACCOUNTS: Final = (*CONFINED, NODE_EXPORTER)
CONSTRAINT: Final = "mlbatch-node-exporter"


def rights(namespace: str, bound_in: pulumi.Input[str], *, privileged: bool) -> list[Document]:
    """Return what has to be there on OpenShift before the chart's pods are made.

    bound_in: the namespace, known once it exists. privileged: every account may run privileged pods, as the tutorial of
    MLBatch has it.
    """
    if privileged:
        return [use(PRIVILEGED, bound_in, ACCOUNTS)]
    exporter = Constraint(name=CONSTRAINT, namespace=namespace, account=NODE_EXPORTER, host=True)
    return [use(NONROOT, bound_in, CONFINED), exporter.document()]
