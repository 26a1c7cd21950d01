"""The controller that takes nodes with broken GPUs out of service (docs/decisions, an-own-repair-of-nodes)."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.health.repair_state import KEY, Signal
from components.health.reporter import NCCL_GATE
from components.kubernetes import own_node
from components.kubernetes.controller import ONE_REPLICA, Controller, ControllerPods
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.own_node import OwnNodeAccount
from components.kubernetes.program_job import RESOURCES
from components.kubernetes.programs import API_CLIENT, FILES_FOLDER, Program
from components.kubernetes.rbac import rule
from components.tables import Table

CONTROLLER: Final = "repair-controller"
"""Name of all objects of the controller, including its service account."""
LABELS: Final = {"app.kubernetes.io/name": CONTROLLER}
"""Labels of the controller's pods."""
POLICY: Final = "mlbatch-repair-controller"
"""Name of the admission policy and of the cluster-scoped permissions."""
ROUND_SECONDS: Final = 20
_SETTINGS: Final = "settings.json"


class _Signals(Table):
    signals: tuple[Signal, ...]


SIGNALS: Final = _Signals.load("components.health.signals").signals
"""The signals of broken GPUs and links."""


@dataclass(frozen=True, kw_only=True)
class RepairControllerArgs:
    """The arguments of the controller.

    image: an image with Python 3.11 or later. The controller needs no packages.
    most_percent: of the GPU nodes that may be out of service at once. One node always may.
    prometheus: its address, for alerts. None for node conditions only.
    held: an admission policy restricts the controller to its taint and its annotation. False if the cluster has no such
    policies.
    """

    image: str
    most_percent: int = 25
    prometheus: str | None = None
    gpu_resource: str = names.GPU
    held: bool = True
    pods: ControllerPods = ONE_REPLICA


class RepairController(pulumi.ComponentResource):
    """Run the controller in mlbatch-system, which must exist. It reads nodes, and writes one taint and one annotation.

    It has one replica. While that moves to another node, no node goes out of service.
    """

    def __init__(self, name: str, args: RepairControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:health:RepairController", name, None, opts)
        rights = own_node.register(account(args.held), name, self)
        code = program(args)
        config = code.config_map(CONTROLLER, names.SYSTEM_NAMESPACE, LABELS)
        files = Manifest(f"{name}/ConfigMap", config, pulumi.ResourceOptions(parent=self))
        after = pulumi.ResourceOptions(parent=self, depends_on=[*rights, files])
        Manifest(f"{name}/Deployment", _deployment(args, code), after)
        self.register_outputs({})


def account(held: bool = True) -> OwnNodeAccount:
    """Return the service account. It may change its own taint and annotation only, on every node."""
    return OwnNodeAccount(
        name=CONTROLLER,
        namespace=names.SYSTEM_NAMESPACE,
        cluster_name=POLICY,
        who="the repair controller",
        labels=(),
        annotations=[KEY],
        taints=[KEY],
        reads=[rule("", ["nodes"], ["list"])],
        held=held,
        every_node=True,
    )


def program(args: RepairControllerArgs) -> Program:
    """Return the controller's program with its settings."""
    settings = {
        "signals": [dataclasses.asdict(signal) for signal in SIGNALS],
        "gpu": args.gpu_resource,
        "gate": NCCL_GATE.annotation,
        "mostPercent": args.most_percent,
        "seconds": ROUND_SECONDS,
        "prometheus": args.prometheus,
    }
    return Program(
        module="components.health.repair_controller",
        shared=[API_CLIENT, "components.health.repair_state"],
        files={_SETTINGS: json.dumps(settings, indent=2)},
    )


def _deployment(args: RepairControllerArgs, code: Program) -> Document:
    controller = Controller(
        name=CONTROLLER,
        namespace=names.SYSTEM_NAMESPACE,
        labels=LABELS,
        annotations=code.checksum(),
        pods=args.pods,
    )
    return controller.of_program(code, args.image, [f"{FILES_FOLDER}/{_SETTINGS}"], RESOURCES)
