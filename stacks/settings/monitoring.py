"""Metrics, dashboards and alerts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field

from components import catalogue
from components.kubernetes.quantity import Quantity
from stacks.errors import ConfigError, Path, key
from stacks.settings.model import Bytes, SettingsModel, choice
from stacks.settings.names import ClassName

_STACK: Final = catalogue.chart_versions("kube-prometheus-stack")
_LEAST: Final = Quantity.parse("10Gi")


class MonitoringSettings(SettingsModel):
    """Prometheus, Alertmanager and Grafana."""

    enabled: bool = True
    """Install them."""
    version: Annotated[str, choice("kube-prometheus-stack version", _STACK)] = _STACK[0]
    """Version of the chart kube-prometheus-stack."""
    retention_days: Annotated[int, Field(ge=1, le=365)] = 15
    """How many days metrics are kept, while they fit the volume."""
    storage: Bytes = Quantity.parse("100Gi")
    """Size of Prometheus's volume in bytes, at least 10Gi."""
    storage_class: ClassName | None = None
    """Class of Prometheus's volume; default the cluster's class of block volumes."""
    dashboards: bool = True
    """Install the platform's own dashboards."""
    alerts: bool = True
    """Install the platform's own alerts."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the volume to a size that is of use."""
        if self.enabled and self.storage < _LEAST:
            yield ConfigError(
                path=(*path, "storage"),
                value=str(self.storage),
                message="a volume this small is full within hours, and Prometheus then drops what it has just recorded",
                expected=f"at least {_LEAST}",
                hint=f"set {key((*path, 'storage'))} to 100Gi, or remove the key",
            )
