"""Debian's packages, unpacked into the cache of built tools without installation."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import pytest

from emulator.paths import Paths

NO_SKIPS: Final = "MLBATCH_NO_SKIPS"
"""Variable that makes a test fail instead of being skipped on a machine without its requirements, as in CI."""


def unpacked(*packages: str) -> Path:
    """Return a folder with the packages and those of their dependencies that this machine lacks.

    Ends the test if the machine cannot unpack Debian packages, or no mirror responds or has them. Other errors are
    raised.
    """
    lacking = [program for program in ("apt-get", "dpkg-deb") if shutil.which(program) is None]
    if lacking:
        lacks(f"the packages are Debian's, and this machine has no {' and no '.join(lacking)}")
    cache = Paths.of().cache / "debian"
    (cache / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    folder = _folder(cache, missing(packages, cache))
    if not folder.exists():
        updated = apt("update", "--quiet", "--error-on=any", cache=cache, check=False)
        if updated.returncode != 0:
            lacks(f"no mirror of Debian's packages answers `apt-get update`: {updated.stderr.strip()[-300:]}")
        wanted = missing(packages, cache)
        if not wanted:
            lacks(f"this machine's mirrors of packages have no {' or no '.join(packages)}")
        folder = _folder(cache, wanted)
        _download(wanted, cache, folder)
    return folder


def lacks(reason: str) -> NoReturn:
    """End a test that cannot run on this machine: skip it, or fail if the environment forbids skips."""
    if os.environ.get(NO_SKIPS):
        pytest.fail(f"{reason} ({NO_SKIPS} is set)")
    pytest.skip(reason)


def _folder(cache: Path, wanted: Sequence[str]) -> Path:
    return cache / hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:16]


def _download(wanted: Sequence[str], cache: Path, folder: Path) -> None:
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    apt("download", *wanted, cache=cache, folder=part)
    for package in sorted(part.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, part], check=True)
        package.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def missing(packages: Sequence[str], cache: Path) -> list[str]:
    """Return what to download, as `name=version`: these packages even if installed, and missing dependencies.

    Empty if the package list is missing, or lacks one of the packages.
    """
    install = ("install", "--simulate", "--reinstall", "--no-install-recommends", *packages)
    lines = [line.split() for line in apt(*install, cache=cache, check=False).stdout.splitlines()]
    found = [words for words in lines if words[:1] == ["Inst"]]
    return sorted(f"{words[1]}={next(word for word in words[2:] if word.startswith('('))[1:]}" for words in found)


def apt(*words: str, cache: Path, folder: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run apt-get with separate package lists, so that the machine's stay unchanged."""
    command = ["apt-get", "-o", f"Dir::State::lists={cache / 'lists'}", "-o", "APT::Sandbox::User=root", *words]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert not check or ran.returncode == 0, f"`{' '.join(command)}` ended with {ran.returncode}: {ran.stderr}"
    return ran
