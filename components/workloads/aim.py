"""Aim: shows the logs of training runs.

Source of port and path: edwardsp/ai-on-aks. There, Aim is started by hand in the training's first pod, and the logs are
lost with this pod. Here the logs are on a volume, and Aim has its own pod. It uses the training's image, because this
has the version of Aim that wrote the logs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.volumes import claim
from components.workloads.interface import USER, ViewerArgs, viewer
from components.workloads.metaseq import AIM_FOLDER

PORT: Final = 43800
_ROOT: Final = "/workspace"


@dataclass(frozen=True, kw_only=True)
class AimArgs:
    """The arguments of Aim.

    namespace: of the logs' PVC.
    logs: name of the PVC.
    image: has the `aim` command.
    user: UID in the pod. None if the cluster assigns UIDs to each namespace (OpenShift).
    """

    namespace: pulumi.Input[str]
    logs: pulumi.Input[str]
    image: pulumi.Input[str]
    nodes: NodeGroup = ANYWHERE
    user: int | None = USER


class Aim(pulumi.ComponentResource):
    """Run Aim's interface. It has no password, so only port-forwards reach it."""

    def __init__(self, name: str, args: AimArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:Aim", name, None, opts)
        for document in documents(name, args):
            Manifest(f"{name}/{document['kind']}", document, pulumi.ResourceOptions(parent=self))
        self.register_outputs({"port": PORT})


def documents(name: str, args: AimArgs) -> list[Document]:
    """Return Aim's objects. Aim creates a missing repository, so that it can start before the training."""
    script = f"""set -euo pipefail
mkdir -p {AIM_FOLDER}
[ -d {AIM_FOLDER}/.aim ] || aim init --repo {AIM_FOLDER} --skip-if-exists
exec aim up --repo {AIM_FOLDER} --host 0.0.0.0 --port {PORT}
"""
    return viewer(
        name,
        ViewerArgs(
            namespace=args.namespace,
            image=args.image,
            command=["/bin/bash", "-c", script],
            volumes=(claim("logs", args.logs, _ROOT),),
            port=PORT,
            nodes=args.nodes,
            user=args.user,
        ),
    )
