"""Jobs that show the platform at work."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from components import names
from components.kubernetes.quantity import Quantity
from components.scheduling.priorities import PRIORITIES
from stacks.config.errors import ConfigError, Path
from stacks.settings.limits import MOST_GPUS
from stacks.settings.model import SettingsModel, SomeBytes, SomeCores, choice
from stacks.settings.names import label_error
from stacks.settings.submission import name_error


class GangSettings(SettingsModel):
    """A sample job of a team: pods that start together."""

    enabled: bool = True
    """Submit the job."""
    name: str = "sample-gang"
    """Name of the job."""
    team: str | None = None
    """Team that submits the job."""
    user: str | None = None
    """User of the team on whose behalf the job is submitted. The job records the name."""
    pods: Annotated[int, Field(ge=1, le=1000)] = 2
    """Number of pods."""
    gpus_per_pod: Annotated[int, Field(ge=1, le=MOST_GPUS)] = 8
    """GPUs of each pod."""
    cpu_per_pod: SomeCores = Quantity.parse(8)
    """CPU cores of each pod."""
    memory_per_pod: SomeBytes = Quantity.parse("64Gi")
    """Memory of each pod in bytes."""
    seconds: Annotated[int, Field(ge=1, le=7 * 24 * 3600)] = 3600
    """Seconds that the job runs."""
    priority_class: Annotated[str, choice("priority class", tuple(PRIORITIES))] = names.DEFAULT_PRIORITY
    """Priority class of the pods."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.enabled:
            yield from label_error((*path, "name"), self.name)

    def requests(self) -> Mapping[str, Quantity]:
        """Return what one pod asks for, by resource name."""
        return {
            names.CPU: self.cpu_per_pod,
            names.MEMORY: self.memory_per_pod,
            names.GPU: Quantity.parse(self.gpus_per_pod),
        }


class SyntheticSettings(SettingsModel):
    """Synthetic load: the jobs of a trace. They hold GPUs for a time but do not compute. All are submitted at once."""

    enabled: bool = True
    """Submit the jobs."""
    name: str = "load"
    """Prefix of the jobs' names. A number follows."""
    trace: str
    """File with the jobs, relative to the program's folder."""
    time_scale: Annotated[float, Field(ge=1, le=100_000)] = 1
    """Seconds of the trace that pass in one real second."""
    cpu_per_gpu: SomeCores = Quantity.parse(1)
    """CPU cores of each pod, for each of its GPUs."""
    memory_per_gpu: SomeBytes = Quantity.parse("1Gi")
    """Memory of each pod in bytes, for each of its GPUs."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.enabled:
            yield from name_error((*path, "name"), self.name, "load")

    def per_gpu(self) -> Mapping[str, Quantity]:
        """Return what a pod asks for with each of its GPUs, by resource name."""
        return {names.CPU: self.cpu_per_gpu, names.MEMORY: self.memory_per_gpu}

    def gpu_and_beside(self) -> Mapping[str, Quantity]:
        """Return the same with the GPU itself."""
        return {**self.per_gpu(), names.GPU: Quantity.parse(1)}


class SamplesSettings(SettingsModel):
    """Sample jobs. None by default."""

    gang: GangSettings | None = None
    """A job with pods that start together or not at all. Default: none."""
    synthetic: SyntheticSettings | None = None
    """The jobs of a trace. Default: none."""
