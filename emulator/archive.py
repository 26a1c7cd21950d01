"""The built tools as one archive of a release, so that `make up` does not build them.

`emulator/tools/archive.yaml` pins the archive of each platform: its address, the SHA-256 of the tar inside the gzip
file (gzip's own bytes depend on its version), and the folders of tools in it. A folder's name contains the pins of its
module, so an archive with other pins is not used.
"""

import gzip
import hashlib
import http.client
import os
import platform
import shutil
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from runner.files import is_full

_SILENCE_SECONDS: Final = 10
_BLOCK: Final = 1 << 20
_LEVEL: Final = 6
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


class ArchiveError(Exception):
    """The archive cannot be used; the message gives the reason."""


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A pinned archive. sha256: of the tar. folders: the folders of tools in it, one for each module."""

    url: str
    sha256: str
    folders: tuple[str, ...]

    def take(self, tools: Path) -> None:
        """Put the tools into their folders below `tools`; existing ones stay.

        Raises ArchiveError, and writes no tool, if the archive cannot be reached or has another digest.
        """
        tools.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=tools, prefix="archive-") as folder:
            file, content = Path(folder) / "archive.tar.gz", Path(folder) / "content"
            try:
                request = urllib.request.urlopen(self.url, timeout=_SILENCE_SECONDS)  # noqa: S310 (the content is pinned)
                with request as answer, file.open("wb") as target:
                    shutil.copyfileobj(answer, target, _BLOCK)
                found = _digest(file)
            except (OSError, EOFError, ValueError, zlib.error, http.client.HTTPException) as error:
                if isinstance(error, OSError) and is_full(error):
                    raise  # a build needs even more space
                raise ArchiveError(f"{self.url} cannot be downloaded: {error}") from None
            if found != self.sha256:
                raise ArchiveError(f"{self.url} differs from its pin: its tar has the SHA-256 {found}")
            with tarfile.open(file) as packed:
                packed.extractall(content, filter="data")
            for name in self.folders:
                (tools / name).mkdir(exist_ok=True)
                for tool in (content / name).iterdir():
                    if not (tools / name / tool.name).exists():
                        os.replace(tool, tools / name / tool.name)


def here() -> str:
    """Return the platform in Go's notation, such as `linux-amd64`."""
    machine = platform.machine()
    return f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"


def pinned(file: Path) -> Archive | None:
    """Return the archive that a file pins for this platform, or None."""
    found = ((yaml.safe_load(file.read_text()) or {}) if file.exists() else {}).get(here())
    return Archive(url=found["url"], sha256=found["sha256"], folders=tuple(found["folders"])) if found else None


def pack(tools: Iterable[Path], file: Path) -> str:
    """Write built tools, `<cache>/tools/<folder>/<name>`, into an archive and return the SHA-256 of its tar.

    The same tools give the same tar: times and owners are left out.
    """
    with gzip.GzipFile(file, "wb", compresslevel=_LEVEL, mtime=0) as zipped, tarfile.open(None, "w", zipped) as packed:
        for tool in sorted(tools):
            entry = packed.gettarinfo(tool, f"{tool.parent.name}/{tool.name}")
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname, entry.mode = 0, 0, 0, "", "", 0o755
            with tool.open("rb") as content:
                packed.addfile(entry, content)
    return _digest(file)


def _digest(file: Path) -> str:
    with gzip.open(file) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
