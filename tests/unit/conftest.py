"""What the unit tests of the program share. No engine, no cluster, no network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from components import catalogue
from components.artefacts import Mirror, Release

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def mirror() -> Mirror:
    """The mirror with upstream's real files: $MLBATCH_MIRROR, else the one that `make mirror` fills."""
    folder = Path(os.environ.get("MLBATCH_MIRROR") or ROOT / ".local" / "dev" / "mirror")
    lacking = [artefact.file for artefact in catalogue.ARTEFACTS if not (folder / artefact.file).is_file()]
    if lacking:
        pytest.fail(
            f"{folder} lacks {lacking}: fill it with `make mirror`, or set MLBATCH_MIRROR to a folder that has them"
        )
    return Mirror(artefacts=str(folder))


@pytest.fixture(scope="session")
def kueue_release(mirror: Mirror) -> Release:
    return mirror.release(catalogue.find(catalogue.KUEUE, catalogue.versions(catalogue.KUEUE)[0]))


@pytest.fixture(scope="session")
def appwrapper_release(mirror: Mirror) -> Release:
    return mirror.release(catalogue.find(catalogue.APPWRAPPER, catalogue.versions(catalogue.APPWRAPPER)[0]))


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """A kubeconfig whose cluster nobody asks."""
    file = tmp_path / "kubeconfig"
    file.write_text(
        """
apiVersion: v1
kind: Config
current-context: lab
contexts:
- {name: lab, context: {cluster: lab-cluster, user: admin}}
- {name: other, context: {cluster: lab-cluster, user: admin}}
clusters:
- {name: lab-cluster, cluster: {server: "https://127.0.0.1:6443"}}
users:
- {name: admin, user: {token: correct-horse-battery}}
"""
    )
    return file
