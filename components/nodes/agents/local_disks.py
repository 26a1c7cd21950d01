"""Which local disks a node has, and what is made of them, as its lsblk tells.

Local are the disks of a given model; the disk of the operating system and remote disks have others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.nodes.agents.commands import CommandError

COLUMNS = "PATH,TYPE,MODEL,FSTYPE,MOUNTPOINTS"
"""What lsblk is to list."""


class ScratchError(CommandError):
    """The disks cannot be used as they are; the message says which and why."""


@dataclass(frozen=True)
class Device:
    """A block device as lsblk has it. children: what is made of it, partitions and arrays."""

    path: str
    kind: str
    model: str
    filesystem: str
    mounts: tuple[str, ...]
    children: tuple[Device, ...]

    @classmethod
    def read(cls, entry: dict[str, Any]) -> Device:
        """Return a device of lsblk's JSON."""
        mounts = tuple(mount for mount in entry.get("mountpoints") or () if mount)
        return cls(
            path=entry["path"],
            kind=entry["type"],
            model=(entry.get("model") or "").strip(),
            filesystem=entry.get("fstype") or "",
            mounts=mounts,
            children=tuple(cls.read(child) for child in entry.get("children", ())),
        )


def local_disks(listing: str, model: re.Pattern[str]) -> list[Device]:
    """Return the disks of a model of lsblk's JSON, without those with partitions: an operating system may be there."""
    devices = [Device.read(entry) for entry in json.loads(listing)["blockdevices"]]
    return [
        device
        for device in devices
        if device.kind == "disk"
        and model.fullmatch(device.model)
        and not any(child.kind == "part" for child in device.children)
    ]


def array_of(disks: Sequence[Device]) -> Device | None:
    """Return the array that is made of these disks, None when there is none.

    Raises ScratchError when only some of them belong to one, or to different ones. Linux names an array that it finds
    at boot by itself (/dev/md127), so its members tell it, not its name.
    """
    arrays = {child.path: child for disk in disks for child in disk.children}
    missing = [disk.path for disk in disks if not disk.children]
    if len(arrays) > 1 or (arrays and missing):
        raise ScratchError(f"the local disks are not one array: {sorted(arrays)}, and without one: {missing}")
    return next(iter(arrays.values()), None)
