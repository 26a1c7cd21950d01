"""Alerts are raised when they should be and at no other time: promtool runs the rules over series of hours.

Needs no cluster, only the tools that `make build` makes.
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
from emulator.paths import Paths
from emulator.toolchain import PROMETHEUS, Toolchain

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """What happened, minute by minute, and which alerts there are then.

    series: values by series, in promtool's notation. minute: when it is looked. raised: labels of each alert.
    """

    alert: str
    what: str
    series: Mapping[str, str]
    minute: int
    raised: Sequence[Labels] = ()
    watched: Watched = field(default_factory=Watched)


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
    return _series(f"mlbatch_workload_{metric}", namespace="blue", name="job", **labels)


def deployment(name: str) -> str:
    return _series("kube_deployment_status_replicas_available", namespace="mlbatch-system", deployment=name)


def slack(**quotas: int) -> dict[str, str]:
    return {
        _series("mlbatch_quota", queue=f"{name}-cluster-queue", resource="nvidia.com/gpu"): f"{value}x60"
        for name, value in quotas.items()
    }


def usable(value: int) -> dict[str, str]:
    return {_series("mlbatch_usable", resource="nvidia.com/gpu"): f"{value}x60"}


def offered(metric: str, node: str = "n0") -> str:
    return _series(f"kube_node_status_{metric}", node=node, resource="nvidia_com_gpu", unit="integer")


BLUE = {"cluster_queue": "blue-cluster-queue"}
N0 = {"node": "n0"}
PORT = {"node": "n0", "device": "mlx5_0", "port": "1"}
UP = {deployment(name): "1x60" for name in alerts.CONTROLLERS}
WEBHOOK = _series(
    "apiserver_admission_webhook_rejection_count",
    name="mworkload.kb.io.kueue.x-k8s.io",
    error_type="calling_webhook_error",
)

CASES = (
    # The exporter counts five minutes.
    Case(
        "GpuXidError",
        "of the GPU, then of its application",
        {xid(79): "_ 1x4 _x60", xid(45): "_ _ 1x4 _x60"},
        14,
        [{"node": "n0", "gpu": "3", "xid": "79"}],
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
    Case("GpusNotWatched", "no GPU operator at all", {offered("allocatable"): "8x60"}, 30),
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
        {offered("capacity"): "8x10 _x50", _series("kube_node_info", node="n0"): "1x10 _x50"},
        30,
        [N0],
    ),
    Case("NodeGone", "there", {offered("capacity"): "8x60", _series("kube_node_info", node="n0"): "1x60"}, 30),
    Case(
        "NodeFewerGpus",
        "since it started anew",
        {offered("allocatable"): "8x10 7x50", offered("capacity"): "8x10 7x50"},
        40,
        [N0],
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
    Case("SlackSpent", "all of it", {**slack(blue=8, red=8, slack=8), **usable(16)}, 30, [{}]),
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
    Case(
        "WebhookFails", "for the first time", {WEBHOOK: "_x20 1x60"}, 22, [{"name": "mworkload.kb.io.kueue.x-k8s.io"}]
    ),
    Case("WebhookFails", "long ago", {WEBHOOK: "1x60"}, 40),
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
        {_series("kube_node_labels", node="n0", label_autopilot_ibm_com_gpuhealth="EVICT"): "1x60"},
        5,
        [{**N0, "label_autopilot_ibm_com_gpuhealth": "EVICT"}],
    ),
    Case(
        "InfiniBandPortDown",
        "one",
        {_series("node_infiniband_state_id", **PORT, instance="10.0.0.1:9100"): "1x60"},
        20,
        [PORT],
    ),
    Case("InfiniBandLinkFlaps", "", {_series("node_infiniband_link_downed_total", **PORT): "0x10 1x50"}, 15, [PORT]),
)


@pytest.fixture(scope="module")
def promtool() -> Path:
    return Toolchain(Paths.of()).folder(PROMETHEUS) / "promtool"


@pytest.mark.parametrize("watched", dict.fromkeys(case.watched for case in CASES), ids=str)
def test_alerts_are_raised_when_they_should_be(promtool: Path, tmp_path: Path, watched: Watched) -> None:
    tests = [tried(case) for case in CASES if case.watched == watched]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": alerts.groups(watched)}))
    file = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(file))
    command = [promtool, "test", "rules", tmp_path / "tests.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def tried(case: Case) -> Mapping[str, Any]:
    """Return a case as promtool's test (prometheus/prometheus, docs/configuration/unit_testing_rules.md)."""
    name = f"MLBatch{case.alert}"
    (alert,) = (alert for alert in alerts.alerts(case.watched) if alert.name == name)
    firing = {"alertname": name, "alertstate": "firing", "severity": alert.severity}
    expected = [{"labels": _series("ALERTS", **firing, **labels), "value": 1} for labels in case.raised]
    query = _series("ALERTS", alertname=name, alertstate="firing")
    return {
        "name": f"{case.alert}: {case.what}",
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": f"{case.minute}m", "exp_samples": expected}],
    }


@pytest.mark.parametrize("case", [case for case in CASES if case.raised], ids=lambda case: f"{case.alert}-{case.what}")
def test_what_an_alert_says_names_only_what_it_knows(case: Case) -> None:
    (alert,) = (alert for alert in alerts.alerts(case.watched) if alert.name == f"MLBatch{case.alert}")
    for labels in case.raised:
        assert set(re.findall(r"\$labels\.(\w+)", alert.summary)) <= set(labels)
