"""Alerts fire exactly when they should: promtool evaluates the rules over series of hours.

Needs no cluster, only the tools from `make build`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.observability import alerts
from components.observability.alerts import Watched
from components.observability.dashboards import DASHBOARDS
from components.queueing import training_operator
from emulator.paths import Paths
from emulator.toolchain import PROMETHEUS, Toolchain
from tests.unit.releases import FOLDER

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """Events minute by minute, and the alerts at one time.

    series: values by series, in promtool's notation.
    minute: time of the evaluation.
    raised: labels of each alert.
    """

    alert: str
    what: str
    series: Mapping[str, str]
    minute: int
    raised: Sequence[Labels] = ()
    watched: Watched = field(default_factory=Watched)

    @property
    def name(self) -> str:
        return f"MLBatch{self.alert}"


def xid(number: int, **labels: str) -> str:
    return _series("DCGM_EXP_XID_ERRORS_COUNT", node="n0", gpu="3", xid=str(number), **labels)


def _series(metric: str, **labels: str) -> str:
    return metric + "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def temperature(gpu: int, **labels: str) -> str:
    return _series("DCGM_FI_DEV_GPU_TEMP", node="n0", gpu=str(gpu), **labels)


def queue(metric: str, **labels: str) -> str:
    return _series(f"kueue_{metric}", cluster_queue="blue-cluster-queue", **labels)


def gpus(metric: str) -> str:
    return queue(f"cluster_queue_{metric}", flavor="default-flavor", resource="nvidia.com/gpu")


def workload(metric: str, **labels: str) -> str:
    return _series(f"mlbatch_workload_{metric}", namespace="blue", name="job", queue="default-queue", **labels)


def deployment(name: str) -> str:
    return _series("kube_deployment_status_replicas_available", namespace="mlbatch-system", deployment=name)


def slack(flavor: str = "default-flavor", **quotas: int) -> dict[str, str]:
    return {
        _series("mlbatch_quota", queue=f"{name}-cluster-queue", flavor=flavor, resource="nvidia.com/gpu"): f"{value}x60"
        for name, value in quotas.items()
    }


def usable(value: int, flavor: str = "default-flavor") -> dict[str, str]:
    return {_series("mlbatch_usable", flavor=flavor, resource="nvidia.com/gpu"): f"{value}x60"}


def offered(metric: str, node: str = "n0") -> str:
    return _series(f"kube_node_status_{metric}", node=node, resource="nvidia_com_gpu", unit="integer")


def node_info(node: str, values: str = "1x60") -> dict[str, str]:
    return {_series("kube_node_info", node=node): values}


def labelled(verdict: str) -> str:
    return _series("kube_node_labels", node="n0", label_autopilot_ibm_com_gpuhealth=verdict)


def check(health: str, **labels: str) -> str:
    return _series("autopilot_health_checks", node="n0", health=health, **labels)


LOCAL_QUEUE = _series(
    "mlbatch_localqueue_info", namespace="blue", queue="default-queue", cluster_queue="blue-cluster-queue"
)
BLUE = {"cluster_queue": "blue-cluster-queue"}
N0 = {"node": "n0"}
PORT = {"node": "n0", "device": "mlx5_0", "port": "1"}
OTHER_NODE = node_info("n9")
UP = {**{deployment(name): "1x60" for name in Watched().controllers}, **OTHER_NODE}
API_SERVER = {_series("up", job="apiserver", instance="10.0.0.1:6443"): "1x60"}


def unreached(name: str, instance: str = "10.0.0.1:6443") -> str:
    labels = {"name": name, "error_type": "calling_webhook_error", "instance": instance}
    return _series("apiserver_admission_webhook_rejection_count", **labels)


STORE = _series("apiserver_storage_size_bytes", storage_cluster_id="etcd-0")


def webhooks() -> Sequence[str]:
    """Return the names of the operators' webhooks, which are the label `name` of the API server's metric."""
    found = {training_operator.webhooks()["webhooks"][0]["name"]}
    for file in (*FOLDER.glob("kueue-*.yaml"), *FOLDER.glob("appwrapper-*.yaml")):
        for document in yaml.load_all(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if document["kind"].endswith("WebhookConfiguration"):
                found |= {webhook["name"] for webhook in document["webhooks"]}
    return sorted(found)


CASES = (
    # The exporter counts the last five minutes.
    Case(
        "GpuXidError",
        "of the GPU, then of its application",
        {xid(79): "_ 1x4 _x60", xid(45): "_ _ 1x4 _x60"},
        14,
        [{"node": "n0", "gpu": "3", "xid": "79"}],
    ),
    Case(
        "GpuXidError", "that wants a reset of the GPU", {xid(46): "1x9"}, 5, [{"node": "n0", "gpu": "3", "xid": "46"}]
    ),
    Case(
        "GpuXidError",
        "that a context did not switch in time, which newer drivers tell",
        {xid(109): "_ 1x4 _x60"},
        5,
        [{"node": "n0", "gpu": "3", "xid": "109"}],
    ),
    Case("GpuXidError", "an hour ago", {xid(79): "_ 1x4 _x80", "DCGM_FI_DEV_XID_ERRORS": "79x90"}, 70),
    Case("GpuXidError", "of an application alone", {xid(31): "1x60"}, 30),
    Case(
        "GpuXidError",
        "under another operator's labels",
        {xid(94, hostname="x", Hostname="y"): "1x9"},
        5,
        [{"node": "n0", "gpu": "3", "xid": "94"}],
    ),
    Case(
        "GpuEccError",
        "the job dies with it, and the series that follows starts at 1",
        {
            _series("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", node="n0", gpu="3", exported_pod="job"): "0x9 _x50",
            _series("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", node="n0", gpu="3"): "_x9 1x50",
        },
        12,
        [{"node": "n0", "gpu": "3"}],
    ),
    Case("GpuEccError", "none", {_series("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", node="n0", gpu="3"): "0x60"}, 30),
    Case(
        "GpuRowRemapFailure",
        "",
        {_series("DCGM_FI_DEV_ROW_REMAP_FAILURE", node="n0", gpu="3"): "1x60"},
        5,
        [{"node": "n0", "gpu": "3"}],
    ),
    Case("GpuLost", "one of two", {temperature(0): "40x60", temperature(1): "40x10 _x50"}, 30, [N0]),
    Case(
        "GpuLost",
        "none, while jobs come and go",
        {temperature(0, exported_pod="a"): "40x10 _x50", temperature(0): "_x10 40x50"},
        40,
    ),
    Case(
        "GpusNotWatched",
        "one node of two",
        {temperature(0): "40x60", offered("allocatable"): "8x60", offered("allocatable", "n1"): "8x60"},
        30,
        [{"node": "n1"}],
    ),
    Case("GpusNotWatched", "an exporter that never ran", {offered("allocatable"): "8x60"}, 30, [{"node": "n0"}]),
    Case("GpusNotWatched", "every node", {temperature(0): "40x60", offered("allocatable"): "8x60"}, 30),
    Case(
        "GpuThrottled",
        "by heat",
        {_series("DCGM_EXP_CLOCK_EVENTS_COUNT", node="n0", gpu="3", clock_event="hw_thermal"): "5x60"},
        30,
        [{"node": "n0", "gpu": "3", "clock_event": "hw_thermal"}],
    ),
    Case(
        "GpuThrottled",
        "by its power cap",
        {_series("DCGM_EXP_CLOCK_EVENTS_COUNT", node="n0", gpu="3", clock_event="sw_power_cap"): "5x60"},
        30,
    ),
    Case(
        "NvlinkErrors",
        "the job dies with it, and the series that follows starts at 1",
        {
            _series(
                "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", node="n0", gpu="3", exported_pod="job"
            ): "0x9 _x50",
            _series("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", node="n0", gpu="3"): "_x9 1x50",
        },
        15,
        [{"node": "n0", "gpu": "3"}],
    ),
    Case(
        "NvlinkErrors",
        "",
        {_series("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", node="n0", gpu="3"): "0x10 1x50"},
        15,
        [{"node": "n0", "gpu": "3"}],
    ),
    Case(
        "GpusIdle",
        "a job that hangs",
        {
            _series("DCGM_FI_DEV_GPU_UTIL", node="n0", gpu=str(gpu), exported_namespace="blue"): "90x10 0x200"
            for gpu in range(2)
        },
        200,
        [{"exported_namespace": "blue"}],
    ),
    Case(
        "GpusIdle",
        "a job that has just begun",
        {_series("DCGM_FI_DEV_GPU_UTIL", node="n0", gpu="3", exported_namespace="blue"): "_x100 0x60"},
        150,
    ),
    Case(
        "NodeLost",
        "",
        {_series("kube_node_status_condition", node="n0", condition="Ready", status="true"): "1x5 0x55"},
        15,
        [{**N0, "condition": "Ready", "status": "true"}],
    ),
    Case(
        "NodeGone",
        "deleted",
        {offered("capacity"): "8x10 _x50", _series("kube_node_info", node="n0"): "1x10 _x50", **OTHER_NODE},
        30,
        [N0],
    ),
    Case("NodeGone", "none, without metrics of nodes", {offered("capacity"): "8x10 _x50"}, 30),
    Case("NodeGone", "there", {offered("capacity"): "8x60", _series("kube_node_info", node="n0"): "1x60"}, 30),
    Case(
        "NodeFewerGpus",
        "since its restart",
        {offered("allocatable"): "8x10 7x50", offered("capacity"): "8x10 7x50"},
        40,
        [N0],
    ),
    Case(
        "NodeFewerGpus",
        "than it had, and as many as its kind should have",
        {offered("allocatable"): "8x10 7x50", offered("capacity"): "8x60"},
        40,
        [N0],
        Watched(gpus_per_node=7),
    ),
    Case(
        "NodeFewerGpus",
        "than its kind, from the first",
        {offered("allocatable"): "7x60", offered("capacity"): "7x60"},
        40,
        [N0],
        Watched(gpus_per_node=8),
    ),
    Case(
        "NodeFewerGpus",
        "none, for it has no GPU",
        {offered("allocatable"): "0x60", offered("capacity"): "0x60"},
        40,
        watched=Watched(gpus_per_node=8),
    ),
    Case(
        "NodeUnusable",
        "",
        {_series("mlbatch_node_unusable", node="n0", reason="cordoned"): "1x90"},
        80,
        [{**N0, "reason": "cordoned"}],
    ),
    Case(
        "QueueStuck",
        "with half of its quota free",
        {
            queue("pending_workloads", status="inadmissible"): "2x60",
            gpus("resource_reservation"): "4x60",
            gpus("nominal_quota"): "8x60",
        },
        40,
        [BLUE],
    ),
    Case(
        "QueueStuck",
        "a full cluster with long jobs",
        {
            queue("pending_workloads", status="inadmissible"): "2x300",
            gpus("resource_reservation"): "8x300",
            gpus("nominal_quota"): "8x300",
        },
        290,
    ),
    Case(
        "QueueStuck",
        "the first admission since a restart, after an idle spell",
        {
            queue("pending_workloads", status="active"): "0x200 1x2 0x60",
            gpus("resource_reservation"): "0x202 8x60",
            gpus("nominal_quota"): "8x300",
            queue("admitted_workloads_total"): "_x202 1x60",
        },
        235,
    ),
    Case(
        "QueueInactive",
        "",
        {
            queue("cluster_queue_status", status="pending"): "1x60",
            queue("cluster_queue_status", status="active"): "0x60",
        },
        10,
        [BLUE],
    ),
    # Unix time 0 is the first minute.
    Case(
        "WorkloadWaits",
        "for a day",
        {workload("created"): "0x1600", workload("active"): "1x1600", LOCAL_QUEUE: "1x1600"},
        1500,
        [{"namespace": "blue", **BLUE}],
    ),
    Case(
        "WorkloadWaits",
        "for a LocalQueue that is not there",
        {workload("created"): "0x1600", workload("active"): "1x1600"},
        1500,
        [{"namespace": "blue"}],
    ),
    Case(
        "WorkloadWaits",
        "again, since it was preempted an hour ago",
        {
            workload("created"): "0x1600",
            workload("condition", condition="QuotaReserved"): "1x1440 0x160",
            workload("condition_since", condition="QuotaReserved"): "60x1440 86400x160",
        },
        1500,
    ),
    Case(
        "WorkloadWaits",
        "no more",
        {
            workload("created"): "0x1600",
            workload("condition", condition="QuotaReserved"): "1x1600",
            workload("condition_since", condition="QuotaReserved"): "60x1600",
        },
        1500,
    ),
    Case(
        "WorkloadWaits",
        "no more, as it was set aside",
        {workload("created"): "0x1600", workload("active"): "0x1600"},
        1500,
    ),
    Case(
        "SlackSpent", "all of it", {**slack(blue=8, red=8, slack=8), **usable(16)}, 30, [{"flavor": "default-flavor"}]
    ),
    Case(
        "SlackSpent",
        "all of one pool's, and none of another's",
        {**slack(blue=8, slack=8), **usable(16), **slack("spot", blue=8, slack=8), **usable(8, "spot")},
        30,
        [{"flavor": "spot"}],
    ),
    Case("SlackSpent", "healthy", {**slack(blue=8, red=8, slack=8), **usable(24)}, 30),
    Case("SlackSpent", "healthy, with none", {**slack(blue=8, red=8, slack=0), **usable(16)}, 30),
    Case(
        "SlackControllerSilent", "stands still", {"mlbatch_slack_last_reconcile_timestamp_seconds": "60x60"}, 30, [{}]
    ),
    Case("SlackControllerSilent", "is gone", {"up": "1x60"}, 30, [{}]),
    Case("SlackControllerSilent", "works", {"mlbatch_slack_last_reconcile_timestamp_seconds": "0+60x60"}, 30),
    Case(
        "ControllerDown",
        "restarts",
        {**UP, deployment("slack-controller"): "1x5 0x55"},
        20,
        [{"deployment": "slack-controller"}],
    ),
    Case(
        "ControllerDown",
        "is gone",
        {name: text for name, text in UP.items() if "kueue" not in name},
        20,
        [{"deployment": "kueue-controller-manager", "namespace": "mlbatch-system"}],
    ),
    Case("ControllerDown", "none", UP, 20),
    Case("ControllerDown", "none, without their metrics", {"up": "1x60"}, 20),
    Case("NoObjectState", "for a quarter of an hour", node_info("n9", "1x5 _x55"), 30, [{}]),
    Case("NoObjectState", "while it is replaced", node_info("n9", "1x5 _x4 1x55"), 16),
    Case(
        "WebhookFails",
        "each for the first time",
        {**API_SERVER, **{unreached(name): "_x20 1x60" for name in webhooks()}},
        22,
        [{"name": name} for name in webhooks()],
    ),
    Case(
        "WebhookFails",
        "again",
        {**API_SERVER, unreached("vworkload.kb.io"): "1x40 2x20"},
        45,
        [{"name": "vworkload.kb.io"}],
    ),
    Case("WebhookFails", "long ago", {**API_SERVER, unreached("vworkload.kb.io"): "1x60"}, 40),
    Case("WebhookFails", "somebody else's", {**API_SERVER, unreached("validate.example.org"): "_x20 1x60"}, 22),
    Case(
        "WebhookFails",
        "before this API server was watched",
        {
            **API_SERVER,
            _series("up", job="apiserver", instance="10.0.0.2:6443"): "_x20 1x60",
            unreached("vworkload.kb.io", "10.0.0.2:6443"): "_x20 7x60",
        },
        22,
    ),
    Case("StoreFull", "with etcd's default quota", {STORE: "1700000000x60"}, 30, [{}]),
    Case("StoreFull", "not yet", {STORE: "1500000000x60"}, 30),
    Case(
        "StoreFull",
        "not of the declared quota",
        {STORE: "1700000000x60", "etcd_server_quota_backend_bytes": "8e9x60"},
        30,
    ),
    Case(
        "VolumeFull",
        "",
        {
            _series("kubelet_volume_stats_available_bytes", namespace="blue", persistentvolumeclaim="data"): "4x60",
            _series("kubelet_volume_stats_capacity_bytes", namespace="blue", persistentvolumeclaim="data"): "100x60",
        },
        30,
        [{"namespace": "blue", "persistentvolumeclaim": "data"}],
    ),
    Case(
        "NodeSick",
        "",
        {labelled("EVICT"): "1x60"},
        5,
        [{**N0, "label_autopilot_ibm_com_gpuhealth": "EVICT"}],
    ),
    Case("NodeSick", "with a light check that failed", {labelled("WARN"): "1x60"}, 5),
    Case(
        "InfiniBandPortDown",
        "one",
        {_series("node_infiniband_state_id", **PORT, instance="10.0.0.1:9100"): "4x5 1x60"},
        20,
        [PORT],
    ),
    Case("InfiniBandPortDown", "that was never in use", {_series("node_infiniband_state_id", **PORT): "1x60"}, 20),
    Case("InfiniBandPortDown", "none", {_series("node_infiniband_state_id", **PORT): "4x60"}, 20),
    Case("InfiniBandLinkFlaps", "", {_series("node_infiniband_link_downed_total", **PORT): "0x10 1x50"}, 15, [PORT]),
    Case(
        "InfiniBandLinkFlaps",
        "while its exporter was replaced",
        {
            _series("node_infiniband_link_downed_total", **PORT, instance="a"): "0x10 _x50",
            _series("node_infiniband_link_downed_total", **PORT, instance="b"): "_x12 1x50",
        },
        20,
        [PORT],
    ),
    Case(
        "InfiniBandLinkFlaps",
        "two hours ago, and its exporter was replaced",
        {
            _series("node_infiniband_link_downed_total", **PORT, instance="a"): "0x10 1x100",
            _series("node_infiniband_link_downed_total", **PORT, instance="b"): "_x111 1x60",
        },
        150,
    ),
    Case("GpuRowRemapFailure", "none", {_series("DCGM_FI_DEV_ROW_REMAP_FAILURE", node="n0", gpu="3"): "0x60"}, 5),
    Case(
        "NvlinkErrors",
        "of long ago",
        {_series("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", node="n0", gpu="3"): "7x60"},
        15,
    ),
    Case(
        "NodeLost",
        "for a minute",
        {_series("kube_node_status_condition", node="n0", condition="Ready", status="true"): "1x5 0 1x55"},
        15,
    ),
    Case("NodeUnusable", "none", {_series("mlbatch_node_unusable", node="n0", reason="cordoned"): "1x30 0x60"}, 80),
    Case(
        "QueueInactive",
        "none",
        {
            queue("cluster_queue_status", status="active"): "1x60",
            queue("cluster_queue_status", status="pending"): "0x60",
        },
        10,
    ),
    Case(
        "VolumeFull",
        "none",
        {
            _series("kubelet_volume_stats_available_bytes", namespace="blue", persistentvolumeclaim="data"): "6x60",
            _series("kubelet_volume_stats_capacity_bytes", namespace="blue", persistentvolumeclaim="data"): "100x60",
        },
        30,
    ),
    Case(
        "NodeSuspect",
        "",
        {labelled("WARN"): "1x60"},
        10,
        [{**N0, "label_autopilot_ibm_com_gpuhealth": "WARN"}],
    ),
    Case("NodeSuspect", "none", {labelled("PASS"): "1x60"}, 10),
    Case(
        "DiagnosticsFailed",
        "",
        {check("remapped", deviceid="3"): "0x5 1x55", check("pciebw", deviceid="3"): "24x60"},
        20,
        [{**N0, "health": "remapped", "deviceid": "3"}],
    ),
    Case("DiagnosticsFailed", "none", {check("dcgm", deviceid="3"): "0x60", check("ping", deviceid="n1"): "1x60"}, 20),
    Case(
        "DeepCheckFailed",
        "",
        {_series("kube_job_status_failed", namespace="autopilot", job_name="dcgm-n0", reason="Evicted"): "1x30"},
        5,
        [{"namespace": "autopilot", "job_name": "dcgm-n0", "reason": "Evicted"}],
    ),
    Case(
        "DeepCheckFailed",
        "a team's job",
        {_series("kube_job_status_failed", namespace="blue", job_name="dcgm-n0", reason="Evicted"): "1x30"},
        5,
    ),
    Case("VolumeCheckFailed", "", {check("pvc"): "1x30"}, 10, [{**N0, "health": "pvc"}]),
    Case("VolumeCheckFailed", "none", {check("pvc"): "0x30"}, 10),
    Case(
        "NodeUnreachable",
        "",
        {check("ping", deviceid="n1"): "1x30", **node_info("n1")},
        15,
        [{**N0, "health": "ping", "deviceid": "n1"}],
    ),
    Case("NodeUnreachable", "for a moment", {check("ping", deviceid="n1"): "0x5 1x3 0x30", **node_info("n1")}, 15),
    Case(
        "NodeUnreachable",
        "none, as the node has left the cluster",
        {check("ping", deviceid="n1"): "1x60", **node_info("n1", "1x5 _x55"), **node_info("n0")},
        40,
    ),
    Case(
        "NodeUnchecked",
        "",
        {_series("kube_daemonset_status_number_unavailable", namespace="autopilot", daemonset="autopilot"): "1x60"},
        40,
        [{"namespace": "autopilot", "daemonset": "autopilot"}],
    ),
    Case(
        "NodeUnchecked",
        "none",
        {_series("kube_daemonset_status_number_unavailable", namespace="autopilot", daemonset="autopilot"): "0x60"},
        40,
    ),
)


@dataclass(frozen=True)
class Shown:
    """The values of a panel. series, minute: as in a case. values: by their labels."""

    panel: str
    what: str
    series: Mapping[str, str]
    minute: int
    values: Sequence[tuple[Labels, float]]


PREEMPTED = {"preempting_cluster_queue": "blue-cluster-queue", "reason": "InCohortReclamation"}
FAILED = {"__name__": "autopilot_health_checks", "node": "n0"}
RATE = "node_infiniband_rate_bytes_per_second"
SENT = "node_infiniband_port_data_transmitted_bytes_total"
LENT = {"queue": "slack-cluster-queue", "resource": "nvidia.com/gpu"}
SHOWN = (
    Shown(
        "GPUs that may be lent at most",
        "of a queue without a limit, which Kueue shows as 0",
        {
            _series("mlbatch_lending_limit", **LENT, flavor="default-flavor"): "5x10",
            _series("mlbatch_lending_limit", **LENT, flavor="spot"): "3x10",
            _series(
                "kueue_cluster_queue_lending_limit",
                cluster_queue="slack-cluster-queue",
                flavor="default-flavor",
                resource="nvidia.com/gpu",
            ): "0x10",
        },
        5,
        [({"queue": "slack-cluster-queue"}, 8)],
    ),
    Shown(
        "Preemptions in an hour, by who preempts",
        "the first of Kueue's process, and old ones of another",
        {
            _series("kueue_preempted_workloads_total", **PREEMPTED, pod="kueue-a"): "7x200",
            _series("kueue_preempted_workloads_total", **PREEMPTED, pod="kueue-b"): "_x180 1x20",
        },
        190,
        [(PREEMPTED, 1)],
    ),
    Shown(
        "Evictions in an hour, by reason",
        "the first, whose series has ended since",
        {queue("evicted_workloads_total", reason="Preempted"): "_x180 1x3 _x20"},
        200,
        [({**BLUE, "reason": "Preempted"}, 1)],
    ),
    Shown(
        "Phases that AppWrappers came to in an hour",
        "the first after an hour",
        {_series("appwrapper_phase_total", exported_namespace="blue", phase="Failed"): "_x100 1x100"},
        190,
        [({"exported_namespace": "blue", "phase": "Failed"}, 0)],
    ),
    Shown(
        "Checks that failed",
        "of nodes that the cluster has",
        {
            check("pvc"): "1x10",
            check("ping", deviceid="n1"): "1x10",
            check("ping", deviceid="n2"): "1x10",
            **node_info("n1"),
        },
        5,
        [
            ({**FAILED, "health": "pvc"}, 1),
            ({**FAILED, "health": "ping", "deviceid": "n1"}, 1),
        ],
    ),
    Shown(
        "Share of the line rate that is sent",
        "a minute after the exporter was replaced",
        {
            _series(SENT, **PORT, instance="a"): "0+60x10",
            _series(RATE, **PORT, instance="a"): "10x10",
            _series(SENT, **PORT, instance="b"): "_x8 480+60x10",
            _series(RATE, **PORT, instance="b"): "_x8 10x10",
        },
        11,
        [(PORT, 0.1)],
    ),
    Shown(
        "Ports that are active",
        "when all are down",
        {_series("node_infiniband_state_id", node="n0", device=f"mlx5_{i}", port="1"): "1x10" for i in range(2)},
        5,
        [(N0, 0)],
    ),
    Shown(
        "NVLink traffic",
        "a gauge of bytes in a second",
        {
            _series("DCGM_FI_PROF_NVLINK_TX_BYTES", node="n0", gpu="3"): "1000x10",
            _series("DCGM_FI_PROF_NVLINK_RX_BYTES", node="n0", gpu="3"): "1000x10",
        },
        5,
        [({"node": "n0", "gpu": "3"}, 1000)],
    ),
    Shown(
        "Oldest workload that waits",
        "for twelve hours, beyond Kueue's buckets, and no job was admitted",
        {
            workload("created"): "0x800",
            LOCAL_QUEUE: "1x800",
            queue("admission_wait_time_seconds_bucket", le="40960"): "0x800",
        },
        720,
        [(BLUE, 43200)],
    ),
)


@pytest.fixture(scope="module")
def promtool() -> Path:
    return Toolchain(Paths.of()).folder(PROMETHEUS) / "promtool"


def test_alerts_are_raised_when_they_should_be(promtool: Path, tmp_path: Path) -> None:
    tests = [_file(tmp_path, number, case) for number, case in enumerate(CASES)]
    done = subprocess.run([promtool, "test", "rules", *tests], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.panel)
def test_panels_show_the_expected_values(promtool: Path, tmp_path: Path, shown: Shown) -> None:
    (panel,) = (panel for each in DASHBOARDS for panel in each.panels if panel.title == shown.panel)
    (group,) = alerts.groups()
    recorded = [rule for rule in group["rules"] if "record" in rule]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{**group, "rules": recorded}]}))
    samples = [{"labels": _series("", **labels), "value": value} for labels, value in shown.values]
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in shown.series.items()],
        "promql_expr_test": [
            {"expr": re.sub(r"\$[a-z]\w*", ".*", query), "eval_time": f"{shown.minute}m", "exp_samples": samples}
            for query in panel.queries.values()
        ],
    }
    file = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "fuzzy_compare": True, "tests": [test]}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(file))
    command = [promtool, "test", "rules", tmp_path / "tests.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tried_both_ways() -> None:
    every = {alert.name for alert in alerts.alerts()}
    assert {case.name for case in CASES if case.raised} == every
    assert {case.name for case in CASES if not case.raised} == every


def _file(folder: Path, number: int, case: Case) -> Path:
    """Write a case with only the rules that it needs, because some rules look back over a day at each minute."""
    (group,) = alerts.groups(case.watched)
    rules = [rule for rule in group["rules"] if rule.get("alert", case.name) == case.name]
    (folder / f"rules-{number}.yaml").write_text(yaml.safe_dump({"groups": [{**group, "rules": rules}]}))
    file = folder / f"tests-{number}.yaml"
    whole = {"rule_files": [f"rules-{number}.yaml"], "evaluation_interval": "1m", "tests": [tried(case)]}
    file.write_text(yaml.safe_dump(whole))
    return file


def tried(case: Case) -> Mapping[str, Any]:
    """Return a case as promtool's test (prometheus/prometheus, docs/configuration/unit_testing_rules.md)."""
    (alert,) = (alert for alert in alerts.alerts(case.watched) if alert.name == case.name)
    firing = {"alertname": case.name, "alertstate": "firing", "severity": alert.severity}
    expected = [{"labels": _series("ALERTS", **firing, **labels), "value": 1} for labels in case.raised]
    query = _series("ALERTS", alertname=case.name, alertstate="firing")
    return {
        "name": f"{case.alert}: {case.what}",
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": f"{case.minute}m", "exp_samples": expected}],
    }


@pytest.mark.parametrize("case", [case for case in CASES if case.raised], ids=lambda case: f"{case.alert}-{case.what}")
def test_an_alerts_text_uses_only_its_labels(case: Case) -> None:
    (alert,) = (alert for alert in alerts.alerts(case.watched) if alert.name == case.name)
    for labels in case.raised:
        assert set(re.findall(r"\$labels\.(\w+)", alert.summary)) <= set(labels)
