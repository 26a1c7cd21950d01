"""Aim: shows what training runs have logged.

Source of port and path: edwardsp/ai-on-aks, which starts it by hand in the training's first pod, whose end takes the
logs along. Here the logs are on a volume, and Aim runs beside it. The image is the training's own, which has the
version of Aim that wrote the logs.
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
    """namespace: of the logs' claim. logs: the claim's name. image: has the `aim` command.

    nodes: for services. user: its number in the pod; None where the cluster gives each namespace its own (OpenShift).
    """

    namespace: pulumi.Input[str]
    logs: pulumi.Input[str]
    image: pulumi.Input[str]
    nodes: NodeGroup = ANYWHERE
    user: int | None = USER


class Aim(pulumi.ComponentResource):
    """Run Aim's interface, which asks for no password: only port-forwards of those who may make them reach it."""

    def __init__(self, name: str, args: AimArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:Aim", name, None, opts)
        for document in documents(name, args):
            Manifest(f"{name}/{document['kind']}", document, pulumi.ResourceOptions(parent=self))
        self.register_outputs({"port": PORT})


def documents(name: str, args: AimArgs) -> list[Document]:
    """Return Aim's objects. The repository is made where none is yet, so that Aim can start before the training."""
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
