"""OLMo: training of AI2's open language model, from data in a volume.

Source: edwardsp/ai-on-aks, examples/olmojob. The image is built from images/olmo, which rewrites the data's addresses
to files in /inputdata. There are three differences. The requested training configuration is the one that is used. All
configurations write their checkpoints to the local disks. The job ends with the training, and does not keep its GPUs
for another hour.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document
from components.kubernetes.volumes import Volume, claim
from components.scripts import script
from components.workloads.indexed_job import indexed_job, service_name
from components.workloads.pods import Container, NodePods, disruption_budget, pod_spec, scratch
from components.workloads.submission import Submission, SubmittedJob, submitted

FOLDER: Final = "/opt/OLMo"
TRAINING: Final = "configs/official-0724/OLMo-1B.yaml"
"""Path in the image, below FOLDER. The catalogue has the commit of allenai/OLMo."""
TOPOLOGIES: Final = "/etc"
SHARED_MEMORY: Final = "128Gi"
INPUT: Final = "/inputdata"
RENDEZVOUS_PORT: Final = 29500
AIM_PORT: Final = 43800
_WAIT_SECONDS: Final = 1800


@dataclass(frozen=True, kw_only=True)
class OlmoArgs:
    """The arguments of the training.

    training: file with the training's configuration, in the image.
    data: PVC of the volume with the data.
    stop_at: the last step. None for the configuration's own.
    """

    submission: Submission
    pods: NodePods
    data: pulumi.Input[str]
    training: str = TRAINING
    stop_at: int | None = None


class Olmo(SubmittedJob):
    """Submit the training. Checkpoints go to each pod's folder on local disks, which is deleted after the pod."""

    def __init__(self, name: str, args: OlmoArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("workloads:Olmo", name, documents(name, args), opts)


def documents(name: str, args: OlmoArgs) -> list[Document]:
    """Return the objects that submit the training."""
    trainer = Container(
        name="olmo",
        command=["/bin/bash", "-c", train_script(name, args)],
        variables=_variables(name, args),
        volumes=volumes(args),
        ports={"aim": AIM_PORT, "rendezvous": RENDEZVOUS_PORT},
        working_directory=FOLDER,
    )
    spec = pod_spec(args.pods, trainer, priority_class=args.submission.priority_class)
    kept = disruption_budget(name, args.submission.namespace, args.pods.nodes)
    return [kept, *submitted(name, args.submission, indexed_job(name, args.pods, spec))]


def volumes(args: OlmoArgs) -> tuple[Volume, ...]:
    """Return the local disks and the data, which is read-only."""
    return (scratch(args.pods), claim("data", args.data, INPUT, read_only=True))


def _variables(name: str, args: OlmoArgs) -> Mapping[str, str]:
    fabric = args.pods.fabric
    return {
        "SCRATCH_DIR": f"/scratch/{name}",
        "WANDB_MODE": "offline",
        **fabric.topology_variable(TOPOLOGIES),
        **fabric.switch_variables,
    }


def train_script(name: str, args: OlmoArgs) -> str:
    """Return the script of each pod. It starts torchrun when the first pod has a DNS name."""
    return script(
        __name__,
        "olmo.sh",
        name=name,
        head=f"{name}-0.{service_name(name)}",
        port=RENDEZVOUS_PORT,
        wait_seconds=_WAIT_SECONDS,
        pods=args.pods,
        training=args.training,
        stop_at=args.stop_at,
    )
