"""Hardware and performance of healthy nodes, by Azure machine type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from components.health.thresholds import Scope, Threshold


@dataclass(frozen=True, kw_only=True)
class NodeBaseline:
    """The values that Azure's node health checks require for a machine type.

    memory_mb: memory in MB, within 5 %.
    adapters: InfiniBand devices by their names on AKS, each with `adapter_gbits` Gbit/s.
    host_gbs, peer_gbs: copy bandwidth in GB/s of a GPU from the host and from another GPU.
    nccl_gbs: all-reduce bandwidth in GB/s on one node, with messages of 16 GB.
    gdr_gbits: InfiniBand writes from GPU memory, in Gbit/s.
    topology: a file in the checks' image.
    """

    sockets: int
    cores: int
    threads: int
    memory_mb: int
    gpus: int
    adapters: Sequence[str]
    adapter_gbits: int
    host_gbs: int
    peer_gbs: int
    nccl_gbs: float
    gdr_gbits: int
    topology: str
    source: str


_NDV5: Final = "Standard_ND96isr_H100_v5"
_CHECKS: Final = "Azure/azurehpc-health-checks, conf/nd96isr_h100_v5.conf"

THRESHOLDS: Final[Mapping[str, Mapping[Scope, Threshold]]] = {
    _NDV5: {
        Scope.NODE: Threshold(
            expected=478,
            warn=470,
            fail=460,
            source=f"fail: {_CHECKS}; expected: Azure/AI-benchmarking-guide, Azure_Results/ND_H100_v5_results.md; "
            "warn: about half way between them, our choice",
        ),
        Scope.FABRIC: Threshold(
            expected=450,
            warn=400,
            fail=300,
            source="Azure/ai-infrastructure-on-azure, skills/slurm/sku_performance_baseline",
        ),
    },
}
"""Thresholds by machine type. A gate for any other type needs its own thresholds."""

BASELINES: Final[Mapping[str, NodeBaseline]] = {
    _NDV5: NodeBaseline(
        sockets=2,
        cores=96,
        threads=96,
        memory_mb=1915071,
        gpus=8,
        adapters=tuple(f"mlx5_{index}:1" for index in range(8)),
        adapter_gbits=400,
        host_gbs=48,
        peer_gbs=335,
        nccl_gbs=460.0,
        gdr_gbits=380,
        topology="ndv5-topo.xml",
        source=f"{_CHECKS}; the names of the adapters on AKS: edwardsp/ai-on-aks, docker/aksnhc/ndv5.conf, whose copy "
        "bandwidths of 52 and 350 GB/s are older and fail healthy nodes",
    ),
}


def checks(baseline: NodeBaseline, *, kernel_log: bool) -> list[str]:
    """Return the checks to run, with their arguments.

    kernel_log: include the checks that read the kernel's log. Without access to it, these checks pass.

    The order of the arguments is upstream's since July 2024: check_nccl_allreduce takes the bandwidth, repetitions,
    message size and topology file. check_ib_link_flapping gets no arguments, because its first one has changed its
    meaning between releases and the defaults fit both.
    """
    return [
        f"check_hw_cpuinfo {baseline.sockets} {baseline.cores} {baseline.threads}",
        f"check_hw_physmem {baseline.memory_mb}MB {baseline.memory_mb}MB 5%",
        "check_hw_swap 0kB 0kB 3%",
        *(f"check_hw_ib {baseline.adapter_gbits} {adapter}" for adapter in baseline.adapters),
        "check_hw_eth lo",
        "check_hw_eth eth0",
        "check_hw_topology",
        f"check_gpu_count {baseline.gpus}",
        "check_nvsmi_healthmon",
        *(["check_gpu_xid"] if kernel_log else []),
        f"check_gpu_bw {baseline.host_gbs} {baseline.peer_gbs}",
        "check_gpu_ecc 20000000 10000",
        "check_gpu_clock_throttling",
        f"check_nccl_allreduce {baseline.nccl_gbs} 1 16G $AZ_NHC_ROOT/topofiles/{baseline.topology}",
        "check_nvlink_status",
        f"check_ib_bw_gdr {baseline.gdr_gbits}",
        *(["check_ib_link_flapping"] if kernel_log else []),
    ]


def configuration(baseline: NodeBaseline, *, kernel_log: bool) -> str:
    """Return the checks as Node Health Check's configuration file, for all hosts."""
    return "".join(f"* || {check}\n" for check in checks(baseline, kernel_log=kernel_log))
