"""Fine-tuning with Ray."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from components import names
from components.kubernetes.quantity import Quantity
from components.workloads import finetuning
from stacks.settings.hub import ModelName, Revision
from stacks.settings.images import Reference
from stacks.settings.limits import WEEK
from stacks.settings.model import SettingsModel, SomeBytes, SomeCores
from stacks.settings.names import ClassName
from stacks.settings.submission import WorkloadSettings


class ResultSettings(SettingsModel):
    """Volume for weights, checkpoints and the result. It has the name of the job."""

    storage_class: ClassName | None = None
    """StorageClass of volumes that several nodes can mount. Default: the cluster's class for shared files."""
    size: SomeBytes = Quantity.parse("50Gi")
    """Size of the volume in bytes."""


class FinetuningSettings(WorkloadSettings):
    """Fine-tuning of a small language model with LoRA, as a RayJob. It needs `queueing.kuberay`."""

    name: str = "finetuning"
    model: ModelName = finetuning.MODEL
    """Name of the model on the Hugging Face Hub. Its attention must have q_proj, k_proj, v_proj and o_proj."""
    model_revision: Revision | None = None
    """Commit, branch or tag of the model. Only a commit always means the same weights. Default: the pinned commit of
    the default model, or `main` of another model.
    """
    dataset_revision: Revision | None = None
    """Commit, branch or tag of the data set openai/gsm8k. Default: the pinned commit."""
    image: Reference | None = None
    """Image with Ray 2.35 or later and PyTorch, with its tag. Default: that of MLBatch's samples."""
    workers: Annotated[int, Field(ge=1, le=1000)] = 2
    """Number of pods that train, with one GPU each."""
    cpu: SomeCores = Quantity.parse(8)
    """CPU cores of each worker."""
    memory: SomeBytes = Quantity.parse("64Gi")
    """Memory of each worker in bytes."""
    head_cpu: SomeCores = Quantity.parse(2)
    """CPU cores of the head pod, which does not train."""
    head_memory: SomeBytes = Quantity.parse("16Gi")
    """Memory of the head pod in bytes."""
    rank: Annotated[int, Field(ge=1, le=1024)] = 16
    """LoRA rank: number of dimensions of each adapter."""
    batch: Annotated[int, Field(ge=1, le=65536)] = 8
    """Number of texts per worker and step."""
    context: Annotated[int, Field(ge=8, le=1 << 20)] = 512
    """Maximum tokens of a text."""
    steps: Annotated[int, Field(ge=1, le=100_000_000)] = 500
    """Number of optimizer steps."""
    learning_rate: Annotated[float, Field(ge=1e-9, le=1)] = 1e-4
    """Learning rate."""
    checkpoint_every: Annotated[int, Field(ge=1, le=100_000_000)] = 50
    """Number of steps between checkpoints."""
    result: ResultSettings = ResultSettings()
    deadline_seconds: Annotated[int, Field(ge=60, le=4 * WEEK)] = 6 * 3600
    """Maximum seconds for each attempt of the job. An attempt that exceeds it is not repeated."""

    what: ClassVar[str] = "the fine-tuning"
    no_volcano: ClassVar[str] = "KubeRay creates its pods, and Volcano cannot start those together"

    @property
    def claim(self) -> str:
        return f"{self.name}-result"

    def amounts(self) -> Mapping[str, Quantity]:
        """Return what a worker asks for, by resource name."""
        return {names.CPU: self.cpu, names.MEMORY: self.memory, names.GPU: Quantity.parse(1)}

    def head_amounts(self) -> Mapping[str, Quantity]:
        return {names.CPU: self.head_cpu, names.MEMORY: self.head_memory}
