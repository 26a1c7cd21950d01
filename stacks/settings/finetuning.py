"""Fine-tuning with Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from components import names
from components.kubernetes.quantity import Quantity
from components.workloads import finetuning
from stacks.settings.hub import ModelName, Revision
from stacks.settings.images import Reference
from stacks.settings.model import SettingsModel, SomeBytes, SomeCores
from stacks.settings.names import ClassName
from stacks.settings.submission import WorkloadSettings

_WEEK = 7 * 24 * 3600


class ResultSettings(SettingsModel):
    """The volume of the model's weights, the checkpoints and the result, named after the job."""

    storage_class: ClassName | None = None
    """Class, one whose volumes many nodes can mount; default the cluster's class of shared files."""
    size: SomeBytes = Quantity.parse("50Gi")
    """Size of the volume in bytes."""


class FinetuningSettings(WorkloadSettings):
    """Fine-tuning of a small language model with low-rank adapters, as a RayJob. It needs `queueing.kuberay`."""

    name: str = "finetuning"
    model: ModelName = finetuning.MODEL
    """The model, by its name on Hugging Face's hub, one whose attention has q_proj, k_proj, v_proj and o_proj."""
    model_revision: Revision | None = None
    """Which state of the model is trained: a commit of its repository, a branch or a tag. A commit is the same weights
    for good, which nobody exchanges; default the one that the catalogue has for the default model, `main` of another.
    """
    dataset_revision: Revision | None = None
    """Which state of the data set openai/gsm8k, likewise; default the commit that the catalogue has."""
    image: Reference | None = None
    """Image of Ray 2.35 or later with PyTorch, with its tag; default that of MLBatch's samples."""
    workers: Annotated[int, Field(ge=1, le=1000)] = 2
    """Number of pods that train, each with a GPU."""
    cpu: SomeCores = Quantity.parse(8)
    """CPU cores of a worker."""
    memory: SomeBytes = Quantity.parse("64Gi")
    """Bytes of memory of a worker."""
    head_cpu: SomeCores = Quantity.parse(2)
    """CPU cores of the head, on which nothing trains."""
    head_memory: SomeBytes = Quantity.parse("16Gi")
    """Bytes of memory of the head."""
    rank: Annotated[int, Field(ge=1, le=1024)] = 16
    """Rank of the adapters: number of dimensions that each has."""
    batch: Annotated[int, Field(ge=1, le=65536)] = 8
    """Number of texts that each worker trains on in a step."""
    context: Annotated[int, Field(ge=8, le=1 << 20)] = 512
    """Most tokens of a text."""
    steps: Annotated[int, Field(ge=1, le=100_000_000)] = 500
    """Steps of the optimizer."""
    learning_rate: Annotated[float, Field(ge=1e-9, le=1)] = 1e-4
    """Learning rate."""
    checkpoint_every: Annotated[int, Field(ge=1, le=100_000_000)] = 50
    """After how many steps a checkpoint is written."""
    result: ResultSettings = ResultSettings()
    deadline_seconds: Annotated[int, Field(ge=60, le=4 * _WEEK)] = 6 * 3600
    """How many seconds each try of the job may take; one that takes longer is the last."""

    what: ClassVar[str] = "the fine-tuning"
    no_volcano: ClassVar[str] = "its pods are made by KubeRay, which Volcano does not start together"

    @property
    def claim(self) -> str:
        """Name of the claim with weights, checkpoints and result."""
        return f"{self.name}-result"

    def amounts(self) -> Mapping[str, Quantity]:
        """Return what a worker asks for, by resource name."""
        return {names.CPU: self.cpu, names.MEMORY: self.memory, names.GPU: Quantity.parse(1)}

    def head_amounts(self) -> Mapping[str, Quantity]:
        """Return what the head asks for."""
        return {names.CPU: self.head_cpu, names.MEMORY: self.head_memory}
