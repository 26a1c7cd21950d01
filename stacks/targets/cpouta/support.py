"""How long upstream fixes the software of a VM and of the cluster on it.

The end is a warning and not an error, because the VM may exist: an error would block its updates.
"""

from collections.abc import Iterator, Mapping
from datetime import date

from components.openstack.catalogue import CONTAINERD, DRIVERS, ENDS, UBUNTUS
from stacks.config.errors import key
from stacks.settings import support_end
from stacks.targets.cpouta.settings import IMAGES, NODE_IMAGES, SECTION, OpenstackSettings


def warnings(openstack: OpenstackSettings, *, is_kept: bool = False) -> Iterator[str]:
    """Yield a warning for each version whose fixes have ended or end soon. is_kept: there is a VM, see `kept`."""
    stack, default = openstack.gpu_stack, _minor(next(iter(NODE_IMAGES)))
    yield from _ending("kind.kubernetes", "Kubernetes", _minor(openstack.kind.kubernetes), ENDS.kubernetes, default)
    if not is_kept:
        yield from _ending("image", "Ubuntu", openstack.release or "", ENDS.ubuntu, UBUNTUS[0])
        yield from _ending("gpu.driver", "NVIDIA's driver", stack.driver if stack else "", ENDS.driver, DRIVERS[0])
        yield from _ending("generation", "containerd", _minor(CONTAINERD), ENDS.containerd, _minor(CONTAINERD))


def kept(openstack: OpenstackSettings, versions: Mapping[str, str]) -> Iterator[str]:
    """Yield the warnings about what is on an existing VM, which an update of this program does not change.

    versions: as `KeptUserData` has them. It does not record containerd's.
    """
    gpu = openstack.gpu.model_fields_set if openstack.gpu is not None else ()
    image = "image" if "image" in openstack.model_fields_set else "generation"
    driver = "gpu.driver" if "driver" in gpu else "generation"
    release = IMAGES.get(versions.get("image", ""), openstack.ubuntu)
    yield from _ending(image, "Ubuntu", release or "", ENDS.ubuntu, UBUNTUS[0])
    yield from _ending(driver, "NVIDIA's driver", versions.get("gpu.driver", ""), ENDS.driver, DRIVERS[0])


def _ending(name: str, software: str, version: str, ends: Mapping[str, date], default: str) -> Iterator[str]:
    end = ends.get(version)
    if end is None or not support_end.ends_soon(end):
        return
    later = (
        f"The default, {default}, gets them until {ends[default]}"
        + (": raise this key for a new VM with it" if name == "generation" else "")
        if ends[default] > end
        else "Use a later release of this program"
    )
    yield (
        f"{key((*SECTION, *name.split('.')))}: {software} {version} gets fixes until {end}, and then not even for "
        f"security. {later}. Give access only to people whom you trust"
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
