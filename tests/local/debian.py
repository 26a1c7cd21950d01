"""Debian's packages, unpacked into the cache of built tools: nothing is installed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from emulator.paths import Paths


def unpacked(*packages: str) -> Path:
    """Return a folder that has the packages, and what of theirs this machine lacks; skip the test where none come."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("this machine takes no Debian packages")
    cache = Paths.of().cache / "debian"
    wanted = missing(packages, cache)
    folder = cache / hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:16]
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        apt("download", *wanted, cache=cache, folder=part)
        for package in sorted(part.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, part], check=True)
            package.unlink()
        part.rename(folder)
    return folder


def missing(packages: Sequence[str], cache: Path) -> list[str]:
    """Return what is to be fetched, as `name=version`, installed or not for the packages themselves."""
    (cache / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    install = ("install", "--simulate", "--reinstall", "--no-install-recommends", *packages)
    tried = apt(*install, cache=cache, check=False)
    if tried.returncode != 0:
        apt("update", "--quiet", cache=cache)
        tried = apt(*install, cache=cache)
    lines = [line.split() for line in tried.stdout.splitlines() if line.startswith("Inst ")]
    return sorted(f"{words[1]}={next(word for word in words[2:] if word.startswith('('))[1:]}" for words in lines)


def apt(*words: str, cache: Path, folder: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run apt-get with lists of its own, so that the machine's stay as they are; skip the test when it fails."""
    command = ["apt-get", "-o", f"Dir::State::lists={cache / 'lists'}", "-o", "APT::Sandbox::User=root", *words]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if check and ran.returncode != 0:
        pytest.skip(f"no Debian packages: {ran.stderr.strip()[-300:]}")
    return ran
