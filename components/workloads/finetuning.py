"""Fine-tuning of a small language model with low-rank adapters on a Ray cluster, as a RayJob.

Source: project-codeflare/mlbatch's tutorial does not define it. Image and shape of the cluster are those of its later
`samples` (a head, and workers with a GPU each). Fields: ray-project/kuberay v1.6.2, `apis/ray/v1/rayjob_types.go`.

The RayJob is in the team's queue directly, without an AppWrapper. Ray's pods never end by themselves, and AppWrapper
takes a job as done when its pods have ended. It would keep its GPUs forever, or be recreated after KubeRay has deleted
the cluster (v1.2.2, `internal/controller/appwrapper/appwrapper_controller.go`). Kueue supports the end of a RayJob.
KubeRay recreates a cluster when the job fails. The checkpoints are in a separate volume.

Only the pod templates name the packing scheduler, and the PodGroup is declared next to the job. KubeRay has an option
for both (`--batch-scheduler=scheduler-plugins`), but with it KubeRay starts RayClusters and not RayJobs (v1.6.2,
`controllers/ray/batchscheduler/scheduler-plugins/scheduler_plugins.go`, DoBatchSchedulingOnSubmission).
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.images import Reference
from components.kubernetes import programs
from components.kubernetes.manifests import Document
from components.kubernetes.objects import with_namespace
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.programs import Program
from components.kubernetes.security import UNPRIVILEGED
from components.kubernetes.volumes import Volume, claim, volumes
from components.scheduling import pod_group
from components.workloads.indexed_job import files_name
from components.workloads.interface import USER, Storage, pod_security, ray_token
from components.workloads.pods import WORKLOAD_LABEL, shared_memory, variables
from components.workloads.submission import SUBMITTER, Submission, SubmissionMode, SubmittedJob

API: Final = "ray.io/v1"
MODEL: Final = "ibm-granite/granite-3.1-2b-instruct"
DATASET: Final = "openai/gsm8k"
FOLDER: Final = "/finetuning"
SHARED_MEMORY: Final = "10Gi"
"""Size for Ray's object store. It takes 30 % of the pod's memory, and at most 10 GB or 95 % of this size, whichever is
more. With less than 10 GB here, the store of a large pod would be on disk (ray-project/ray 2.35, `python/ray/_private`:
ResourceSpec.resolve, determine_plasma_store_config)."""
RETRIES: Final = 3
"""How often KubeRay recreates the cluster. AppWrapper has the same limit for its contents."""
PROGRAM: Final = Program(
    module="components.workloads.training.finetune", shared=["components.workloads.training.checkpoints"]
)
_RAY_TRAIN: Final = {"RAY_TRAIN_V2_ENABLED": "0"}
"""The program uses the first API of Ray Train. Newer images of Ray enable the second one, which raises an error where
the workers are started (ray-project/ray, `python/ray/train/v2/api/config.py`: trainer_resources)."""
_LOGS: Final = {"RAY_LOG_TO_STDERR": "1"}
"""Otherwise a worker's output goes to a file in its pod, which `kubectl logs` does not show (ray-project/ray 2.35,
`python/ray/_private/node.py`, should_redirect_logs)."""
_ACCOUNT: Final = {"USER": "ray"}
"""For a UID that the image does not have, such as OpenShift's. PyTorch asks for the user's name (getpass.getuser), and
this variable answers."""
_PORTS: Final = {"gcs": 6379, "dashboard": 8265, "client": 10001}


@dataclass(frozen=True, kw_only=True)
class FinetuningArgs:
    """The arguments of the fine-tuning.

    model: name on Hugging Face's hub.
    model_revision, dataset_revision: commit, branch or tag of the model and of DATASET.
    image: of Ray, with PyTorch.
    packages: that Ray installs for the job, with their versions.
    workers: number of pods, each with a GPU.
    cpu, memory: of a worker, as canonical quantities.
    head_cpu, head_memory: of the head, as canonical quantities.
    batch: texts of each worker in each step.
    context: the most tokens of a text.
    claim: name of the PVC with weights, checkpoints and result. All pods mount it.
    deadline_seconds: limit for each attempt. A job that exceeds it is not retried.
    user: UID in the pods. None if the cluster assigns UIDs to each namespace (OpenShift).
    signs_in: OpenShift AI adds a sign-in in front of Ray's dashboard.
    """

    submission: Submission
    image: str
    packages: Sequence[str]
    model: str = MODEL
    model_revision: str
    dataset_revision: str
    workers: int
    gpu_resource: str = names.GPU
    cpu: str
    memory: str
    head_cpu: str
    head_memory: str
    rank: int
    batch: int
    context: int
    steps: int
    learning_rate: float
    checkpoint_every: int
    placement: NodeGroup = ANYWHERE
    claim: str
    storage: Storage
    deadline_seconds: int
    user: int | None = USER
    signs_in: bool = False


class Finetuning(SubmittedJob):
    """Submit the fine-tuning. The log of the first worker's pod shows its losses."""

    def __init__(self, name: str, args: FinetuningArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("workloads:Finetuning", name, documents(name, args), opts)


def documents(name: str, args: FinetuningArgs) -> list[Document]:
    """Return the PVC, the program, the PodGroup if the cluster has PodGroups, and the job."""
    namespace = args.submission.namespace
    folder = args.storage.claim(args.claim, namespace)
    program = PROGRAM.config_map(files_name(name), namespace, {WORKLOAD_LABEL: name})
    gang = [with_namespace(group(name, args), namespace)] if _is_gang(args) else []
    return [folder, program, *gang, job(name, args)]


def group(name: str, args: FinetuningArgs) -> Document:
    """Return the PodGroup: the head and all workers.

    KubeRay creates the workers' pods together with the head's and does not wait for any of them (v1.6.2,
    `controllers/ray/raycluster_controller.go`, reconcilePods). The job has no other pods, because HTTPMode needs none.
    """
    return pod_group.pod_group(name, 1 + args.workers)


def _is_queued(args: FinetuningArgs) -> bool:
    return args.submission.mode is SubmissionMode.MLBATCH


def _is_gang(args: FinetuningArgs) -> bool:
    return _is_queued(args) and args.submission.has_pod_groups


def job(name: str, args: FinetuningArgs) -> Document:
    """Return the RayJob. KubeRay submits the program to the head, so all pods are counted."""
    submission = args.submission
    queue = {names.QUEUE_LABEL: submission.queue} if _is_queued(args) else {}
    user = {"annotations": {SUBMITTER: submission.user}} if submission.user else {}
    return {
        "apiVersion": API,
        "kind": "RayJob",
        "metadata": {
            "name": name,
            "namespace": submission.namespace,
            "labels": {**queue, WORKLOAD_LABEL: name},
            **user,
        },
        "spec": {
            "entrypoint": shlex.join(["python", "-m", PROGRAM.module, *arguments(name, args)]),
            "submissionMode": "HTTPMode",
            "shutdownAfterJobFinishes": True,
            "backoffLimit": RETRIES,
            "activeDeadlineSeconds": args.deadline_seconds,
            # JSON is valid YAML, and its text does not depend on the YAML library.
            "runtimeEnvYAML": json.dumps({"pip": list(args.packages)}),
            "rayClusterSpec": cluster(name, args),
        },
    }


def cluster(name: str, args: FinetuningArgs) -> Document:
    """Return the Ray cluster: a head that runs no tasks, and workers with a GPU each."""
    version = Reference.parse(args.image).tag or ""
    head = {names.CPU: args.head_cpu, names.MEMORY: args.head_memory}
    worker = {names.CPU: args.cpu, names.MEMORY: args.memory, args.gpu_resource: "1"}
    return {
        "rayVersion": version.partition("-")[0],
        "headGroupSpec": {
            "serviceType": "ClusterIP",
            "rayStartParams": {"dashboard-host": "0.0.0.0", "num-cpus": "0", "num-gpus": "0"},  # noqa: S104 - of the pod
            "template": template(name, args, "ray-head", head, _PORTS, signs_in=args.signs_in),
        },
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": args.workers,
                "minReplicas": args.workers,
                "maxReplicas": args.workers,
                "rayStartParams": {"num-gpus": "1"},
                "template": template(name, args, "ray-worker", worker, {}),
            }
        ],
    }


