"""The objects of the chart kube-prometheus-stack with the platform's values, rendered by Helm like on a real
cluster.
"""

from collections.abc import Sequence
from typing import Any

import yaml

from components import catalogue
from components.artifacts import Mirror
from components.kubernetes.placement import ANYWHERE
from components.kubernetes.quantity import Quantity
from components.observability.prometheus import MonitoringArgs, monitoring_values
from components.observability.receivers import Receiver
from emulator.paths import Paths
from emulator.toolchain import CORE, KUBERNETES_VERSION, Toolchain
from tests.helm import helm


def rendered(
    paths: Paths, release: str, namespace: str, receivers: Sequence[Receiver] = (), part: str = ""
) -> list[dict[str, Any]]:
    """Return the chart's objects. part: only one subchart; empty for all. Needs the mirror of `make build`."""
    chart = Mirror().chart(catalogue.find_chart("kube-prometheus-stack"))
    values = monitoring_values(
        MonitoringArgs(
            chart=chart,
            grafana_password="not used",
            storage=Quantity.parse("100Gi"),
            storage_class=None,
            retention_days=15,
            nodes=ANYWHERE,
            namespace=namespace,
            receivers=receivers,
        )
    )
    file = str(paths.mirror / f"{chart.name}-{chart.version}.tgz")
    command = ["template", release, file, f"--namespace={namespace}", f"--kube-version={KUBERNETES_VERSION}"]
    text = helm(Toolchain(paths).folder(CORE) / "helm", *command, values=values)
    documents = [document for document in yaml.safe_load_all(text) if document]
    return [each for each in documents if part in ("", _part(each))]


def _part(document: dict[str, Any]) -> str:
    return str((document["metadata"].get("labels") or {}).get("app.kubernetes.io/name", ""))
