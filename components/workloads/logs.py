"""The logs of training runs: their volume, and Aim and TensorBoard, which show them.

Source of ports and paths: edwardsp/ai-on-aks. There, both are started by hand in the training's first pod, and the logs
are lost with this pod. Here the logs are on a volume, and each interface has its own pod. Aim uses the training's
image, because this has the version of Aim that wrote the logs. TensorBoard serves the folder with all runs, because
metaseq creates a folder for each run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes.manifests import Document, Manifest, register_all
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.resources import Resources
from components.kubernetes.security import UNPRIVILEGED
from components.kubernetes.volumes import claim, volumes
from components.workloads.interface import USER, Reach, Storage, one_replica, service
from components.workloads.metaseq import AIM_FOLDER, TENSORBOARD_FOLDER
from components.workloads.pods import WORKLOAD_LABEL

AIM_PORT: Final = 43800
TENSORBOARD_PORT: Final = 6018
RESOURCES: Final = Resources(cpu_request="250m", memory_request="3Gi", cpu_limit="2", memory_limit="4Gi")


@dataclass(frozen=True, kw_only=True)
class LogVolumeArgs:
    """A volume that many pods write logs to. namespace: of the pods."""

    namespace: pulumi.Input[str]
    storage: Storage


class LogVolume(pulumi.ComponentResource):
    """Create the PVC for logs. Training jobs write them, and viewers read them."""

    name: pulumi.Output[str]

    def __init__(self, name: str, args: LogVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:LogVolume", name, None, opts)
        document = args.storage.claim(name, args.namespace)
        self.name = Manifest(name, document, pulumi.ResourceOptions(parent=self)).object_name
        self.register_outputs({"name": self.name})


@dataclass(frozen=True, kw_only=True)
class LogViewerArgs:
    """The arguments of an interface that shows the logs.

    namespace: of the logs' PVC.
    logs: name of the PVC.
    image: has the interface's command.
    user: UID in the pod. None if the cluster assigns UIDs to each namespace (OpenShift).
    """

    namespace: pulumi.Input[str]
    logs: pulumi.Input[str]
    image: pulumi.Input[str]
    nodes: NodeGroup = ANYWHERE
    user: int | None = USER


class Aim(pulumi.ComponentResource):
    """Run Aim's interface. It has no password, so only port-forwards reach it."""

    def __init__(self, name: str, args: LogViewerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:Aim", name, None, opts)
        register_all(name, aim(name, args), pulumi.ResourceOptions(parent=self))
        self.register_outputs({"port": AIM_PORT})


class TensorBoard(pulumi.ComponentResource):
    """Run TensorBoard. It has no password, so only port-forwards reach it."""

    def __init__(self, name: str, args: LogViewerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:TensorBoard", name, None, opts)
        register_all(name, tensorboard(name, args), pulumi.ResourceOptions(parent=self))
        self.register_outputs({"port": TENSORBOARD_PORT})


def aim(name: str, args: LogViewerArgs) -> list[Document]:
    """Return Aim's objects. Aim creates a missing repository, so that it can start before the training."""
    script = f"""set -euo pipefail
mkdir -p {AIM_FOLDER}
[ -d {AIM_FOLDER}/.aim ] || aim init --repo {AIM_FOLDER} --skip-if-exists
exec aim up --repo {AIM_FOLDER} --host 0.0.0.0 --port {AIM_PORT}
"""
    return _viewer(name, args, ["/bin/bash", "-c", script], AIM_PORT, read_only=False)


def tensorboard(name: str, args: LogViewerArgs) -> list[Document]:
    """Return TensorBoard's objects. The logs are read-only."""
    command = ["tensorboard", "serve", f"--logdir={TENSORBOARD_FOLDER}", "--bind_all", f"--port={TENSORBOARD_PORT}"]
    return _viewer(name, args, command, TENSORBOARD_PORT, read_only=True)


def _viewer(name: str, args: LogViewerArgs, command: Sequence[str], port: int, *, read_only: bool) -> list[Document]:
    """Return an interface's Deployment and Service. read_only: of the logs."""
    logs = claim("logs", args.logs, "/workspace", read_only=read_only)
    container: Document = {
        "name": name,
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108 - of the container alone
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 10},
        "resources": RESOURCES.body(),
        "securityContext": dict(UNPRIVILEGED),
        "volumeMounts": [logs.mount()],
    }
    server = one_replica(
        name, args.namespace, container, volumes([logs]), label=WORKLOAD_LABEL, nodes=args.nodes, user=args.user
    )
    return [server, service(name, args.namespace, port=port, target=port, reach=Reach())]
