"""NCCL's all-reduce test on GPU nodes, which shows the performance of the fabric.

Source: edwardsp/ai-on-aks, examples/nccl-allreduce. The image is built from images/nccltest: PyTorch's image with
NVIDIA's nccl-tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document
from components.kubernetes.objects import files_checksum
from components.workloads import mpi
from components.workloads.indexed_job import files_map, files_volume, indexed_job
from components.workloads.pods import Container, NodePods, pod_spec
from components.workloads.submission import Submission, SubmissionMode, SubmittedJob, submitted
from components.workloads.volcano_job import volcano_job

SMALLEST: Final = "1K"
LARGEST: Final = "16G"
SHARED_MEMORY: Final = "8Gi"
"""Size of /dev/shm in each pod of an MPI job (edwardsp/ai-on-aks)."""
COLLNET: Final = {"NCCL_COLLNET_ENABLE": "1", "NCCL_ALGO": "CollnetChain,NVLS"}
"""Lets NCCL use only CollNet and NVLink SHARP. If the switches do not support SHARP, it fails instead of choosing
another algorithm."""


@dataclass(frozen=True, kw_only=True)
class NcclProgram:
    """Paths in an image: the test, and the files that describe a machine's topology to NCCL."""

    test: str = "/workspace/nccl-tests/build/all_reduce_perf"
    topologies: str = mpi.WORKSPACE


PROGRAM: Final = NcclProgram()
"""Paths in the image of images/nccltest."""


@dataclass(frozen=True, kw_only=True)
class NcclArgs:
    """The arguments of the test.

    smallest, largest: message sizes in bytes, with nccl-tests' suffixes. Each size is twice the one before.
    sharp: reduce only in the network's switches and over NVLink SHARP. It fails if the fabric does not support it.
    debug: NCCL's log level.
    """

    submission: Submission
    pods: NodePods
    smallest: str = SMALLEST
    largest: str = LARGEST
    sharp: bool = False
    debug: str = "WARN"


class Nccl(SubmittedJob):
    """Submit the test. The log of the launching pod has its results. They are not checked here (see `health`)."""

    def __init__(self, name: str, args: NcclArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("workloads:Nccl", name, documents(name, args), opts)


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
    """Return the variables besides the fabric's."""
    fabric = args.pods.fabric
    reductions = {**fabric.switch_variables, **COLLNET} if args.sharp else {}
    direct = fabric.direct_variable()
    return {"NCCL_DEBUG": args.debug, **direct, **fabric.topology_variable(PROGRAM.topologies), **reductions}


def test_command(args: NcclArgs) -> list[str]:
    """Return the mpirun command: one rank for each GPU, with one check of the results for each size.

    The fabric has the source of the binding to cores.
    """
    cores = args.pods.fabric.cores
    exported = ["LD_LIBRARY_PATH", *args.pods.fabric.variables, *environment(args)]
    return mpi.mpirun(
        processes=args.pods.nodes * args.pods.gpus,
        per_node=args.pods.gpus,
        cores=cores,
        exported=exported,
        options=(
            "--bind-to",
            "numa" if cores is None else "core",
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
        program=(PROGRAM.test, "-b", args.smallest, "-e", args.largest, "-f", "2", "-g", "1", "-c", "1"),
    )
