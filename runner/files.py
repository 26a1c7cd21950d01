"""Files and folders that only their owner can read, and changes in one step."""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

UMASK: Final = 0o077
"""The umask for processes that write into such folders."""


def private_folder(folder: Path) -> Path:
    """Create a folder of mode 0700 and its missing parents. Return it. An existing folder gets the mode."""
    for each in reversed([folder, *folder.parents]):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    return folder


def link_to(link: Path, target: Path) -> None:
    """Create a symbolic link, or replace it in one step if it has another target."""
    if link.is_symlink() and link.readlink() == target:
        return
    made = link.with_name(f"..{link.name}_{os.getpid()}")
    made.unlink(missing_ok=True)
    made.symlink_to(target)
    os.replace(made, link)


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a path for a new file or folder, which replaces the target in one step at the end of the context."""
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # from a killed process
    yield unfinished
    os.replace(unfinished, target)


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock of a file, which is created, for the length of the context. Wait for processes that hold it."""
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_full(error: OSError) -> bool:
    """Return whether an error means that the disk, or the user's quota, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def write_private(file: Path, text: str) -> None:
    """Write a file of mode 0600 in one step, so that a reader never sees a part of it.

    Raises OSError if the disk is full. The file is then unchanged, and no temporary file remains.
    """
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as stream:
        try:
            stream.write(text)
            stream.flush()
        except OSError:
            os.unlink(stream.name)
            raise
    os.replace(stream.name, file)
