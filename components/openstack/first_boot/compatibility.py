"""Which driver, CUDA, container toolkit and system go together, as data with sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from components.openstack.first_boot.arguments import GpuStackArgs


@dataclass(frozen=True, kw_only=True)
class CudaRelease:
    """A release of CUDA whose installer the catalogue has.

    driver: the oldest branch that runs it. ubuntu: the systems that its installer is for.
    """

    driver: int
    ubuntu: tuple[str, ...]
    source: str


CUDA: Final = {
    "12.2": CudaRelease(
        driver=535,
        ubuntu=("22.04",),
        source="https://docs.nvidia.com/cuda/archive/12.2.0/cuda-toolkit-release-notes/index.html",
    ),
}
DRIVERS: Final = (535,)
"""Branches that Ubuntu's archive has as nvidia-driver-<branch>-server, and that the first boot was made for."""
TOOLKITS: Final = ("1.17.8-1",)
"""The oldest without CVE-2025-23266, by which a container takes over its host (nvidia.custhelp.com, answer 5659)."""


def conflicts(gpu: GpuStackArgs, ubuntu: str) -> Iterator[str]:
    """Yield a sentence for each pair that does not go together, or version that cannot be installed.

    ubuntu: the system's version, `22.04`.
    """
    release = CUDA.get(gpu.cuda)
    if release is None:
        yield f"CUDA {gpu.cuda} has no installer in the catalogue: set {_either(CUDA)}"
    elif ubuntu not in release.ubuntu:
        yield f"CUDA {gpu.cuda} is packaged for Ubuntu {_either(release.ubuntu)}, and the image has {ubuntu}"
    if gpu.toolkit not in TOOLKITS:
        yield f"container toolkit {gpu.toolkit} is not one that is known to be safe: set {_either(TOOLKITS)}"
    if release is not None and gpu.driver.isdecimal() and int(gpu.driver) < release.driver:
        yield f"CUDA {gpu.cuda} needs driver {release.driver} or later, and {gpu.driver} is older ({release.source})"
    elif gpu.driver not in map(str, DRIVERS):
        yield f"driver {gpu.driver} is not a branch that can be installed: set {_either(map(str, DRIVERS))}"


def _either(versions: Iterable[str]) -> str:
    return " or ".join(versions)
