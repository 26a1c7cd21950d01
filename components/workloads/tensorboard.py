"""TensorBoard: shows the logs of training runs.

Source of the port: edwardsp/ai-on-aks, which starts it by hand in the training's first pod. Here the logs are on a
volume, and TensorBoard has its own pod. It serves the folder with all runs, because metaseq creates a folder for each
run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.volumes import claim
from components.workloads.interface import USER, ViewerArgs, viewer
from components.workloads.metaseq import TENSORBOARD_FOLDER

PORT: Final = 6018
_ROOT: Final = "/workspace"


@dataclass(frozen=True, kw_only=True)
class TensorBoardArgs:
    """The arguments of TensorBoard.

    namespace: of the logs' PVC.
    logs: name of the PVC.
    image: has the `tensorboard` command.
    user: UID in the pod. None if the cluster assigns UIDs to each namespace (OpenShift).
    """

    namespace: pulumi.Input[str]
    logs: pulumi.Input[str]
    image: pulumi.Input[str]
    nodes: NodeGroup = ANYWHERE
    user: int | None = USER


class TensorBoard(pulumi.ComponentResource):
    """Run TensorBoard. It has no password, so only port-forwards reach it."""

    def __init__(self, name: str, args: TensorBoardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:TensorBoard", name, None, opts)
        for document in documents(name, args):
            Manifest(f"{name}/{document['kind']}", document, pulumi.ResourceOptions(parent=self))
        self.register_outputs({"port": PORT})


def documents(name: str, args: TensorBoardArgs) -> list[Document]:
    """Return TensorBoard's objects. The logs are read-only."""
    return viewer(
        name,
        ViewerArgs(
            namespace=args.namespace,
            image=args.image,
            command=["tensorboard", "serve", f"--logdir={TENSORBOARD_FOLDER}", "--bind_all", f"--port={PORT}"],
            volumes=(claim("logs", args.logs, _ROOT, read_only=True),),
            port=PORT,
            nodes=args.nodes,
            user=args.user,
        ),
    )
