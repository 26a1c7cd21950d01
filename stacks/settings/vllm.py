"""Batch inference with vLLM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field

from components import names
from components.kubernetes.quantity import Quantity
from components.workloads import vllm
from stacks.errors import ConfigError, Path
from stacks.settings.claims import ClaimSettings
from stacks.settings.hub import ModelName, Revision
from stacks.settings.images import Reference
from stacks.settings.limits import MOST_GPUS
from stacks.settings.model import SomeBytes, SomeCores
from stacks.settings.names import is_subdomain
from stacks.settings.submission import WorkloadSettings

_WEEK: Final = 7 * 24 * 3600


class CacheSettings(ClaimSettings):
    """The volume that keeps the model's weights from one run to the next."""

    by_itself: ClassVar[str] = "the model's own name"

    name: str | None = None
    """Name of the claim; default the model's, without its owner."""
    size: SomeBytes = Quantity.parse("50Gi")
    """Size of the volume in bytes."""


class VllmSettings(WorkloadSettings):
    """Batch inference with vLLM: a server of a model, and beside it what sends it requests and reports their times."""

    name: str = "batch-inference"
    model: ModelName = vllm.MODEL
    """The model, by its name on Hugging Face's hub."""
    model_revision: Revision | None = None
    """Which state of the model is served: a commit of its repository, a branch or a tag. A commit is the same weights
    for good, which nobody exchanges; default the one that the catalogue has for the default model, `main` of another.
    """
    image: Reference | None = None
    """Image of the server, with its tag; default upstream's."""
    generator_image: Reference | None = None
    """Image of the load generator, with `benchmark_serving.py` in its working directory, as MLBatch's tutorial has one;
    default the server's, whose own `vllm bench serve` is run.
    """
    requests: Annotated[int, Field(ge=1, le=10_000_000)] = vllm.REQUESTS
    """Number of requests in the batch."""
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = vllm.CONCURRENCY
    """Largest number of requests that are under way at once."""
    input_tokens: Annotated[int, Field(ge=1, le=1 << 20)] = vllm.TOKENS
    """Tokens of each request, which are random."""
    output_tokens: Annotated[int, Field(ge=1, le=1 << 20)] = vllm.TOKENS
    """Tokens of each answer."""
    gpus: Annotated[int, Field(ge=1, le=MOST_GPUS)] = 1
    """GPUs of the server, among which it divides the model: a number that divides the model's attention heads."""
    cpu: SomeCores = Quantity.parse(4)
    """CPU cores of the server."""
    memory: SomeBytes = Quantity.parse("64Gi")
    """Bytes of memory of the server."""
    generator_cpu: SomeCores = Quantity.parse(1)
    """CPU cores of the load generator."""
    generator_memory: SomeBytes = Quantity.parse("4Gi")
    """Bytes of memory of the load generator."""
    cache: CacheSettings = CacheSettings()
    bounded: bool = True
    """Bound what the job takes, and for how long: amounts for the load generator too, an end when the server fails or
    does not come up, a deadline. False as MLBatch's tutorial has it, where each of the two waits for the other for as
    long as that takes, and keeps the GPUs.
    """
    start_seconds: Annotated[int, Field(ge=60, le=_WEEK)] = 3600
    """How many seconds the server may take until it answers; the first time, it fetches the weights."""
    deadline_seconds: Annotated[int, Field(ge=60, le=4 * _WEEK)] = 6 * 3600
    """How many seconds the job may run before it is ended."""

    what: ClassVar[str] = "the vLLM batch"
    no_volcano: ClassVar[str] = "it is one pod, which waits for no other"

    @property
    def claim(self) -> str:
        """Name of the claim with the weights."""
        return self.cache.name or re.sub(r"[^a-z0-9.-]+", "-", self.model.rpartition("/")[2].lower())

    def amounts(self) -> Mapping[str, Quantity]:
        """Return what its pod asks for, by resource name."""
        return {
            names.CPU: self.cpu + self.generator_cpu,
            names.MEMORY: self.memory + self.generator_memory,
            names.GPU: Quantity.parse(self.gpus),
        }

    def check(self, path: Path) -> Iterator[ConfigError]:
        """Hold the deadline to the time that the server has, and the claim's name to Kubernetes' rules."""
        yield from super().check(path)
        if not self.enabled:
            return
        if not is_subdomain(self.claim) and self.cache.name is None:
            yield ConfigError(
                path=(*path, "cache", "name"),
                message=f"no claim can have the name that follows from the model's, {self.claim!r}",
                expected="a-z, 0-9, - and ., with a letter or digit first and last",
                hint="name the claim",
            )
        if self.bounded and self.deadline_seconds <= self.start_seconds:
            yield ConfigError(
                path=(*path, "deadlineSeconds"),
                value=self.deadline_seconds,
                message=f"the server may take {self.start_seconds} seconds until it answers, so that the job could be "
                "ended before its first request",
                expected=f"more than {self.start_seconds}",
                hint="raise it, or lower startSeconds",
            )
