"""Pre-training of a language model with PyTorch on several nodes. It continues from its last checkpoint.

Source: project-codeflare/mlbatch, USAGE.md and `samples/pytorchjob-in-appwrapper.yaml`: a PyTorchJob in an AppWrapper.
MLBatch's tutorial does not define the training. Names of container and port, and torchrun's variables:
kubeflow/training-operator v1.9.4, `pkg/apis/kubeflow.org/v1/pytorch_types.go`, `pkg/controller.v1/pytorch/envvar.go`.

AppWrapper recreates all pods when one fails or its node is lost. The checkpoints remain in a separate volume, in a
folder with the job's name. The training operator creates the PodGroup of the pods.

A TrainJob does the same with Kubeflow Trainer and without an AppWrapper. Its runtime has the common fields of its pods
(components/queueing/trainer.py), and JobSet recreates all pods when one fails.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pulumi

from components import names
from components.job_kinds import PYTORCH_JOB, TRAIN_JOB
from components.kubernetes import programs
from components.kubernetes.manifests import Document
from components.kubernetes.objects import with_namespace
from components.kubernetes.programs import Program
from components.kubernetes.volumes import Volume, claim
from components.kubernetes.volumes import volumes as pod_volumes
from components.queueing import trainer
from components.scheduling.topology import preference
from components.workloads.indexed_job import files_name
from components.workloads.interface import Storage
from components.workloads.pods import WORKLOAD_LABEL, Container, NodePods, pod_spec
from components.workloads.pods import variables as container_variables
from components.workloads.submission import SUBMITTER, Submission, SubmissionMode, SubmittedJob, app_wrapper

MANAGER: Final = "mlbatch.example.org/pretraining"
"""Manager of the patch that mounts the volumes in a TrainJob's pods."""
CONTAINER: Final = "pytorch"
PORT: Final = {"pytorchjob-port": 23456}
CHECKPOINTS: Final = "/checkpoints"
DATA: Final = "/data"
SHARED_MEMORY: Final = "16Gi"
"""For NCCL, between the processes of a node."""
BYTES_PER_WEIGHT: Final = 16
"""Bytes of GPU memory on each GPU: a weight, its gradient and AdamW's two moments, with 4 bytes each."""
CHECKPOINT_BYTES_PER_WEIGHT: Final = 12
"""Bytes of a checkpoint, which has no gradients."""
CHECKPOINTS_AT_A_TIME: Final = 3
"""Two are kept while another is written (`training/checkpoints.py`)."""
_BYTES: Final = 256
"""Number of byte values, which are the model's tokens (`training/texts.py`)."""
PROGRAM: Final = Program(
    module="components.workloads.training.pretrain",
    shared=[f"components.workloads.training.{name}" for name in ("checkpoints", "model", "texts")],
)


class Kind(StrEnum):
    """Kind of the submitted object."""

    PYTORCH_JOB = PYTORCH_JOB.kind
    TRAIN_JOB = TRAIN_JOB.kind


