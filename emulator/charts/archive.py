"""Chart archives. Equal files give equal bytes."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

Files = Mapping[str, bytes]

# Not needed for rendering; most charts list them in .helmignore too.
_NOT_PACKED = frozenset({"ci", "unittests", "hack", ".helmignore"})


def folder(root: Path, prefix: str = "") -> dict[str, bytes]:
    """Return the files of a chart's folder by path, with `prefix` before each path."""
    found = {}
    for file in sorted(root.rglob("*")):
        parts = file.relative_to(root).parts
        if file.is_file() and not _NOT_PACKED.intersection(parts):
            found[prefix + "/".join(parts)] = file.read_bytes()
    return found


def pack(name: str, files: Files) -> bytes:
    """Return the archive of a chart with this name."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(files):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(files[path])
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(files[path]))
    return gzip.compress(content.getvalue(), compresslevel=6, mtime=0)


def unpack(archive: Path) -> dict[str, bytes]:
    """Return the files of an archive. Raises OSError or tarfile.TarError if it is not an archive."""
    found = {}
    with tarfile.open(archive, mode="r:gz") as tar:
        for entry in tar:
            stream = tar.extractfile(entry) if entry.isfile() else None
            if stream is not None:
                found[entry.name.partition("/")[2]] = stream.read()
    return found
