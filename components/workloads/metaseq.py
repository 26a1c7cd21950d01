"""Metaseq: training of OPT language models on dummy data, with sizes from a table.

Sources: facebookresearch/metaseq, `metaseq/launcher/opt_job_constants.py`, for the table; edwardsp/ai-on-aks,
examples/metaseq, for the training's options. The image is built from images/metaseq.

There are three differences from edwardsp/ai-on-aks:

- Its end learning rate is 0 for every model, because its template multiplies integers. Here it is a tenth of the
  learning rate.
- Its batch size has no effect, because each GPU always takes 8 sequences a step. Here, steps are accumulated to reach
  the batch size.
- With Kueue there is no MPI. Metaseq's processes only need their rank, which follows from the index of their pod.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document
from components.kubernetes.objects import files_checksum
from components.kubernetes.programs import FILES_FOLDER
from components.kubernetes.volumes import Volume
from components.scripts import script
from components.workloads import mpi
from components.workloads.indexed_job import files_map, files_volume, indexed_job, service_name
from components.workloads.pods import Container, NodePods, disruption_budget, pod_spec
from components.workloads.submission import Submission, SubmissionMode, SubmittedJob, submitted
from components.workloads.volcano_job import WORKER_TASK, volcano_job

SEQUENCE_LENGTH: Final = 2048
VOCABULARY: Final = 51196
UPDATES: Final = 61036
MICRO_BATCH: Final = 8
"""The most sequences that a GPU takes in one step."""
SHARED_MEMORY: Final = "8Gi"
RENDEZVOUS_PORT: Final = 29400
AIM_FOLDER: Final = "/workspace/aim_logs"
TENSORBOARD_FOLDER: Final = "/workspace/tensorboard_logs"
"""Metaseq appends 0000 and so on to its path for each new run, so the path that it gets is inside this folder."""
LOGS: Final = "logs"
OPEN_MPI: Final = "/opt/hpcx/ompi"
"""The image's second Open MPI is not built for the fabric's libraries (edwardsp/ai-on-aks, metaseq)."""
LIBRARIES: Final = ("/usr/lib/x86_64-linux-gnu/", "/opt/hpcx/nccl_rdma_sharp_plugin/lib")
"""First folders for libraries: the system's RDMA libraries, and NCCL's plugin for InfiniBand and SHARP
(edwardsp/ai-on-aks, metaseq)."""

BYTES_PER_PARAMETER: Final = 12
"""Bytes of GPU memory for each parameter, over all GPUs: 2 for the weight and 2 for its gradient in half precision, 4
for each of Adam's two moments. With `--memory-efficient-fp16`, Metaseq keeps no weights in single precision (its
`fully_sharded_data_parallel` and `optim/fused_adam.py`). It shards all of this over all GPUs."""
USABLE_MEMORY: Final = 0.8
"""Share of a GPU's memory for weights, gradients and moments. The rest is for activations and NCCL's buffers, whose
size is unknown. A model above this limit cannot run, and a model below it may still run out of memory."""
_SCRIPT: Final = "train.sh"


@dataclass(frozen=True, kw_only=True)
class Size:
    """A model of the OPT family.

    layers, embedding, heads: of the decoder.
    batch: tokens in one update.
    model_parallel: GPUs that share each layer.
    """

    layers: int
    embedding: int
    heads: int
    batch: int
    learning_rate: float
    model_parallel: int

    @property
    def parameters(self) -> int:
        """Number of weights: 12 times layers times the square of the embedding, plus the embeddings' own."""
        return 12 * self.layers * self.embedding**2 + (VOCABULARY + SEQUENCE_LENGTH) * self.embedding

    @property
    def end_learning_rate(self) -> float:
        """The final learning rate, a tenth of the initial one."""
        return self.learning_rate / 10


_M: Final = 1024 * 1024