@dataclass(frozen=True, kw_only=True)
class Model:
    """The model's shape: a decoder like GPT-2, with bytes as tokens.

    layers: of attention.
    width: dimensions of the embedding, divisible by the number of heads.
    context: bytes of a text.
    """

    layers: int = 24
    width: int = 1024
    heads: int = 16
    context: int = 1024

    @property
    def weights(self) -> int:
        """Number of weights: of tokens and positions, of each layer, of the last norm (`training/model.py`)."""
        return self.width * (_BYTES + self.context + 2 + self.layers * (12 * self.width + 13))

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of all checkpoints that exist at the same time."""
        return CHECKPOINTS_AT_A_TIME * CHECKPOINT_BYTES_PER_WEIGHT * self.weights


@dataclass(frozen=True, kw_only=True)
class PretrainingArgs:
    """The arguments of the training.

    batch: texts of each GPU in each step.
    checkpoint_every: number of steps.
    checkpoints: PVC of the volume for checkpoints. All pods mount it.
    data: PVC of the volume with the training texts. None for generated texts.
    """

    kind: Kind = Kind.PYTORCH_JOB
    submission: Submission
    pods: NodePods
    model: Model = Model()
    batch: int
    steps: int
    learning_rate: float
    checkpoint_every: int
    checkpoints: str
    storage: Storage
    data: pulumi.Input[str] | None = None


class Pretraining(SubmittedJob):
    """Submit the training. The log of the master's pod shows its losses."""

    def __init__(self, name: str, args: PretrainingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("workloads:Pretraining", name, documents(name, args), opts)


def documents(name: str, args: PretrainingArgs) -> list[Document]:
    """Return the PVC for checkpoints, the program, and the objects that submit the training."""
    submission = args.submission
    folder = args.storage.claim(args.checkpoints, submission.namespace)
    program = PROGRAM.config_map(files_name(name), submission.namespace, {WORKLOAD_LABEL: name})
    if args.kind is Kind.TRAIN_JOB:
        return [folder, program, train_job(name, args)]
    if submission.mode is SubmissionMode.MLBATCH:
        return [folder, program, app_wrapper(name, submission, [job(name, args)])]
    return [folder, program, with_namespace(job(name, args), submission.namespace)]


def job(name: str, args: PretrainingArgs) -> Document:
    """Return the PyTorchJob: a master, and a worker on each other node.

    A failed pod is not restarted alone, because the other pods have lost it and wait. The remaining pods stay until
    AppWrapper deletes all of them. The operator would end workers as soon as the master is done, but AppWrapper counts
    each pod that succeeds (v1.2.2, `internal/controller/appwrapper/appwrapper_controller.go`).
    """
    replicas = {"Master": 1, **({"Worker": args.pods.nodes - 1} if args.pods.nodes > 1 else {})}
    return {
        "apiVersion": PYTORCH_JOB.api,
        "kind": PYTORCH_JOB.kind,
        "metadata": {"name": name, "labels": {WORKLOAD_LABEL: name}},
        "spec": {
            "nprocPerNode": str(args.pods.gpus),
            "runPolicy": {"cleanPodPolicy": "None", "activeDeadlineSeconds": args.pods.deadline_seconds},
            "pytorchReplicaSpecs": {
                role: {"replicas": number, "restartPolicy": "Never", "template": template(name, args)}
                for role, number in replicas.items()
            },
        },
    }


def template(name: str, args: PretrainingArgs) -> Document:
    """Return the pods' template. The operator sets torchrun's variables with the rank of each pod."""
    container = Container(
        name=CONTAINER,
        command=command(name, args),
        variables=variables(args),
        volumes=volumes(name, args),
        ports=PORT,
    )
    return {
        "metadata": {
            "annotations": {**PROGRAM.checksum(), **preference(args.submission.near)},
            "labels": {WORKLOAD_LABEL: name},
        },
        "spec": pod_spec(args.pods, container, priority_class=args.submission.priority_class),
    }


def train_job(name: str, args: PretrainingArgs) -> Document:
    """Return the TrainJob, which is queued directly. Kueue ends it when all its attempts together exceed the limit."""
    submission, pods, mounted = args.submission, args.pods, volumes(name, args)
    queued = submission.mode is SubmissionMode.MLBATCH
    labels = {names.QUEUE_LABEL: submission.queue, names.LONGEST_LABEL: str(pods.deadline_seconds)} if queued else {}
    patch = {
        "volumes": pod_volumes(mounted),
        "containers": [{"name": trainer.NODE, "volumeMounts": [volume.mount() for volume in mounted]}],
    }
    return {
        "apiVersion": TRAIN_JOB.api,
        "kind": TRAIN_JOB.kind,
        "metadata": {
            "name": name,
            "namespace": submission.namespace,
            "labels": {**labels, WORKLOAD_LABEL: name},
            **({"annotations": {SUBMITTER: submission.user}} if submission.user else {}),
        },
        "spec": {
            "runtimeRef": {"name": trainer.runtime(submission.priority_class)},
            "trainer": {
                "image": pods.image,
                "command": command(name, args),
                "env": container_variables({**pods.fabric.variables, **variables(args)}),
                "numNodes": pods.nodes,
                "numProcPerNode": pods.gpus,
                "resourcesPerNode": pods.resources(),
            },
            "runtimePatches": [
                {
                    "manager": MANAGER,
                    "trainingRuntimeSpec": {
                        "template": {
                            "spec": {
                                "replicatedJobs": [
                                    {"name": trainer.NODE, "template": {"spec": {"template": {"spec": patch}}}}
                                ]
                            }
                        }
                    },
                }
            ],
        },
    }


def command(name: str, args: PretrainingArgs) -> list[str]:
    """Return the command of each pod."""
    return ["torchrun", "-m", PROGRAM.module, *arguments(name, args)]


def variables(args: PretrainingArgs) -> dict[str, str]:
    """Return the variables besides those of the fabric."""
    return {item["name"]: item["value"] for item in programs.ENVIRONMENT} | dict(args.pods.fabric.direct_variable())


def volumes(name: str, args: PretrainingArgs) -> tuple[Volume, ...]:
    """Return the volumes of the program, the checkpoints and the data, which is read-only."""
    texts = (claim("data", args.data, DATA, read_only=True),) if args.data is not None else ()
    return (PROGRAM.volume(files_name(name)), claim("checkpoints", args.checkpoints, CHECKPOINTS), *texts)


def arguments(name: str, args: PretrainingArgs) -> list[str]:
    """Return the program's arguments."""
    model = args.model
    return [
        f"--layers={model.layers}",
        f"--width={model.width}",
        f"--heads={model.heads}",
        f"--context={model.context}",
        f"--batch={args.batch}",
        f"--steps={args.steps}",
        f"--learning-rate={args.learning_rate}",
        f"--checkpoint-every={args.checkpoint_every}",
        f"--checkpoints={CHECKPOINTS}/{name}",
        *([f"--data={DATA}"] if args.data is not None else []),
    ]
