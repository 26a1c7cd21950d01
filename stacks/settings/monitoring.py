"""Metrics, dashboards and alerts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Final, TypeAlias

from pydantic import Field

from components import catalogue
from components.catalogue import Artifact
from components.kubernetes.quantity import Quantity
from components.observability import prometheus, receivers
from stacks.config.errors import ConfigError, Path, key, listed
from stacks.settings.gpu import GpuSettings
from stacks.settings.model import Bytes, SettingsModel, choice, form
from stacks.settings.names import ClassName, label_error

_STACK: Final = catalogue.chart_versions("kube-prometheus-stack")
_LEAST: Final = Quantity.parse("10Gi")
_LEAST_VOLUME: Final = Quantity.parse("1Gi")
TAKEN_PORTS: Final[Mapping[int, str]] = {
    2379: "etcd of Kubernetes",
    2380: "etcd of Kubernetes",
    6443: "the API server of Kubernetes",
    10248: "the kubelet of Kubernetes",
    10249: "kube-proxy of Kubernetes",
    10250: "the kubelet of Kubernetes",
    10255: "the kubelet of Kubernetes",
    10256: "kube-proxy of Kubernetes",
    10257: "the controller manager of Kubernetes",
    10259: "the scheduler of Kubernetes",
}
"""Ports of nodes by who listens there (kubernetes.io, reference/networking/ports-and-protocols; healthzBindAddress and
readOnlyPort of kubelet-config.v1beta1, metricsBindAddress and healthzBindAddress of kube-proxy-config.v1alpha1)."""


RunbooksAddress: TypeAlias = Annotated[
    str,
    form(
        r"https?://[^\s#?@]+",
        "an address like https://git.example.org/platform/docs/runbooks.md, without # and what follows",
        "this is not the address of a page with sections that alerts can link to",
        "open docs/runbooks.md in your repository and copy the address, or remove the key",
    ),
]


class ReceiverSettings(SettingsModel):
    """A receiver of alerts.

    Its address is a secret: `mlbatch:alertSlackUrl`, `alertTeamsUrl`, `alertWebhookUrl` or `alertPagerdutyKey`.
    """

    kind: Annotated[str, choice("receiver", tuple(receivers.KINDS))]
    """Type of the receiver."""
    severity: Annotated[str, choice("severity", receivers.SEVERITIES)] = receivers.SEVERITIES[0]
    """Minimum severity: warning sends all alerts, critical only those about a current loss of capacity."""


class MonitoringSettings(SettingsModel):
    """Prometheus, Alertmanager and Grafana."""

    taken_ports: ClassVar[Mapping[int, str]] = TAKEN_PORTS

    enabled: bool = True
    """Install them."""
    namespace: str = prometheus.NAMESPACE
    """Their namespace, which the stack creates."""
    definitions: bool = True
    """Install the chart's custom resource definitions. Set to false if the cluster has them, like OpenShift."""
    version: Annotated[str, choice("kube-prometheus-stack version", _STACK)] = _STACK[0]
    """Version of the chart kube-prometheus-stack."""
    retention_days: Annotated[int, Field(ge=1, le=365)] = 40
    """Maximum days to keep metrics. `mlbatch usage` needs those of the last month. A full volume shortens it."""
    storage: Bytes = Quantity.parse("100Gi")
    """Size of Prometheus's volume in bytes, at least 10Gi."""
    storage_class: ClassName | None = None
    """StorageClass of all three volumes. Default: the cluster's class for block volumes."""
    alertmanager_storage: Bytes | None = None
    """Size of Alertmanager's volume in bytes, at least 1Gi. Default: no volume, and silences are lost with the pod."""
    grafana_storage: Bytes | None = None
    """Size of Grafana's volume in bytes, at least 1Gi. Default: no volume, and changes in Grafana are lost with the
    pod.
    """
    node_exporter_port: Annotated[int, Field(ge=1024, le=65535)] = prometheus.NODE_EXPORTER_PORT
    """Port of the node exporter on each node. Change it if the cluster has its own exporter."""
    gpu_operator_namespace: str | None = None
    """Namespace of the cluster's own GPU operator, such as nvidia-gpu-operator, to collect its metrics."""
    dashboards: bool = True
    """Install the platform's dashboards."""
    published_dashboards: bool = False
    """Install dashboards 23123 (Autopilot) and 12239 (NVIDIA DCGM exporter) of grafana.com. Each update downloads them,
    or reads `grafana-dashboard-<id>-<revision>.json` from `mlbatch:mirror.artifacts`.
    """
    alerts: bool = True
    """Install the platform's alerts."""
    runbooks: RunbooksAddress | None = None
    """URL of docs/runbooks.md, for example in your repository. Each alert then links to its section. Default: no links.
    """
    receivers: tuple[ReceiverSettings, ...] = ()
    """Receivers of alerts, at most one of each kind. Default: none, and alerts are visible only in Alertmanager."""

    def has_gpu_metrics(self, gpu: GpuSettings) -> bool:
        """Return whether Prometheus reads the metrics of GPUs: of the stack's own operator, or of the cluster's."""
        return gpu.brings_metrics or self.gpu_operator_namespace is not None

    def artifacts(self) -> Sequence[Artifact]:
        return catalogue.DASHBOARDS if self.enabled and self.published_dashboards else ()

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from label_error((*path, "namespace"), self.namespace)
        if self.gpu_operator_namespace is not None:
            yield from label_error((*path, "gpuOperatorNamespace"), self.gpu_operator_namespace)
        yield from self._repeated(path)
        yield from self._port(path)
        for name, size in (
            ("alertmanagerStorage", self.alertmanager_storage),
            ("grafanaStorage", self.grafana_storage),
        ):
            if self.enabled and size is not None and size < _LEAST_VOLUME:
                yield ConfigError(
                    (*path, name),
                    "a volume of this size fills up soon",
                    f"set {key((*path, name))} to {_LEAST_VOLUME} or more, or remove the key; the default is no volume",
                )
        if self.enabled and self.storage < _LEAST:
            yield ConfigError(
                (*path, "storage"),
                "a volume of this size fills up within hours, and Prometheus then drops new samples",
                f"set {key((*path, 'storage'))} to {_LEAST} or more, or remove the key; the default is 100Gi",
            )

    def _port(self, path: Path) -> Iterator[ConfigError]:
        if self.enabled and (owner := self.taken_ports.get(self.node_exporter_port)) is not None:
            default = type(self).model_fields["node_exporter_port"].default
            yield ConfigError(
                (*path, "nodeExporterPort"),
                f"{owner} uses this port of the nodes, so the exporter cannot start",
                f"set it to another port, or remove the key; the default is {default}",
                expected=f"a port that is free on each node, none of {listed(sorted(self.taken_ports))}",
            )

    def _repeated(self, path: Path) -> Iterator[ConfigError]:
        kinds = [receiver.kind for receiver in self.receivers]
        for index, kind in enumerate(kinds):
            if kind in kinds[:index]:
                yield ConfigError(
                    (*path, "receivers", index, "kind"),
                    "duplicate kind: both receivers would use one secret",
                    "remove this receiver, or set its kind to another one",
                )