def template(
    name: str,
    args: FinetuningArgs,
    container: str,
    amounts: Mapping[str, str],
    ports: Mapping[str, int],
    *,
    signs_in: bool = False,
) -> Document:
    """Return the template of the head's or the workers' pods. Limits equal requests."""
    mounted: tuple[Volume, ...] = (
        shared_memory(SHARED_MEMORY),
        PROGRAM.volume(files_name(name)),
        claim("finetuning", args.claim, FOLDER),
    )
    own = {item["name"]: item["value"] for item in programs.ENVIRONMENT} | _RAY_TRAIN | _LOGS | _ACCOUNT
    listening = [{"name": each, "containerPort": port, "protocol": "TCP"} for each, port in ports.items()]
    priority = args.submission.priority_class
    scheduler = args.submission.scheduler if _is_queued(args) else None
    member = {pod_group.LABEL: name} if _is_gang(args) else {}
    return {
        "metadata": {"annotations": PROGRAM.checksum(), "labels": {WORKLOAD_LABEL: name, **member}},
        "spec": {
            **ray_token(signs_in=signs_in),
            **args.placement.body(),
            **({"priorityClassName": priority} if priority is not None else {}),
            **({"schedulerName": scheduler} if scheduler is not None else {}),
            "securityContext": pod_security(args.user),
            "containers": [
                {
                    "name": container,
                    "image": args.image,
                    "imagePullPolicy": "IfNotPresent",
                    "env": variables({**own, "HF_HOME": f"{FOLDER}/cache"}),
                    **({"ports": listening} if listening else {}),
                    "resources": {"requests": dict(amounts), "limits": dict(amounts)},
                    "securityContext": dict(UNPRIVILEGED),
                    "volumeMounts": [item.mount() for item in mounted],
                }
            ],
            "volumes": volumes(mounted),
        },
    }


def arguments(name: str, args: FinetuningArgs) -> list[str]:
    """Return the program's arguments."""
    return [
        f"--model={args.model}",
        f"--model-revision={args.model_revision}",
        f"--dataset={DATASET}",
        f"--dataset-revision={args.dataset_revision}",
        "--subset=main",
        f"--workers={args.workers}",
        f"--rank={args.rank}",
        f"--batch={args.batch}",
        f"--context={args.context}",
        f"--steps={args.steps}",
        f"--learning-rate={args.learning_rate}",
        f"--checkpoint-every={args.checkpoint_every}",
        f"--folder={FOLDER}/{name}",
        "--gpu",
    ]
