"""One file system of a node's local disks, mounted: what is not there is made, and what somebody else made stays.

Several disks become one RAID 0. Not mounted: bring back the array that is there, or make one of blank disks, then the
file system, then mount. What is on a disk and was not put there by this program stays as it is, and is an error.

After a reboot the mount is gone while its folder is still there, on the disk of the operating system. A job that starts
before this program is kept from filling that disk: the folder is immutable while nothing is mounted on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from components.nodes.agents import node
from components.nodes.agents.commands import Run, done
from components.nodes.agents.local_disks import COLUMNS, Device, ScratchError, array_of, local_disks

ARRAY = "/dev/md/mlbatch-scratch"
ARRAY_NAME = "mlbatch-scratch"
CHUNK_KIB = 512
BLOCK_BYTES = 4096
_MEMBER = "linux_raid_member"


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
        self._do("mount", "--options", "nodev,nosuid,noatime,discard", device.path, self._folder)
        self._do("chmod", "1777", self._folder)

    def _disks(self) -> list[Device]:
        disks = local_disks(self._do("lsblk", "--json", "--output", COLUMNS), self._model)
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
