"""Installs OpenStack's packages and databases into the user's cache, once for all environments."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from emulator.openstack.deployment import DATABASES_LINK, PACKAGES_LINK
from emulator.openstack.errors import OpenStackError
from emulator.openstack.folder import Folder
from emulator.paths import Paths
from emulator.progress import Progress
from runner.files import link_to, locked, private_folder, replacing

_HERE: Final = Path(__file__).resolve().parent
_UV: Final = Path(sys.executable).with_name("uv")
_REQUIREMENTS: Final = _HERE.parent / "tools" / "openstack" / "requirements.txt"
_MAKES_DATABASES: Final = ("facts.yaml", "seed.py", "databases.py", "configuration.py", "inside/create.py")

PACKAGES: Final = "installing OpenStack's packages (once; kept in the cache)"
DATABASES: Final = "creating OpenStack's databases (once; kept in the cache)"


class Installation:
    """OpenStack in the cache: its own Python environment, and the databases that environments copy.

    `paths.bin` gets a link to each, with the names in `emulator.openstack.deployment`.
    """

    def __init__(self, paths: Paths) -> None:
        interpreter = f"{sys.base_prefix} {sys.version}".encode()  # the same for all checkouts
        packages = _digest(interpreter, _REQUIREMENTS.read_bytes())
        made = [(_HERE / name).read_bytes() for name in _MAKES_DATABASES]
        templates = [file.read_bytes() for file in sorted((_HERE / "templates").iterdir())]
        self._bin = paths.bin
        self._folder = paths.cache / "tools" / f"openstack-{packages}"
        self._packages = self._folder / "packages"
        self._whole = self._folder / "packages-are-whole"
        self._databases = self._folder / f"databases-{_digest(*made, *templates)}"

    def missing(self) -> list[str]:
        """Return the steps that `install` takes."""
        steps = ((PACKAGES, self._whole), (DATABASES, self._databases))
        return [step for step, result in steps if not result.exists()]

    def install(self, progress: Progress) -> None:
        """Install what is missing, with one progress step each.

        Raises OpenStackError if packages cannot be downloaded or a service fails.
        """
        missing = self.missing()
        private_folder(self._folder)
        with locked(self._folder / ".lock"):
            if PACKAGES in missing:
                with progress.further_step(PACKAGES):
                    self._install_packages()
            if DATABASES in missing:
                with progress.further_step(DATABASES):
                    self._make_databases()
        for name, target in ((PACKAGES_LINK, self._packages), (DATABASES_LINK, self._databases)):
            link_to(self._bin / name, target)

    def _install_packages(self) -> None:
        if self._whole.exists():
            return
        # A Python environment contains its path, so it cannot be moved when it is complete.
        shutil.rmtree(self._packages, ignore_errors=True)
        _uv("venv", "--python", sys.executable, self._packages)
        options = ("--require-hashes", "--no-deps", "--compile-bytecode", "--python", self._packages / "bin" / "python")
        _uv("pip", "install", *options, "--requirements", _REQUIREMENTS)
        _register(self._packages)
        self._whole.touch()

    def _make_databases(self) -> None:
        if self._databases.exists():
            return
        from emulator.openstack import databases  # slow to import and needed only here

        with replacing(self._databases) as unfinished:
            databases.make(unfinished, self._packages / "bin" / "python")
            Folder(unfinished).packages_file.write_text(self._folder.name)


def _register(environment: Path) -> None:
    """Register Neutron's driver for port bindings with its packages, which find it only by entry point."""
    site = next((environment / "lib").glob("python*/site-packages"))
    folder = site / "mlbatch_openstack-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mlbatch-openstack\nVersion: 1\n")
    driver = "everywhere = emulator.openstack.inside.networking:Everywhere"
    (folder / "entry_points.txt").write_text(f"[neutron.ml2.mechanism_drivers]\n{driver}\n")


def _uv(*arguments: object) -> None:
    command = [str(_UV), *map(str, arguments), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        tail = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise OpenStackError(
            f"`uv {' '.join(map(str, arguments[:2]))}` failed:\n{tail}\n"
            "Check that the package index can be reached and run the command again."
        )


def _digest(*contents: bytes) -> str:
    digest = hashlib.sha256()
    for content in contents:
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:16]
