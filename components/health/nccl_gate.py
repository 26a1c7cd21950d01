"""NCCL's all-reduce as a gate: a node, or all nodes together, must reach the bandwidth of the machine type."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi

from components.health.check_job import EXIT_CODE, OUTPUT, CheckArgs, documents
from components.health.reporter import NCCL_GATE
from components.health.thresholds import Scope, Threshold
from components.kubernetes.manifests import Document
from components.workloads import mpi
from components.workloads.nccl import PROGRAM, NcclProgram
from components.workloads.pods import Container
from components.workloads.submission import SubmittedJob

SHARED_MEMORY: Final = "8Gi"
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, kw_only=True)
class NcclGateArgs:
    """What to measure.

    scope: NODE tests each node over NVLink. The image then needs no SSH server. FABRIC tests all nodes together over
    the network, and needs two of them.
    threshold: the required bandwidth.
    program: paths of the test in the image.
    """

    check: CheckArgs
    scope: Scope = Scope.NODE
    threshold: Threshold
    program: NcclProgram = PROGRAM


class NcclGate(SubmittedJob):
    """Run the test once for each value of the trigger and evaluate it. A test without a measurement has not passed."""

    def __init__(self, name: str, args: NcclGateArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("health:NcclGate", name, job_documents(args), opts)


def job_documents(args: NcclGateArgs) -> list[Document]:
    """Return the objects of the gate. Raises ValueError for a fabric test with a single node."""
    pods = args.check.pods
    together = args.scope is Scope.FABRIC
    if together and pods.nodes < 2:
        raise ValueError("one node has no fabric to test")
    ranks = pods.gpus * (pods.nodes if together else 1)
    command = test_command(args, ranks)
    data = mpi.index_files(
        NCCL_GATE.name,
        nodes=pods.nodes if together else 1,
        slots=pods.gpus,
        command=command,
        output=OUTPUT,
    )
    run = " ".join(mpi.index_command()) if together else _single(command)
    measure = Container(
        name="measure",
        command=["/bin/bash", "-c", f"{run}\necho $? > {EXIT_CODE}\n"],
        variables=environment(args),
        volumes=(),
        ports=mpi.PORTS if together else {},
    )
    limit = args.threshold
    judged = {"kind": "nccl", "ranks": ranks, "bytes": size_bytes(limit.size), "warn": limit.warn, "fail": limit.fail}
    return documents(NCCL_GATE, args.check, measure, judged=judged, data=data if together else {})


def environment(args: NcclGateArgs) -> Mapping[str, str]:
    """Return the variables besides the fabric's."""
    return {"NCCL_DEBUG": "WARN", **args.check.pods.fabric.topology_variable(args.program.topologies)}


def test_command(args: NcclGateArgs, ranks: int) -> list[str]:
    """Return the mpirun command: one size, with a check of the results."""
    pods, size = args.check.pods, args.threshold.size
    return mpi.mpirun(
        processes=ranks,
        per_node=pods.gpus,
        exported=("LD_LIBRARY_PATH", *pods.fabric.variables, *environment(args)),
        options=("--bind-to", "numa", "-mca", "coll_hcoll_enable", "0"),
        program=(args.program.test, "-b", size, "-e", size, "-f", "2", "-g", "1", "-c", "1"),
    )


def size_bytes(size: str) -> int:
    """Return a message size of nccl-tests, such as 16G, in bytes. Raises ValueError for another format."""
    number, unit = (size[:-1], _UNITS[size[-1]]) if size[-1:] in _UNITS else (size, 1)
    return int(number) * unit


def _single(command: list[str]) -> str:
    """Return the shell command for one node. The image has no Python, and needs no host file."""
    words = " ".join(f"'{word}'" for word in command if word != "--hostfile")
    return f"{words} > {OUTPUT} 2>&1"
