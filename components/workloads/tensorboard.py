"""TensorBoard: shows the logs of training runs.

Source of the port: edwardsp/ai-on-aks, which starts it by hand in the training's first pod. Here the logs are on a
volume, and TensorBoard has its own pod. It serves the folder with all runs, because metaseq creates a folder for each
run.
"""

from __future__ import annotations

from typing import Final

import pulumi

from components.kubernetes.manifests import Document, register_all
from components.workloads.interface import LogViewerArgs, log_viewer
from components.workloads.metaseq import TENSORBOARD_FOLDER

PORT: Final = 6018


class TensorBoard(pulumi.ComponentResource):
    """Run TensorBoard. It has no password, so only port-forwards reach it."""

    def __init__(self, name: str, args: LogViewerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:TensorBoard", name, None, opts)
        register_all(name, documents(name, args), pulumi.ResourceOptions(parent=self))
        self.register_outputs({"port": PORT})


def documents(name: str, args: LogViewerArgs) -> list[Document]:
    """Return TensorBoard's objects. The logs are read-only."""
    command = ["tensorboard", "serve", f"--logdir={TENSORBOARD_FOLDER}", "--bind_all", f"--port={PORT}"]
    return log_viewer(name, args, command, PORT, read_only=True)
