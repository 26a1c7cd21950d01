"""The metrics that dashboards and alerts use, from metrics.yaml, which names the source of each."""

import re
from dataclasses import dataclass
from itertools import chain
from typing import Final

from components import names
from components.tables import Table


def resource_label(resource: str) -> str:
    """Return a resource name in kube-state-metrics' labels (kubernetes/kube-state-metrics, SanitizeLabelName)."""
    return re.sub(r"\W", "_", resource)


def knows_holders(gpu_resource: str) -> bool:
    """Return whether NVIDIA's exporter knows the pods that have GPUs of this resource name.

    It asks the kubelet for pods with nvidia.com/gpu. With NVshare, NVshare's plugin has all of these
    (NVIDIA/dcgm-exporter, internal/pkg/transformation/kubernetes.go).
    """
    return gpu_resource == names.GPU


@dataclass(frozen=True, kw_only=True)
class Field:
    """A metric of NVIDIA's DCGM exporter: name, Prometheus type, and help without a comma."""

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
KNOWN: Final = frozenset(chain((field.name for field in DCGM_FIELDS), *_METRICS.model_dump(exclude={"dcgm"}).values()))
"""Everything that a dashboard or an alert may use."""
