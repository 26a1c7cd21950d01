"""Metrics, dashboards and alerts."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from components import catalogue
from components.kubernetes.quantity import Quantity
from stacks.settings.section import Section, choice

_STACK: Final = catalogue.chart_versions("kube-prometheus-stack")


class MonitoringSettings(Section):
    """Prometheus, Alertmanager and Grafana.

    version: of kube-prometheus-stack. retention_days: how long metrics are kept, while they fit the volume.
    storage, storage_class: of Prometheus's volume. dashboards, alerts: install the platform's own.
    """

    enabled: bool = True
    version: Annotated[str, choice("kube-prometheus-stack version", _STACK)] = _STACK[0]
    retention_days: Annotated[int, Field(ge=1, le=365)] = 15
    storage: Quantity = Quantity.parse("100Gi")
    storage_class: str = "managed-csi-premium"
    dashboards: bool = True
    alerts: bool = True
