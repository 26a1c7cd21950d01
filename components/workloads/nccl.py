"""NCCL's all-reduce test over GPU nodes: whether the fabric carries what it should.

Source: edwardsp/ai-on-aks, examples/nccl-allreduce. Its image is built from `docker/nccl` of that repository: PyTorch's
image with NVIDIA's nccl-tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document
from components.kubernetes.objects import files_checksum
from components.workloads import mpi
from components.workloads.indexed_job import files_map, files_volume, indexed_job
from components.workloads.pods import Container, NodePods, pod_spec
from components.workloads.submission import Submission, SubmissionMode, register, submitted
from components.workloads.volcano_job import volcano_job

SMALLEST: Final = "1K"
LARGEST: Final = "16G"
SHARED_MEMORY: Final = "8Gi"
"""Of each pod of an MPI job (edwardsp/ai-on-aks)."""
COLLNET: Final = {"NCCL_COLLNET_ENABLE": "1", "NCCL_ALGO": "CollnetChain,NVLS"}
"""Lets NCCL use CollNet and NVLink SHARP only: where the switches offer no SHARP, it fails instead of choosing another
algorithm."""


@dataclass(frozen=True, kw_only=True)
class NcclProgram:
    """Where an image has the test, and the files that tell NCCL of a machine's topology."""

    test: str = "/workspace/nccl-tests/build/all_reduce_perf"
    topologies: str = mpi.WORKSPACE


PROGRAM: Final = NcclProgram()
"""In the image of edwardsp/ai-on-aks."""


@dataclass(frozen=True, kw_only=True)
class NcclArgs:
    """The test to run.

    smallest, largest: sizes of the messages, which double from one to the next; bytes, with nccl-tests' suffixes.
    sharp: reduce in the network's switches and over NVLink SHARP only; it fails where the fabric offers none.
    debug: NCCL's log level. program: where the image has the test.
    """

    submission: Submission
    pods: NodePods
    smallest: str = SMALLEST
    largest: str = LARGEST
    sharp: bool = False
    debug: str = "WARN"
    program: NcclProgram = PROGRAM


class Nccl(pulumi.ComponentResource):
    """Submit the test. Its figures are in the log of the launching pod; nobody judges them here (see `health`)."""

    def __init__(self, name: str, args: NcclArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:Nccl", name, None, opts)
        register(self, name, documents(name, args))
        self.register_outputs({})


def documents(name: str, args: NcclArgs) -> list[Document]:
    """Return the objects that submit the test."""
    command = test_command(args)
    pods, submission = args.pods, args.submission
    own = environment(args)
    if submission.mode is SubmissionMode.VOLCANO:
        launcher, worker = mpi.volcano_containers(command, variables=own)
        return [volcano_job(name, submission, pods, launcher=launcher, worker=worker)]
    data = mpi.index_files(name, nodes=pods.nodes, slots=pods.gpus, command=command)
    tester = Container(
        name="nccl",
        command=mpi.index_command(),
        variables=own,
        volumes=(files_volume(name),),
        ports=mpi.PORTS,
        working_directory=mpi.WORKSPACE,
    )
    job = indexed_job(
        name, pods, pod_spec(pods, tester, priority_class=submission.priority_class), annotations=files_checksum(data)
    )
    return [files_map(name, submission.namespace, data), *submitted(name, submission, job)]


def environment(args: NcclArgs) -> Mapping[str, str]:
    """Return the variables beyond the fabric's."""
    fabric = args.pods.fabric
    reductions = {**fabric.switch_variables, **COLLNET} if args.sharp else {}
    direct = fabric.direct_variable()
    return {"NCCL_DEBUG": args.debug, **direct, **fabric.topology_variable(args.program.topologies), **reductions}


def test_command(args: NcclArgs) -> list[str]:
    """Return the mpirun command: one rank for each GPU, results checked once for each size."""
    exported = ["LD_LIBRARY_PATH", *args.pods.fabric.variables, *environment(args)]
    return mpi.mpirun(
        processes=args.pods.nodes * args.pods.gpus,
        per_node=args.pods.gpus,
        exported=exported,
        options=(
            "--bind-to",
            "numa",
            "-mca",
            "coll_hcoll_enable",
            "0",
            "-mca",
            "plm_rsh_no_tree_spawn",
            "1",
            "-mca",
            "plm_rsh_num_concurrent",
            "800",
        ),
        program=(args.program.test, "-b", args.smallest, "-e", args.largest, "-f", "2", "-g", "1", "-c", "1"),
    )
