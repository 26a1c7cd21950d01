"""Files and folders that only their owner can read, and changes in one step."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Final

UMASK: Final = 0o077
"""For processes that write into such folders."""


def private_folder(folder: Path) -> Path:
    """Make a folder of mode 0700, with what is missing above it; return it. One that is there gets the mode."""
    for each in reversed([folder, *folder.parents]):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    return folder


def link_to(link: Path, target: Path) -> None:
    """Make a symbolic link, or change it in one step if it has another target."""
    if link.is_symlink() and link.readlink() == target:
        return
    made = link.with_name(f"..{link.name}_{os.getpid()}")
    made.unlink(missing_ok=True)
    made.symlink_to(target)
    os.replace(made, link)


def is_full(error: OSError) -> bool:
    """Return whether an error says that the disk is full, or the user's share of it."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def write_private(file: Path, text: str) -> None:
    """Write a file of mode 0600 in one step, so that a reader never sees half of it.

    Raises OSError where the disk is full; the file is as it was then, and nothing lies beside it.
    """
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as stream:
        try:
            stream.write(text)
            stream.flush()
        except OSError:
            os.unlink(stream.name)
            raise
    os.replace(stream.name, file)
