"""Render kustomizations of a repository's archive to manifests, before any resource is registered."""

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_COMMANDS: Final[tuple[tuple[str, ...], ...]] = (("kustomize", "build"), ("kubectl", "kustomize"))
_SECONDS: Final = 300


class KustomizeError(RuntimeError):
    """A kustomization cannot be rendered. The message has the reason and the fix."""


def unpacked(archive: bytes) -> Mapping[str, bytes]:
    """Return the files of a repository's archive by path, below its single top folder.

    Raises KustomizeError if the bytes are not such an archive.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            return {
                member.name.partition("/")[2]: content.read()
                for member in tar
                if member.isfile() and (content := tar.extractfile(member)) is not None
            }
    except (tarfile.TarError, OSError, EOFError) as error:
        raise KustomizeError(f"this is no archive of a repository (tar.gz): {error}") from error


def digest(files: Mapping[str, bytes]) -> str:
    """Return the digest of files and their names in the format of Go's modules. The packing does not matter.

    Source: golang.org/x/mod/sumdb/dirhash, Hash1.
    """
    lines = (f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return "h1:" + base64.b64encode(hashlib.sha256("".join(lines).encode()).digest()).decode()


def render(files: Mapping[str, bytes], folder: str) -> str:
    """Return the manifests that a folder's kustomization renders.

    Runs kustomize 5, standalone or in kubectl 1.27 or later. Raises KustomizeError if neither exists, if the folder
    does not exist, or with kustomize's error if it fails.
    """
    if f"{folder}/kustomization.yaml" not in files:
        raise KustomizeError(f"there is no {folder}/kustomization.yaml")
    command = next((each for each in _COMMANDS if shutil.which(each[0]) is not None), None)
    if command is None:
        raise KustomizeError(
            "neither kustomize nor kubectl is installed: install kustomize 5, or kubectl 1.27 or later"
        )
    with TemporaryDirectory(prefix="kustomize-") as temporary:
        root = Path(temporary).resolve()
        for name, content in files.items():
            file = root / name
            if not file.resolve().is_relative_to(root):
                raise KustomizeError(f"the archive has a file outside of its folder: {name}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return _run([*command, str(root / folder)])


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KustomizeError(f"`{' '.join(command[:-1])}` cannot be run: {error}") from error
    if done.returncode != 0:
        raise KustomizeError(f"`{' '.join(command[:-1])}` failed: {done.stderr.strip()[-2000:]}")
    return done.stdout
