"""Compatible versions of driver, CUDA, container toolkit and system, with sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from components.openstack.first_boot.arguments import GpuStackArgs


@dataclass(frozen=True, kw_only=True)
class CudaRelease:
    """A release of CUDA whose installer is in the catalogue.

    driver: the oldest supported branch.
    ubuntu: versions of Ubuntu that the installer supports.
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
"""Branches with a package nvidia-driver-<branch>-server in Ubuntu's archive that the first boot supports."""
TOOLKITS: Final = ("1.17.8-1",)
"""The oldest version without CVE-2025-23266, which lets a container take over its host (nvidia.custhelp.com, answer
5659)."""


def conflicts(gpu: GpuStackArgs, ubuntu: str) -> Iterator[str]:
    """Yield a sentence for each incompatible pair and each version that cannot be installed.

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
