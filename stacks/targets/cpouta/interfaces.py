"""User interfaces in the VM's cluster, which are reachable only through SSH."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from components.openstack.access.first_boot import KUBECONFIG
from stacks.targets.cpouta.settings import CpoutaSettings

HOSTS: Final = ("cpouta", "GPU-cpouta")
"""Names of the VM in SSH's configuration, as the tutorial of the MLOps platform has them."""


_ON_VM: Final = 10_000
"""Added to a port of this machine for the VM's end of the tunnel. kind's node has some of those ports there."""


@dataclass(frozen=True, kw_only=True)
class Interface:
    """A Service with pages. local: the port of this machine, port: the Service's."""

    namespace: str
    service: str
    local: int
    port: int

    @property
    def on_vm(self) -> int:
        """The port of the VM's loopback while it is forwarded."""
        return self.local + _ON_VM

    @property
    def command(self) -> str:
        """The command that forwards it to http://localhost:<local> until it is interrupted."""
        return (
            f"ssh -t -L {self.local}:localhost:{self.on_vm} {HOSTS[0]} kubectl --kubeconfig {KUBECONFIG} "
            f"--namespace {self.namespace} port-forward service/{self.service} {self.on_vm}:{self.port}"
        )


_KUBEFLOW: Final = Interface(namespace="istio-system", service="istio-ingressgateway", local=8080, port=80)
_PIPELINES: Final = Interface(namespace="kubeflow", service="ml-pipeline-ui", local=8080, port=80)
_MLFLOW: Final = {
    "mlflow": Interface(namespace="mlflow", service="mlflow", local=5000, port=5000),
    "mlflowObjects": Interface(namespace="mlflow", service="mlflow-minio-service", local=9001, port=9001),
}
_MONITORING: Final = {
    "prometheus": Interface(namespace="monitoring", service="prometheus-service", local=8090, port=8080),
    "grafana": Interface(namespace="monitoring", service="grafana", local=5050, port=3000),
}
_FORWARDER: Final = {
    "forwarder": Interface(namespace="forwarder", service="fastapi-service", local=6500, port=6500),
    "flower": Interface(namespace="forwarder", service="flower-service", local=6501, port=6501),
}
"""Source: the platform's manifests at the pinned commit; local ports as in the tables of its documents."""

FORWARDED_PORTS: Final = frozenset(
    one.on_vm for one in (_KUBEFLOW, _PIPELINES, *_MLFLOW.values(), *_MONITORING.values(), *_FORWARDER.values())
)
"""Of the VM's loopback, while a command forwards them."""


def interfaces(settings: CpoutaSettings) -> Mapping[str, Interface]:
    """Return the user interfaces of the enabled layers, by name."""
    if not settings.mlops.enabled:
        return {}
    overlay = settings.mlops.deployment.overlay
    return {
        **({"pipelines": _PIPELINES} if "standalone" in overlay else {"kubeflow": _KUBEFLOW}),
        **_MLFLOW,
        **(_MONITORING if overlay.endswith("-monitoring") else {}),
        **(_FORWARDER if settings.mlops.forwarder else {}),
    }
