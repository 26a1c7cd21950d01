"""The metrics that dashboards and alerts are made of, each with the place that defines it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from components import names


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


DCGM_FIELDS: Final = (
    Field(name="DCGM_FI_DEV_SM_CLOCK", kind="gauge", help="SM clock frequency (in MHz)."),
    Field(name="DCGM_FI_DEV_GPU_TEMP", kind="gauge", help="GPU temperature (in C)."),
    Field(name="DCGM_FI_DEV_MEMORY_TEMP", kind="gauge", help="Memory temperature (in C)."),
    Field(name="DCGM_FI_DEV_POWER_USAGE", kind="gauge", help="Power draw (in W)."),
    Field(name="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", kind="counter", help="Energy used since boot (in mJ)."),
    Field(name="DCGM_FI_DEV_PCIE_REPLAY_COUNTER", kind="counter", help="PCIe retries."),
    Field(name="DCGM_FI_DEV_GPU_UTIL", kind="gauge", help="GPU utilization (in %)."),
    Field(name="DCGM_FI_DEV_MEM_COPY_UTIL", kind="gauge", help="Memory utilization (in %)."),
    Field(name="DCGM_FI_DEV_FB_FREE", kind="gauge", help="Framebuffer memory free (in MiB)."),
    Field(name="DCGM_FI_DEV_FB_USED", kind="gauge", help="Framebuffer memory used (in MiB)."),
    Field(name="DCGM_FI_DEV_XID_ERRORS", kind="gauge", help="The last XID error."),
    Field(name="DCGM_EXP_XID_ERRORS_COUNT", kind="gauge", help="XID errors of the last five minutes by number."),
    Field(name="DCGM_EXP_CLOCK_EVENTS_COUNT", kind="gauge", help="Reasons for lower clocks in the last five minutes."),
    Field(name="DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", kind="counter", help="Double-bit ECC errors since boot."),
    Field(name="DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", kind="counter", help="Rows remapped for such errors."),
    Field(name="DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", kind="counter", help="Rows remapped for correctable errors."),
    Field(name="DCGM_FI_DEV_ROW_REMAP_FAILURE", kind="gauge", help="Whether remapping of rows has failed."),
    Field(name="DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", kind="counter", help="NVLink retries."),
    Field(name="DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", kind="counter", help="NVLink recoveries."),
    Field(name="DCGM_FI_PROF_NVLINK_TX_BYTES", kind="gauge", help="Bytes sent over NVLink each second."),
    Field(name="DCGM_FI_PROF_NVLINK_RX_BYTES", kind="gauge", help="Bytes received over NVLink each second."),
    Field(name="DCGM_FI_DRIVER_VERSION", kind="label", help="Driver version."),
    Field(name="DCGM_FI_PROF_GR_ENGINE_ACTIVE", kind="gauge", help="Ratio of time the graphics engine is active."),
    Field(name="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", kind="gauge", help="Ratio of cycles the tensor pipe is active."),
    Field(name="DCGM_FI_PROF_DRAM_ACTIVE", kind="gauge", help="Ratio of cycles the memory interface is active."),
    Field(name="DCGM_FI_PROF_PCIE_TX_BYTES", kind="gauge", help="Bytes sent over PCIe each second."),
    Field(name="DCGM_FI_PROF_PCIE_RX_BYTES", kind="gauge", help="Bytes received over PCIe each second."),
)
"""What the GPU operator's exporter is told to export: names and types of `etc/dcp-metrics-included.csv` in
NVIDIA/dcgm-exporter, its commented-out count of double-bit ECC errors among them. Those with EXP are the exporter's own
(internal/pkg/collector/xid_collector.go, clock_events_collector.go): it counts what DCGM told within five minutes, by
the labels `xid` and `clock_event`, where DCGM's own field shows the last XID error alone, and for ever. NVLink's
bandwidth is a counter in some exporters and a gauge in others; the profiling fields are bytes per second in all."""

KUEUE_METRICS: Final = (
    "kueue_pending_workloads",
    "kueue_admitted_active_workloads",
    "kueue_admission_wait_time_seconds_bucket",
    "kueue_evicted_workloads_total",
    "kueue_preempted_workloads_total",
    "kueue_cluster_queue_nominal_quota",
    "kueue_cluster_queue_resource_reservation",
    "kueue_cluster_queue_status",
    "kueue_cluster_queue_weighted_share",
)
"""Defined in kubernetes-sigs/kueue, pkg/metrics/metrics.go; those of resources need `enableClusterQueueResources`."""

APPWRAPPER_METRICS: Final = ("appwrapper_phase_total",)
"""Defined in project-codeflare/appwrapper, internal/metrics/metrics.go."""

INFINIBAND_METRICS: Final = (
    "node_infiniband_port_data_received_bytes_total",
    "node_infiniband_port_data_transmitted_bytes_total",
    "node_infiniband_port_transmit_wait_total",
    "node_infiniband_link_downed_total",
    "node_infiniband_symbol_error_total",
    "node_infiniband_port_errors_received_total",
    "node_infiniband_state_id",
    "node_infiniband_rate_bytes_per_second",
)
"""Defined in prometheus/node_exporter, collector/infiniband_linux.go."""

AUTOPILOT_METRICS: Final = ("autopilot_health_checks",)
"""Defined in IBM/autopilot, autopilot-daemon/pkg/utils/prometheus.go, with the check in the label health."""

SLACK_METRICS: Final = (
    "mlbatch_slack_last_reconcile_timestamp_seconds",
    "mlbatch_usable",
    "mlbatch_quota",
    "mlbatch_lending_limit",
    "mlbatch_node_unusable",
    "mlbatch_node_lost",
)
"""Of the platform's slack controller, components/tenancy/slack_controller.py. Kueue's own metric of a lending limit is
0 where there is none, too (pkg/util/resource/resource.go, QuantityToFloat)."""

CLUSTER_METRICS: Final = (
    "kube_node_info",
    "kube_node_status_condition",
    "kube_node_status_allocatable",
    "kube_node_status_capacity",
    "kube_node_labels",
    "kube_node_spec_taint",
    "kube_job_status_failed",
    "kube_pod_container_resource_requests",
    "kube_pod_status_phase",
    "kube_daemonset_status_number_unavailable",
    "kube_deployment_status_replicas_available",
    "kubelet_volume_stats_available_bytes",
    "kubelet_volume_stats_capacity_bytes",
    "apiserver_admission_webhook_rejection_count",
    "apiserver_storage_size_bytes",
    "etcd_server_quota_backend_bytes",
)
"""Defined in kubernetes/kube-state-metrics, docs/metrics/cluster/node-metrics.md and docs/metrics/workload; those of
volumes in kubernetes/kubernetes, pkg/kubelet/metrics/metrics.go; the API server's in staging/src/k8s.io/apiserver,
pkg/admission/metrics/metrics.go and pkg/storage/etcd3/metrics/metrics.go; the last one in etcd-io/etcd,
server/etcdserver/metrics.go, which managed clusters do not show."""

OBJECT_METRICS: Final = (
    "mlbatch_workload_created",
    "mlbatch_workload_active",
    "mlbatch_workload_condition",
    "mlbatch_workload_condition_since",
    "mlbatch_localqueue_info",
    "mlbatch_appwrapper_phase",
    "mlbatch_appwrapper_retries",
)
"""What kube-state-metrics makes of Kueue's and AppWrapper's objects, as `object_state.py` has it."""

RECORDED: Final = ("mlbatch:workload_pending_seconds",)
"""What Prometheus works out by itself, of the rules in `alerts.py`."""

KNOWN: Final = frozenset(
    {
        *(field.name for field in DCGM_FIELDS),
        *KUEUE_METRICS,
        *APPWRAPPER_METRICS,
        *INFINIBAND_METRICS,
        *AUTOPILOT_METRICS,
        *SLACK_METRICS,
        *CLUSTER_METRICS,
        *OBJECT_METRICS,
        *RECORDED,
    }
)
"""Everything that a dashboard or an alert may ask for."""
