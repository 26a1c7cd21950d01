"""Batch inference with vLLM: a server of a model and a load generator in one pod, which signal each other.

Source: MLBatch's tutorial, "Batch Inference with vLLM": PVC, AppWrapper, Job, amounts, options, and a common folder of
both containers, where a file named `halt` ends the server. Differences from it:

- Both containers run upstream's image, whose `vllm bench serve` is the tutorial's `benchmark_serving.py`. The
  tutorial's two images belong to individuals. They can still be configured.
- The load generator has requests and limits.
- A server that fails or does not answer in time ends the job, and so does a deadline. Setting `bounded` to false
  removes all three limits, as in the tutorial.
- The server listens on the pod's loopback device, because it has no password.
- The revision of the model can be set. vLLM then uses its tokenizer too (vllm, `config/model.py`).
- Caches are on the volume for every user. The tutorial's are only there because OpenShift's users have / as their home.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes.manifests import Document
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.security import UNPRIVILEGED
from components.kubernetes.volumes import Volume, claim, volumes
from components.scripts import script
from components.workloads.interface import USER, Storage, pod_security
from components.workloads.pods import WORKLOAD_LABEL, shared_memory, variables
from components.workloads.submission import Submission, SubmittedJob, submitted_alone

MODEL: Final = "ibm-granite/granite-3.2-8b-instruct"
PORT: Final = 8000
REQUESTS: Final = 512
CONCURRENCY: Final = 16
TOKENS: Final = 128
SERVER: Final = "vllm"
GENERATOR: Final = "load-generator"
CACHE: Final = "/.cache"
SIGNALS: Final = "/.config"
HALT: Final = "halt"
"""File that the load generator creates to stop the server."""
STOPPED: Final = "stopped"
"""File that the server creates after it has ended."""
SHARED_MEMORY: Final = "8Gi"
"""For a server with several GPUs, whose processes communicate there (docs.vllm.ai, deployment/k8s: tensor parallelism).
"""
_FAILED: Final = 70
"""Exit code of a container that gives up: EX_SOFTWARE of sysexits.h."""

ENVIRONMENT: Final = {
    "HOME": "/tmp",  # noqa: S108 - of the container alone
    "USER": SERVER,
    "XDG_CACHE_HOME": CACHE,
    "XDG_CONFIG_HOME": SIGNALS,
    "TORCHINDUCTOR_CACHE_DIR": "/tmp/torchinductor",  # noqa: S108 - of the container alone
}
"""For a UID that the image does not have. PyTorch asks for the user's name, and all of them for a home folder
(vllm-project/vllm #31959; huggingface_hub, `constants.py`; vllm, `envs.py`)."""


@dataclass(frozen=True, kw_only=True)
class VllmArgs:
    """The arguments of the batch.

    model: name on Hugging Face's hub.
    model_revision: its commit, branch or tag. None for the hub's default.
    generator_image: of the load generator, with `benchmark_serving.py` in its working directory. None for the server's
    image.
    input_tokens, output_tokens: of each request.
    cpu, memory: of the server, as canonical quantities.
    generator_cpu, generator_memory: of the load generator, as canonical quantities.
    claim: name of the PVC with the weights.
    bounded: the batch ends with the server and has time limits.
    start_seconds: limit until the server answers.
    deadline_seconds: limit for the whole job.
    user: UID in the pod. None if the cluster assigns UIDs to each namespace (OpenShift).
    """

    submission: Submission
    image: pulumi.Input[str]
    generator_image: pulumi.Input[str] | None = None
    model: str = MODEL
    model_revision: str | None = None
    requests: int = REQUESTS
    concurrency: int = CONCURRENCY
    input_tokens: int = TOKENS
    output_tokens: int = TOKENS
    gpus: int = 1
    gpu_resource: str = names.GPU
    cpu: str
    memory: str
    generator_cpu: str
    generator_memory: str
    placement: NodeGroup = ANYWHERE
    claim: str
    storage: Storage
    bounded: bool = True
    start_seconds: int
    deadline_seconds: int
    user: int | None = USER


class Vllm(SubmittedJob):
    """Submit the batch. The log of its load generator shows its times (to the first token, and for each)."""

    def __init__(self, name: str, args: VllmArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("workloads:Vllm", name, documents(name, args), opts)


def documents(name: str, args: VllmArgs) -> list[Document]:
    """Return the PVC for the weights, and the objects that submit the batch."""
    weights = args.storage.claim(args.claim, args.submission.namespace)
    return [weights, submitted_alone(name, args.submission, job(name, args))]


def job(name: str, args: VllmArgs) -> Document:
    """Return the Job with one pod, which is not retried. AppWrapper resubmits it."""
    bounds = {"backoffLimit": 0, "activeDeadlineSeconds": args.deadline_seconds} if args.bounded else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {WORKLOAD_LABEL: name}},
        "spec": {
            **bounds,
            "template": {
                "metadata": {
                    "annotations": {"kubectl.kubernetes.io/default-container": GENERATOR},
                    "labels": {"app": name, WORKLOAD_LABEL: name},
                },
                "spec": pod(args),
            },
        },
    }


