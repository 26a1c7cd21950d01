"""A VM for the programs of the first boot: its own root folder, a real disk image, and stand-ins for missing programs.

bash, the runner, coreutils, blkid, wipefs, mkfs.xfs, xfs_db, rsync and jq are real. `stand-in` simulates packages,
services, Docker, kind and the network. It keeps their state in files, so that it survives a boot, also an interrupted
one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local.debian import unpacked

STAND_IN = Path(__file__).with_name("stand-in")
PLAYED = (
    *(
        "apt-get",
        "apt-mark",
        "boot",
        "chown",
        "curl",
        "docker",
        "dpkg",
        "dpkg-query",
        "findmnt",
        "gpg",
        "ip",
        "iptables",
    ),
    *("kind", "kubectl", "lspci", "mkfs.xfs", "mount", "nvidia-ctk", "nvidia-smi", "runuser", "sleep", "sync"),
    *("sysctl", "systemctl", "usermod"),
)
DISK = 320 * 1024 * 1024
"""Bytes of the volume; mkfs.xfs takes no less than 300 MiB."""
SERIAL = "0b6cbd1b-1f3c-4d2a-9"
ENTER = r"""
mkdir -p "$ROOT"/{proc,dev,usr,run,opt/python,opt/debian,machine,volumes}
for name in bin sbin lib lib64; do [ ! -L /$name ] || [ -e "$ROOT/$name" ] || cp -a /$name "$ROOT/$name"; done
mount --bind /usr "$ROOT/usr"
mount --bind "$ROOT/usr-local" "$ROOT/usr/local"
mount --bind "$ROOT/keyrings" "$ROOT/usr/share/keyrings"
mount --bind "$PYTHON" "$ROOT/opt/python"
mount --bind "$DEBIAN" "$ROOT/opt/debian"
mount --rbind /proc "$ROOT/proc"
mount --bind "$ROOT/machine/boot_id" "$ROOT/proc/sys/kernel/random/boot_id"
mount -t tmpfs none "$ROOT/run"
mount -t tmpfs none "$ROOT/dev"
for name in null zero; do touch "$ROOT/dev/$name"; mount --bind /dev/$name "$ROOT/dev/$name"; done
ln -s /proc/self/fd "$ROOT/dev/fd"
mkdir -p "$ROOT/dev/disk/by-id"
[ ! -e "$ROOT/machine/disk" ] || ln -s "$(cat "$ROOT/machine/disk")" "$ROOT/dev/disk/by-id/virtio-$SERIAL"
export PATH=/stand-ins:/usr/local/bin:/opt/debian/sbin:/opt/debian/usr/sbin:/opt/debian/usr/bin:/usr/sbin:/usr/bin
export LD_LIBRARY_PATH=/opt/python/lib:/opt/debian/usr/lib/x86_64-linux-gnu REAL=/opt/debian HOME=/root
chroot "$ROOT" /bin/sh -c 'boot; /opt/python/bin/"$0" /usr/local/lib/mlbatch/first-boot/runner.py' "$INTERPRETER"
exit $?
"""


@dataclass
class Machine:
    """A VM with user data. folder: the files that it keeps. calls: of stand-ins since the last boot."""

    folder: Path
    calls: list[str] = field(default_factory=list)

    @classmethod
    def make(cls, folder: Path, user_data: str, *, gpu: bool, disk: bool = True) -> Machine:
        """Return a machine as cloud-init leaves it: with the files of the user data, and an empty disk."""
        machine = cls(folder)
        for name in ("etc/alternatives", "etc/systemd/system", "var/lib", "var/log", "var/tmp", "usr-local/bin", "tmp"):
            (folder / name).mkdir(parents=True)
        for name in ("keyrings", "machine", "media", "stand-ins", "volumes", "root", "home"):
            (folder / name).mkdir()
        shutil.copytree("/etc/alternatives", folder / "etc/alternatives", symlinks=True, dirs_exist_ok=True)
        owner = 1000 if os.geteuid() == 0 else 0
        (folder / "etc/passwd").write_text(
            f"root:x:0:0::/root:/bin/sh\nubuntu:x:{owner}:{owner}::/home/ubuntu:/bin/sh\n"
        )
        (folder / "etc/fstab").write_text("LABEL=cloudimg-rootfs / ext4 discard,errors=remount-ro 0 1\n")
        (folder / "etc/os-release").write_text('VERSION_ID="24.04"\nVERSION_CODENAME=noble\n')
        (folder / "machine/calls").write_text("0")
        (folder / "machine/boots").write_text("0")
        (folder / "machine/served").write_text("")
        for name in PLAYED:
            shutil.copy(STAND_IN, folder / "stand-ins" / name)
        if gpu:
            (folder / "machine/gpu").touch()
        if disk:
            (folder / "disk.img").touch()
            os.truncate(folder / "disk.img", DISK)
            (folder / "machine/disk").write_text("/disk.img")
        for file in yaml.safe_load(user_data)["write_files"]:
            target = machine.path(file["path"])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file["content"])
            target.chmod(int(file["permissions"], 8))
        machine.tell(PAUSE="0", VOLUME_SECONDS="0", API_SECONDS="0", KIND_SHA256=machine.digest("KIND_URL"))
        machine.serve_keys()
        return machine

    def path(self, name: str) -> Path:
        """Return where a file of the VM is."""
        place = name.replace("/usr/local", "/usr-local", 1) if name.startswith("/usr/local") else name
        return self.folder / place.lstrip("/")

    @property
    def plan(self) -> dict[str, Any]:
        return dict(json.loads(self.path("/etc/mlbatch/first-boot.json").read_text()))

    def tell(self, **variables: str) -> None:
        """Change the input of the steps."""
        plan = self.plan
        plan["environment"] |= variables
        self.path("/etc/mlbatch/first-boot.json").write_text(json.dumps(plan))

    def digest(self, address: str) -> str:
        """Return the digest of what `curl` gets at an address in the input of the steps."""
        return hashlib.sha256(f"bytes of {self.plan['environment'].get(address)}".encode()).hexdigest()

    def serve_keys(self) -> None:
        """Have the repositories' keys be those that are expected."""
        told = self.plan["environment"]
        pairs = [(told.get(f"{name}_KEY_URL"), told.get(f"{name}_KEY")) for name in ("DOCKER", "TOOLKIT", "CUDA")]
        self.serve({url: key for url, key in pairs if url})

    def serve(self, served: Mapping[str, str]) -> None:
        """Have an address answer with a text of one word."""
        with (self.folder / "machine/served").open("a") as file:
            file.writelines(f"{url} {text}\n" for url, text in served.items())

    def boot(self, cut: tuple[int | str, str] | None = None) -> bool:
        """Boot once; return whether the power was cut, as `cut` says: the call, and when."""
        machine = self.folder / "machine"
        (machine / "boots").write_text(str(int((machine / "boots").read_text()) + 1))
        (machine / "boot_id").write_text(f"boot {(machine / 'boots').read_text()}\n")
        for name in ("cut", "reboot", "log"):
            (machine / name).unlink(missing_ok=True)
        (machine / "calls").write_text("0")
        environment = {
            "ROOT": str(self.folder),
            "PYTHON": sys.base_prefix,
            "INTERPRETER": f"python{sys.version_info.major}.{sys.version_info.minor}",
            "DEBIAN": str(debian()),
            "SERIAL": SERIAL,
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            **({"CUT": str(cut[0]), "WHEN": cut[1]} if cut else {}),
        }
        ran = subprocess.run(
            [*namespace(), "bash", "-euc", ENTER], env=environment, capture_output=True, text=True, timeout=120
        )
        self.calls = (machine / "log").read_text().splitlines() if (machine / "log").exists() else []
        assert self.path("/var/log/mlbatch-first-boot.log").exists(), ran.stderr
        return (machine / "cut").exists()

    def up(self, boots: int = 2) -> dict[str, Any]:
        """Boot as long as the steps ask for another boot, so many times at most; return the marker."""
        for _ in range(boots):
            self.boot()
            if not (self.folder / "machine/reboot").exists():
                break
        return self.marker

    @property
    def disk(self) -> Path:
        """The image of the volume."""
        return self.folder / "disk.img"

    def take_volume(self, other: Machine) -> None:
        """Attach a copy of another VM's volume."""
        for name in ("disk.img", "volumes"):
            copy = ["cp", "--archive", "--sparse=always", "--no-target-directory"]
            subprocess.run([*copy, other.folder / name, self.folder / name], check=True)

    @property
    def marker(self) -> dict[str, Any]:
        return dict(json.loads(self.path("/var/lib/mlbatch/first-boot.json").read_text()))

    @property
    def log(self) -> str:
        return self.path("/var/log/mlbatch-first-boot.log").read_text()

    def kept(self) -> dict[str, str]:
        """Return the final content of the VM and its volume: files by path, without logs and intermediate results."""
        found = {}
        for top in ("etc", "var", "usr-local", "volumes", "keyrings"):
            for file in sorted((self.folder / top).rglob("*")):
                name = str(file.relative_to(self.folder))
                if file.is_file() and not file.is_symlink() and not re.search(r"var/log|\.boot-id|alternatives", name):
                    found[_without_uuid(name)] = _without_boot(_without_uuid(file.read_text()))
        return found


def _without_uuid(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", text)


def _without_boot(text: str) -> str:
    return re.sub(r'"boot": "boot \d+"', '"boot": "BOOT"', text)


@cache
def debian() -> Path:
    """Return the folder with what this machine may lack."""
    return unpacked("rsync", "shellcheck", "xfsprogs")


def namespace() -> list[str]:
    """Return the command that runs another with its own mounts and processes. Skips the test if that is not allowed."""
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    command += [] if os.geteuid() == 0 else ["--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        pytest.skip("a machine of its own needs namespaces, and this one lets nobody make them (`unshare`)")
    return command
