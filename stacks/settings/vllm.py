"""Batch inference with vLLM."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from components import names
from components.kubernetes.quantity import Quantity
from components.workloads import vllm
from stacks.config.errors import ConfigError, Path, key
from stacks.settings.claims import ClaimSettings
from stacks.settings.hub import ModelName, Revision
from stacks.settings.images import Reference
from stacks.settings.limits import MOST_GPUS, WEEK
from stacks.settings.model import SomeBytes, SomeCores
from stacks.settings.names import is_subdomain
from stacks.settings.submission import WorkloadSettings


class CacheSettings(ClaimSettings):
    """Volume that keeps the model weights between runs."""

    by_itself: ClassVar[str] = "the model's own name"

    name: str | None = None
    """Name of the claim. Default: the name of the model without its owner."""
    size: SomeBytes = Quantity.parse("50Gi")
    """Size of the volume in bytes."""


class VllmSettings(WorkloadSettings):
    """Batch inference with vLLM: a model server, and a load generator that sends requests and reports latencies."""

    name: str = "batch-inference"
    model: ModelName = vllm.MODEL
    """Name of the model on the Hugging Face Hub."""
    model_revision: Revision | None = None
    """Commit, branch or tag of the model. Only a commit always means the same weights. Default: the pinned commit of
    the default model, or `main` of another model.
    """
    image: Reference | None = None
    """Image of the server, with its tag. Default: upstream's."""
    generator_image: Reference | None = None
    """Image of the load generator, with `benchmark_serving.py` in its working directory, as in MLBatch's tutorial.
    Default: the server's image and its `vllm bench serve`.
    """
    requests: Annotated[int, Field(ge=1, le=10_000_000)] = vllm.REQUESTS
    """Number of requests."""
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = vllm.CONCURRENCY
    """Maximum number of concurrent requests."""
    input_tokens: Annotated[int, Field(ge=1, le=1 << 20)] = vllm.TOKENS
    """Random tokens in each request."""
    output_tokens: Annotated[int, Field(ge=1, le=1 << 20)] = vllm.TOKENS
    """Tokens in each answer."""
    gpus: Annotated[int, Field(ge=1, le=MOST_GPUS)] = 1
    """GPUs of the server, which splits the model across them. Must divide the number of attention heads."""
    cpu: SomeCores = Quantity.parse(4)
    """CPU cores of the server."""
    memory: SomeBytes = Quantity.parse("64Gi")
    """Memory of the server in bytes."""
    generator_cpu: SomeCores = Quantity.parse(1)
    """CPU cores of the load generator."""
    generator_memory: SomeBytes = Quantity.parse("4Gi")
    """Memory of the load generator in bytes."""
    cache: CacheSettings = CacheSettings()
    bounded: bool = True
    """Apply startSeconds, deadlineSeconds and the load generator's requests, and end the job if the server fails. If
    false, as in MLBatch's tutorial, both containers can wait for each other forever and keep the GPUs.
    """
    start_seconds: Annotated[int, Field(ge=60, le=WEEK)] = 3600
    """Maximum seconds until the server answers. The first start downloads the weights."""
    deadline_seconds: Annotated[int, Field(ge=60, le=4 * WEEK)] = 6 * 3600
    """Maximum seconds that the job can run."""

    what: ClassVar[str] = "the vLLM batch"
    no_volcano: ClassVar[str] = "it has only one pod"

    @property
    def claim(self) -> str:
        return self.cache.name or re.sub(r"[^a-z0-9.-]+", "-", self.model.rpartition("/")[2].lower())

    def amounts(self) -> Mapping[str, Quantity]:
        """Return what its pod asks for, by resource name."""
        return {
            names.CPU: self.cpu + self.generator_cpu,
            names.MEMORY: self.memory + self.generator_memory,
            names.GPU: Quantity.parse(self.gpus),
        }

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from super().check(path)
        if not self.enabled:
            return
        if not is_subdomain(self.claim) and self.cache.name is None:
            yield ConfigError(
                (*path, "cache", "name"),
                f"Kubernetes would reject the claim's name that follows from the model, {self.claim!r}",
                "name the claim",
                expected="a-z, 0-9, - and ., with a letter or digit first and last",
            )
        if self.bounded and self.deadline_seconds <= self.start_seconds:
            yield ConfigError(
                (*path, "deadlineSeconds"),
                f"the server may take {self.start_seconds} seconds until it answers: the job could end before "
                "its first request",
                f"raise it, or lower {key((*path, 'startSeconds'))}",
            )
