"""Check that versions of driver, CUDA, container toolkit, system and GPU go together."""

from collections.abc import Iterable, Iterator

from components.openstack.catalogue import CUDA, DRIVERS, OLD_GPUS, TOOLKITS, OldGpu
from components.openstack.first_boot.arguments import GpuStackArgs


def conflicts(gpu: GpuStackArgs, ubuntu: str, product: str = "") -> Iterator[str]:
    """Yield a sentence for each incompatible pair and each version that cannot be installed.

    ubuntu: the system's version, `22.04`.
    product: name of the GPU, such as `Tesla-P100-PCIE-16GB`.
    """
    model, old = next(((model, old) for model, old in OLD_GPUS.items() if model in product), ("", None))
    release = CUDA.get(gpu.cuda)
    if release is None:
        yield f"CUDA {gpu.cuda} has no package in the catalogue{_last(model, old, 'cuda')}: set {_either(CUDA)}"
    elif ubuntu not in release.ubuntu:
        yield f"CUDA {gpu.cuda} is packaged for Ubuntu {_either(release.ubuntu)}, and the image has {ubuntu}"
    if gpu.toolkit not in TOOLKITS:
        yield f"container toolkit {gpu.toolkit} is not one that is known to be safe: set {_either(TOOLKITS)}"
    if release is not None and gpu.driver.isdecimal() and int(gpu.driver) < release.driver:
        yield f"CUDA {gpu.cuda} needs driver {release.driver} or later, and {gpu.driver} is older ({release.source})"
    elif gpu.driver not in DRIVERS:
        last = _last(model, old, "driver")
        yield f"driver {gpu.driver} is not a branch that can be installed{last}: set {_either(DRIVERS)}"


def _last(model: str, old: OldGpu | None, what: str) -> str:
    return "" if old is None else f", and {getattr(old, what)} is the last one for a {model}"


def _either(versions: Iterable[str]) -> str:
    return " or ".join(versions)
