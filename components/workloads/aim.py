"""Aim: shows the logs of training runs.

Source of port and path: edwardsp/ai-on-aks. There, Aim is started by hand in the training's first pod, and the logs are
lost with this pod. Here the logs are on a volume, and Aim has its own pod. It uses the training's image, because this
has the version of Aim that wrote the logs.
"""

from __future__ import annotations

from typing import Final

import pulumi

from components.kubernetes.manifests import Document, register_all
from components.workloads.interface import LogViewerArgs, log_viewer
from components.workloads.metaseq import AIM_FOLDER

PORT: Final = 43800


class Aim(pulumi.ComponentResource):
    """Run Aim's interface. It has no password, so only port-forwards reach it."""

    def __init__(self, name: str, args: LogViewerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:Aim", name, None, opts)
        register_all(name, documents(name, args), pulumi.ResourceOptions(parent=self))
        self.register_outputs({"port": PORT})


def documents(name: str, args: LogViewerArgs) -> list[Document]:
    """Return Aim's objects. Aim creates a missing repository, so that it can start before the training."""
    script = f"""set -euo pipefail
mkdir -p {AIM_FOLDER}
[ -d {AIM_FOLDER}/.aim ] || aim init --repo {AIM_FOLDER} --skip-if-exists
exec aim up --repo {AIM_FOLDER} --host 0.0.0.0 --port {PORT}
"""
    return log_viewer(name, args, ["/bin/bash", "-c", script], PORT, read_only=False)
