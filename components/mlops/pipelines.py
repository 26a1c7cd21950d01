"""Kubeflow Pipelines of the OSS MLOps platform, whose own release can no longer be installed.

The platform has 2.0.0-alpha.7, and its images are gone with their registry (kubeflow/pipelines, issue 12422). The
repair upstream (OSS-MLOPS-PLATFORM/oss-mlops-platform, issue 58, 295c746) puts those of Kubeflow 1.10 in their place.
Its main branch has them without the folders that .gitignore names, so that no whole Kubeflow renders there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FOLDER: Final = "applications/pipeline/upstream/"
"""Where Kubeflow's repository has the manifests of pipelines."""
_PLACE: Final = "deployment/kubeflow/manifests/apps/pipeline/upstream/"
"""Where the platform has its copy of them, which its overlays refer to."""


def replaced(platform: Mapping[str, bytes], kubeflow: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the platform's files with Kubeflow's pipelines in the place of its own."""
    others = {name: content for name, content in platform.items() if not name.startswith(_PLACE)}
    moved = {_PLACE + name.removeprefix(FOLDER): text for name, text in kubeflow.items() if name.startswith(FOLDER)}
    return {**others, **moved}
