"""Metrics that a local cluster does not have: GPUs, InfiniBand, Autopilot and kubelets.

Every series has the label `source="simulated"`, and changes with time, so that rates are not zero. Names and labels are
those of the exporters in the catalogue's versions (components/observability/metrics.py).
"""

import math
from collections.abc import Iterator, Mapping

NODES = ("gpu-node-0", "gpu-node-1", "gpu-node-2")
GPUS = range(8)
TEAMS = ("blue", "red")
Sample = tuple[str, Mapping[str, str], float]


def exposition(seconds: float) -> str:
    """Return all metrics after a number of seconds, in Prometheus' text format."""
    lines = []
    for name, labels, value in [*_gpus(seconds), *_infiniband(seconds), *_health(), *_volumes()]:
        shown = ",".join(f'{label}="{text}"' for label, text in {**labels, "source": "simulated"}.items())
        lines.append(f"{name}{{{shown}}} {value:.6g}")
    return "\n".join([*lines, ""])


def _gpus(seconds: float) -> Iterator[Sample]:
    for number, node in enumerate(NODES):
        for gpu in GPUS:
            team = {"exported_namespace": TEAMS[number]} if number < len(TEAMS) else {}
            labels = {"node": node, "gpu": str(gpu), **team}
            busy = 90 + 8 * math.sin(seconds / 5 + gpu) if team and gpu else 0.0
            for name, value in {
                "GPU_UTIL": busy,
                "FB_USED": 700 * busy,
                "POWER_USAGE": 70 + 6 * busy,
                "GPU_TEMP": 30 + busy / 3,
                "MEMORY_TEMP": 35 + busy / 3,
                "XID_ERRORS": 0,
                "NVLINK_REPLAY_ERROR_COUNT_TOTAL": 0,
                "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 0,
                "ECC_DBE_VOL_TOTAL": 0,
                "UNCORRECTABLE_REMAPPED_ROWS": 0,
                "CORRECTABLE_REMAPPED_ROWS": gpu % 2,
                "ROW_REMAP_FAILURE": 0,
            }.items():
                yield f"DCGM_FI_DEV_{name}", labels, value
            for name, share in {"PIPE_TENSOR_ACTIVE": 0.006, "NVLINK_TX_BYTES": 2e9, "NVLINK_RX_BYTES": 1.9e9}.items():
                yield f"DCGM_FI_PROF_{name}", labels, share * busy
            if gpu == 0:
                yield "DCGM_EXP_CLOCK_EVENTS_COUNT", {**labels, "clock_event": "sw_power_cap"}, 3 + math.sin(seconds)


def _infiniband(seconds: float) -> Iterator[Sample]:
    for number, node in enumerate(NODES):
        for device in GPUS:
            labels = {"node": node, "device": f"mlx5_{device}", "port": "1"}
            sent = 2e10 * seconds * (1 + number / 4) + 5e9 * math.sin(seconds / 3 + device)
            yield "node_infiniband_port_data_transmitted_bytes_total", labels, sent
            yield "node_infiniband_port_data_received_bytes_total", labels, 0.9 * sent
            yield "node_infiniband_port_transmit_wait_total", labels, 40 * seconds
            for name in ("link_downed", "symbol_error", "port_errors_received"):
                yield f"node_infiniband_{name}_total", labels, 0
            yield "node_infiniband_state_id", labels, 1 if (number, device) == (2, 7) else 4
            yield "node_infiniband_rate_bytes_per_second", labels, 5e10


def _health() -> Iterator[Sample]:
    for number, node in enumerate(NODES):
        for gpu in GPUS:
            yield "autopilot_health_checks", {"node": node, "health": "pciebw", "deviceid": str(gpu)}, 24 + gpu / 10
        for check in ("dcgm", "remapped", "ping", "pvc"):
            failed = (number, check) == (2, "ping")
            about = NODES[0] if check == "ping" else "0"
            yield "autopilot_health_checks", {"node": node, "health": check, "deviceid": about}, int(failed)


def _volumes() -> Iterator[Sample]:
    """Yield kubelets' metrics of volumes, because the local volumes have no disk."""
    for team in TEAMS:
        claim = {"namespace": team, "persistentvolumeclaim": "data"}
        yield "kubelet_volume_stats_capacity_bytes", claim, 1e12
        yield "kubelet_volume_stats_available_bytes", claim, 6e11
