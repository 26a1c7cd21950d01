"""Kubeflow Pipelines for the OSS MLOps platform, whose own release can no longer be installed.

The platform has 2.0.0-alpha.7, whose images were deleted with their registry (kubeflow/pipelines, issue 12422).
Upstream's fix (OSS-MLOPS-PLATFORM/oss-mlops-platform, issue 58, 295c746) replaces them with those of Kubeflow 1.10. Its
main branch lacks the folders that .gitignore names, so that a complete Kubeflow cannot be rendered.
"""

from collections.abc import Mapping
from typing import Final

FOLDER: Final = "applications/pipeline/upstream/"
"""Path of the manifests of pipelines in Kubeflow's repository."""
_PLACE: Final = "deployment/kubeflow/manifests/apps/pipeline/upstream/"
"""Path of the platform's copy of them, which its overlays refer to."""


def replaced(platform: Mapping[str, bytes], kubeflow: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the platform's files with Kubeflow's pipelines."""
    others = {name: content for name, content in platform.items() if not name.startswith(_PLACE)}
    moved = {_PLACE + name.removeprefix(FOLDER): text for name, text in kubeflow.items() if name.startswith(FOLDER)}
    return {**others, **moved}