SIZES: Final = {
    "125m": Size(layers=12, embedding=768, heads=12, batch=_M // 2, learning_rate=0.0006, model_parallel=2),
    "350m": Size(layers=24, embedding=1024, heads=16, batch=_M // 2, learning_rate=0.0003, model_parallel=2),
    "760m": Size(layers=24, embedding=1536, heads=16, batch=_M // 2, learning_rate=0.00025, model_parallel=2),
    "1.3b": Size(layers=24, embedding=2048, heads=32, batch=_M, learning_rate=0.0002, model_parallel=2),
    "2.7b": Size(layers=32, embedding=2560, heads=32, batch=_M, learning_rate=0.00016, model_parallel=4),
    "6.7b": Size(layers=32, embedding=4096, heads=32, batch=2 * _M, learning_rate=0.00012, model_parallel=2),
    "13b": Size(layers=40, embedding=5120, heads=40, batch=4 * _M, learning_rate=0.0001, model_parallel=2),
    "30b": Size(layers=48, embedding=7168, heads=56, batch=4 * _M, learning_rate=0.0001, model_parallel=2),
    "66b": Size(layers=64, embedding=9216, heads=72, batch=2 * _M, learning_rate=0.00008, model_parallel=8),
    "175b": Size(layers=96, embedding=12288, heads=96, batch=2 * _M, learning_rate=0.00003, model_parallel=8),
}
"""Source: facebookresearch/metaseq, `metaseq/launcher/opt_job_constants.py`."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a model is trained on a number of GPUs.

    replicas: groups of GPUs. Each group holds the whole model.
    micro_batch: sequences of a replica in one step.
    accumulated: steps in one update.
    batch: tokens in one update, as close to the size's batch as whole steps allow.
    """

    gpus: int
    replicas: int
    micro_batch: int
    accumulated: int
    batch: int


def layout(size: Size, gpus: int) -> Layout:
    """Return the layout. Raises ValueError if the GPUs cannot be grouped, or are too many for one batch."""
    if gpus % size.model_parallel:
        raise ValueError(f"{gpus} GPUs cannot be parted into groups of {size.model_parallel}")
    replicas = gpus // size.model_parallel
    sequences = size.batch // SEQUENCE_LENGTH
    if replicas > sequences:
        raise ValueError(f"{replicas} groups of GPUs are more than the {sequences} sequences of one update")
    micro_batch = min(MICRO_BATCH, sequences // replicas)
    accumulated = max(1, round(sequences / (replicas * micro_batch)))
    return Layout(
        gpus=gpus,
        replicas=replicas,
        micro_batch=micro_batch,
        accumulated=accumulated,
        batch=replicas * micro_batch * accumulated * SEQUENCE_LENGTH,
    )


def fewest_nodes(size: Size, *, gpus: int, gpu_bytes: int) -> int:
    """Return the smallest number of nodes for a model, by GPU memory and by its groups of GPUs.

    gpus: in one node.
    gpu_bytes: memory of one GPU in bytes.
    """
    needed = size.parameters * BYTES_PER_PARAMETER
    nodes = math.ceil(needed / (gpus * gpu_bytes * USABLE_MEMORY))
    while (nodes * gpus) % size.model_parallel:
        nodes += 1
    return nodes


@dataclass(frozen=True, kw_only=True)
class MetaseqArgs:
    """The arguments of the training.

    model: one of SIZES or another.
    updates: steps of the optimizer.
    logs: PVC of the volume with the logs for Aim and TensorBoard. None if neither is used.
    use_aim, use_tensorboard: write logs for them.
    cluster_env: the metaseq cluster to imitate, one of those in its `dataclass/configs.py`. None for metaseq's default.
    """

    submission: Submission
    pods: NodePods
    model: Size
    updates: int = UPDATES
    logs: pulumi.Input[str] | None = None
    use_aim: bool = False
    use_tensorboard: bool = False
    cluster_env: str | None = None


class Metaseq(SubmittedJob):
    """Submit the training. It measures speed: it writes no checkpoints, and its data is random."""

    def __init__(self, name: str, args: MetaseqArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("workloads:Metaseq", name, documents(name, args), opts)


def documents(name: str, args: MetaseqArgs) -> list[Document]:
    """Return the objects that submit the training. Raises ValueError as `layout` does."""
    pods, submission = args.pods, args.submission
    data = {_SCRIPT: train_script(args)}
    mounted = (files_volume(name), *log_volumes(args))
    if submission.mode is SubmissionMode.VOLCANO:
        launcher, worker = mpi.volcano_containers(
            _mpi_command(args), variables=_variables(args), volumes=mounted, installation=OPEN_MPI
        )
        job = volcano_job(name, submission, pods, launcher=launcher, worker=worker, annotations=files_checksum(data))
        kept = disruption_budget(name, submission.namespace, pods.nodes + 1)
        return [files_map(name, submission.namespace, data), kept, job]
    trainer = Container(
        name="metaseq",
        command=["/bin/bash", f"{FILES_FOLDER}/{_SCRIPT}", "pod"],
        variables={**_variables(args), "HEADNODE": f"{name}-0.{service_name(name)}"},
        volumes=mounted,
        ports={"rendezvous": RENDEZVOUS_PORT},
        working_directory=mpi.WORKSPACE,
    )
    job = indexed_job(
        name, pods, pod_spec(pods, trainer, priority_class=submission.priority_class), annotations=files_checksum(data)
    )
    kept = disruption_budget(name, submission.namespace, pods.nodes)
    return [files_map(name, submission.namespace, data), kept, *submitted(name, submission, job)]


def log_volumes(args: MetaseqArgs) -> tuple[Volume, ...]:
    """Return the volumes for logs: a folder for each viewer, on one volume."""
    if args.logs is None:
        return ()
    source = {"persistentVolumeClaim": {"claimName": args.logs}}
    folders = [
        *([(AIM_FOLDER, "aim_logs")] if args.use_aim else []),
        *([(TENSORBOARD_FOLDER, "tensorboard_logs")] if args.use_tensorboard else []),
    ]
    return tuple(Volume(name=LOGS, path=path, source=source, sub_path=folder) for path, folder in folders)


def _variables(args: MetaseqArgs) -> Mapping[str, str]:
    fabric = args.pods.fabric
    return {**fabric.topology_variable(mpi.WORKSPACE), **fabric.switch_variables}


def _mpi_command(args: MetaseqArgs) -> list[str]:
    """Return the mpirun command of a Volcano Job. Open MPI over UCX starts a process for each GPU."""
    options = ["-mca", "coll_hcoll_enable", "0", "-mca", "plm_rsh_no_tree_spawn", "1"]
    options += ["-mca", "plm_rsh_num_concurrent", "8192"]
    options += ["-mca", "pml", "ucx"] if args.pods.fabric.resource is not None else []
    return mpi.mpirun(
        processes=args.pods.nodes * args.pods.gpus,
        per_node=args.pods.gpus,
        exported=("LD_LIBRARY_PATH", *args.pods.fabric.variables, *_variables(args)),
        options=options,
        program=("/bin/bash", f"{FILES_FOLDER}/{_SCRIPT}", "mpi"),
    )


def train_script(args: MetaseqArgs) -> str:
    """Return the script that starts metaseq's processes.

    With MPI, it starts one process, because MPI runs it for each GPU. Otherwise it starts all processes of a pod.
    """
    return script(
        __name__,
        "metaseq.sh",
        libraries=LIBRARIES,
        nodes=args.pods.nodes,
        gpus=args.pods.gpus,
        port=RENDEZVOUS_PORT,
        options=train_options(args),
        worker=WORKER_TASK,
    )


def train_options(args: MetaseqArgs) -> list[str]:
    """Return the options of metaseq's training that are the same for all processes."""
    text = script(
        __name__,
        "metaseq_options",
        cluster_env=args.cluster_env,
        size=args.model,
        plan=layout(args.model, args.pods.nodes * args.pods.gpus),
        vocabulary=VOCABULARY,
        sequence_length=SEQUENCE_LENGTH,
        updates=args.updates,
        tensorboard=TENSORBOARD_FOLDER if args.use_tensorboard else None,
        aim=AIM_FOLDER if args.use_aim else None,
    )
    return text.splitlines()
