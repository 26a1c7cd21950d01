"""The metrics that dashboards and alerts use, from metrics.yaml, which names the source of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from components import names
from components.tables import Table


def resource_label(resource: str) -> str:
    """Return a resource as kube-state-metrics' label has it (kubernetes/kube-state-metrics, SanitizeLabelName)."""
    return re.sub(r"\W", "_", resource)


def knows_holders(gpu_resource: str) -> bool:
    """Return whether NVIDIA's exporter tells which pod has a GPU that nodes offer under this name.

    It asks the kubelet for pods with nvidia.com/gpu, of which NVshare's own plugin has every one (NVIDIA/dcgm-exporter,
    internal/pkg/transformation/kubernetes.go).
    """
    return gpu_resource == names.GPU


@dataclass(frozen=True, kw_only=True)
class Field:
    """A metric of NVIDIA's DCGM exporter: name, Prometheus type, and help, which must have no comma."""

    name: str
    kind: str
    help: str


class _Metrics(Table):
    dcgm: tuple[Field, ...]
    kueue: tuple[str, ...]
    appwrapper: tuple[str, ...]
    infiniband: tuple[str, ...]
    autopilot: tuple[str, ...]
    slack: tuple[str, ...]
    cluster: tuple[str, ...]
    objects: tuple[str, ...]
    recorded: tuple[str, ...]


_METRICS: Final = _Metrics.load(__name__)
DCGM_FIELDS: Final = _METRICS.dcgm
KUEUE_METRICS: Final = _METRICS.kueue
APPWRAPPER_METRICS: Final = _METRICS.appwrapper
AUTOPILOT_METRICS: Final = _METRICS.autopilot
SLACK_METRICS: Final = _METRICS.slack
OBJECT_METRICS: Final = _METRICS.objects
RECORDED: Final = _METRICS.recorded
KNOWN: Final = frozenset(
    {
        *(field.name for field in DCGM_FIELDS),
        *KUEUE_METRICS,
        *APPWRAPPER_METRICS,
        *_METRICS.infiniband,
        *AUTOPILOT_METRICS,
        *SLACK_METRICS,
        *_METRICS.cluster,
        *OBJECT_METRICS,
        *RECORDED,
    }
)
"""Everything that a dashboard or an alert may use."""
