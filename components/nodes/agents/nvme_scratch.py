"""Makes one scratch file system of a node's local NVMe disks, and labels the node while it is really mounted.

Local are the disks of a given model; the disk of the operating system and remote disks have others. Several become one
RAID 0.

Every round looks at the node as it is. Mounted from these disks: label. Not mounted: take the label away, then bring
back the array that is there, or make one of blank disks, then the file system, then mount. What is on a disk and was
not put there by this program stays as it is: the round fails and the node gets no label.

While it is mounted, the folders of pods that have ended are removed from it.

After a reboot the mount is gone while its folder is still there, on the disk of the operating system. A job that starts
before this program is kept from filling that disk: the folder is immutable while nothing is mounted on it.

All commands are the node's own, run in its mount namespace: it needs mdadm, and e2fsprogs or xfsprogs.

Usage: python -m components.nodes.agents.nvme_scratch FOLDER FILESYSTEM MODEL, where MODEL is a regular expression, with
$NODE_NAME and $POD_UID set; in a privileged pod that shares the node's process ids.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.nodes.agents import node
from components.nodes.agents.commands import CommandError, Run, done, on_the_node
from components.nodes.agents.scratch_folders import Folders

LABEL = "mlbatch/nvme-scratch"
READY = "ready"
PORT = 8082
PERIOD_SECONDS = 60.0

ARRAY = "/dev/md/mlbatch-scratch"
ARRAY_NAME = "mlbatch-scratch"
CHUNK_KIB = 512
BLOCK_BYTES = 4096
_MEMBER = "linux_raid_member"


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


class Scratch:
    """The scratch file system of this node.

    folder: where it is mounted. filesystem: ext4 or xfs. model: of the disks, as a regular expression.
    """

    def __init__(self, run: Run, folder: str, filesystem: str, model: str) -> None:
        self._run, self._folder, self._filesystem, self._model = run, folder, filesystem, re.compile(model)

    def is_mounted(self) -> bool:
        """Whether the folder is a mount of the local disks; raises CommandError when it is one of something else."""
        answer = self._run(["findmnt", "--noheadings", "--output", "SOURCE", "--mountpoint", self._folder])
        if answer.status != 0:
            return False
        disks = self._disks()
        source, own = answer.text.strip(), self._device(disks)
        if own is None or self._real(source) != own.path:
            raise ScratchError(f"{self._folder} is mounted from {source}, which is not made of the local disks")
        return True

    def mount(self) -> None:
        """Mount the local disks, making array and file system where there is none. Raises CommandError."""
        self._protect()
        device = self._device(self._disks()) or self._array()
        if device.mounts:
            raise ScratchError(f"{device.path} is mounted at {', '.join(device.mounts)} already")
        if not device.filesystem:
            self._format(device)
        elif device.filesystem != self._filesystem:
            raise ScratchError(f"{device.path} has a file system {device.filesystem}, not {self._filesystem}")
        self._do("mount", "--options", "noatime,discard", device.path, self._folder)
        self._do("chmod", "1777", self._folder)

    def _disks(self) -> list[Device]:
        columns = "PATH,TYPE,MODEL,FSTYPE,MOUNTPOINTS"
        disks = local_disks(self._do("lsblk", "--json", "--output", columns), self._model)
        if not disks:
            raise ScratchError("this node has no local NVMe disk")
        return disks

    def _device(self, disks: Sequence[Device]) -> Device | None:
        """Return what the file system is on: the array of several disks if there is one, or the one disk."""
        return disks[0] if len(disks) == 1 else array_of(disks)

    def _array(self) -> Device:
        disks = self._disks()
        paths = [disk.path for disk in disks]
        foreign = {disk.path: disk.filesystem for disk in disks if disk.filesystem not in ("", _MEMBER)}
        members = [disk.path for disk in disks if disk.filesystem == _MEMBER]
        if foreign:
            raise ScratchError(f"there is something on the local disks already: {foreign}")
        if members == paths:
            self._do("mdadm", "--assemble", "--run", ARRAY, *paths)
        elif members:
            raise ScratchError(f"only {members} of {paths} are of an array: a disk was replaced, so its data is lost")
        else:
            options = ("--run", "--level=0", f"--chunk={CHUNK_KIB}K", f"--name={ARRAY_NAME}", "--homehost=any")
            self._do("mdadm", "--create", ARRAY, *options, f"--raid-devices={len(paths)}", *paths)
        self._do("udevadm", "settle", "--timeout=60")
        array = array_of(self._disks())
        if array is None:
            raise ScratchError(f"mdadm has made no array of {paths}")
        return array

    def _format(self, device: Device) -> None:
        count = len(self._disks())
        if self._filesystem == "xfs":
            geometry = ["-d", f"su={CHUNK_KIB}k,sw={count}"] if count > 1 else []
            self._do("mkfs.xfs", *geometry, device.path)
            return
        stride = CHUNK_KIB * 1024 // BLOCK_BYTES
        geometry = ["-E", f"stride={stride},stripe-width={stride * count}"] if count > 1 else []
        self._do("mkfs.ext4", "-q", "-m", "0", "-b", str(BLOCK_BYTES), *geometry, device.path)

    def _protect(self) -> None:
        """Make the bare folder one that nobody can write to; a mount on top of it is not affected."""
        self._do("mkdir", "--parents", self._folder)
        self._do("chattr", "+i", self._folder)
        if left := self._do("ls", "--almost-all", self._folder).split():
            node.log.warning("on the operating system's disk, under the mount, there are still: %s", ", ".join(left))

    def _real(self, path: str) -> str:
        return self._do("readlink", "--canonicalize", path).strip()

    def _do(self, *command: str) -> str:
        return done(self._run, *command)


def round_of(scratch: Scratch, own: node.Node) -> bool:
    """Bring disks and label together once; return whether the scratch space can be used.

    The label goes before anything is repaired, also when the repair fails.
    """
    try:
        mounted = scratch.is_mounted()
    except CommandError:
        _label(own, None)
        raise
    if not mounted:
        _label(own, None)
        scratch.mount()
        mounted = scratch.is_mounted()
    _label(own, READY if mounted else None)
    return mounted


def _label(own: node.Node, value: str | None) -> None:
    if own.labels().get(LABEL) != value:
        own.label({LABEL: value})


def clean(folders: Folders) -> None:
    """Remove the folders of pods that have ended. What stays takes room, and the space can be used all the same."""
    try:
        folders.clean()
    except OSError as error:
        node.log.warning("folders of pods that have ended may still be there: %s", error)


def main(folder: str, filesystem: str, model: str) -> None:
    """Keep the scratch space of this node mounted and free of what nobody uses, and its label true."""
    scratch, own = Scratch(on_the_node, folder, filesystem, model), node.Node.own()
    folders = Folders(on_the_node, folder, os.environ["POD_UID"])

    def work() -> bool:
        is_usable = round_of(scratch, own)
        if is_usable:
            clean(folders)
        return is_usable

    node.run(work, PERIOD_SECONDS, PORT)


if __name__ == "__main__":
    main(*sys.argv[1:])