def pod(args: VllmArgs) -> Document:
    """Return the pod with the server and the load generator."""
    common = (
        claim("cache", args.claim, CACHE),
        Volume(name="config", path=SIGNALS, source={"emptyDir": {}}),
    )
    of_server = (*common, shared_memory(SHARED_MEMORY)) if args.gpus > 1 else common
    gpus = {args.gpu_resource: str(args.gpus)}
    server = {
        **_container(SERVER, args.image, server_script(args), of_server),
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "resources": _amounts({names.CPU: args.cpu, names.MEMORY: args.memory, **gpus}),
    }
    generator = _container(GENERATOR, args.generator_image or args.image, generator_script(args), common)
    if args.bounded:
        generator["resources"] = _amounts({names.CPU: args.generator_cpu, names.MEMORY: args.generator_memory})
    priority = args.submission.priority_class
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        **args.placement.body(),
        **({"priorityClassName": priority} if priority is not None else {}),
        "securityContext": pod_security(args.user),
        "containers": [server, generator],
        "volumes": volumes(of_server),
    }


def server_script(args: VllmArgs) -> str:
    """Return the server's script. It runs until the halt signal or, if bounded, until the server ends."""
    command = ["vllm", "serve", args.model, "--host=127.0.0.1"]
    if args.model_revision is not None:
        command.append(f"--revision={args.model_revision}")
    if args.gpus > 1:
        command.append(f"--tensor-parallel-size={args.gpus}")
    return script(__name__, "vllm_server.sh", serve=shlex.join(command), bounded=args.bounded, **_SIGNALED)


def generator_script(args: VllmArgs) -> str:
    """Return the load generator's script: wait for the server, send the batch, and stop the server.

    Failed requests are reported, but do not fail the batch. If bounded, it stops the server in all cases, and fails if
    the server has ended before.
    """
    return script(
        __name__,
        "vllm_generator.sh",
        batch=shlex.join(_batch(args)),
        bounded=args.bounded,
        port=PORT,
        server=SERVER,
        start_seconds=args.start_seconds,
        **_SIGNALED,
    )


_SIGNALED: Final[Mapping[str, object]] = {
    "halt": f"{SIGNALS}/{HALT}",
    "stopped": f"{SIGNALS}/{STOPPED}",
    "failed": _FAILED,
}
"""Values of both scripts: the files that stop the server or report its end, and the exit code of a failure."""


def _batch(args: VllmArgs) -> list[str]:
    program = ["vllm", "bench", "serve"] if args.generator_image is None else ["python3", "benchmark_serving.py"]
    return [
        *program,
        f"--model={args.model}",
        "--backend=vllm",
        "--dataset-name=random",
        f"--random-input-len={args.input_tokens}",
        f"--random-output-len={args.output_tokens}",
        f"--max-concurrency={args.concurrency}",
        f"--num-prompts={args.requests}",
    ]


def _container(name: str, image: pulumi.Input[str], script: str, mounted: tuple[Volume, ...]) -> Document:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "env": variables(ENVIRONMENT),
        "securityContext": dict(UNPRIVILEGED),
        "volumeMounts": [item.mount() for item in mounted],
    }


def _amounts(requests: Mapping[str, str]) -> Document:
    """Return a container's `resources`. Limits equal requests, as extended resources require."""
    return {"requests": dict(requests), "limits": dict(requests)}
