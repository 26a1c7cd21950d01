"""Checks of the GPU nodes."""

from __future__ import annotations

from components import catalogue, names
from components.artefacts import Mirror
from components.health.baselines import BASELINES, Scope
from components.health.check_job import CheckArgs, GateArgs
from components.health.nccl_gate import SHARED_MEMORY, NcclGate, NcclGateArgs
from components.health.node_check import SHARED_MEMORY as CHECK_SHARED_MEMORY
from components.health.node_check import NodeCheck, NodeCheckArgs
from components.health.reporter import NCCL_GATE, NODE_CHECK, Reporter, ReporterArgs
from components.workloads.jobs import NodePods
from stacks.aks.infrastructure import Infrastructure
from stacks.aks.machines import Machines
from stacks.batch import On
from stacks.rules.health import floor
from stacks.settings import Settings
from stacks.settings.health import CheckSettings, Mode


def checks(settings: Settings, mirror: Mirror, azure: Infrastructure, nodes: Machines, on: On) -> None:
    """Register the checks that are switched on, and what they report through."""
    check, gate = settings.health.node_check, settings.health.nccl_gate
    if not (check.enabled or gate.enabled):
        return
    writes = any(item.enabled and item.mode is Mode.GATE for item in (check, gate))
    reporter = Reporter("health", ReporterArgs(writes=writes), on(*nodes.ready))
    pool = settings.pool

    def args(item: CheckSettings, image: str, shared_memory: str) -> CheckArgs:
        return CheckArgs(
            pods=NodePods(
                image=image,
                nodes=item.nodes or pool.count,
                gpus=int(str(pool.shape.resources[names.GPU])),
                cpu=str(settings.workloads.cpu),
                memory=str(settings.workloads.memory),
                fabric=nodes.fabric,
                shared_memory=shared_memory,
                deadline_seconds=item.deadline_seconds,
            ),
            trigger=item.trigger,
            gate=GateArgs(effect=item.effect, report_to_queues=item.report_to_queues)
            if item.mode is Mode.GATE
            else None,
            python_image=mirror.image(catalogue.PYTHON.reference),
        )

    image, _, _ = catalogue.NODE_HEALTH_CHECKS.reference.rpartition(":")
    checker = mirror.image(f"{image}:{check.image_tag}")
    if check.enabled:
        NodeCheck(
            NODE_CHECK,
            NodeCheckArgs(
                check=args(check, checker, CHECK_SHARED_MEMORY),
                baseline=BASELINES[pool.shape.instance_type],
                kernel_log=check.kernel_log,
            ),
            on(reporter),
        )
    if gate.enabled:
        nccl = settings.workloads.nccl
        tested = f"{nccl.image or f'{azure.registry}/nccltest'}:{nccl.tag}" if gate.scope is Scope.FABRIC else checker
        NcclGate(
            NCCL_GATE,
            NcclGateArgs(check=args(gate, tested, SHARED_MEMORY), scope=gate.scope, floor=floor(gate, pool)),
            on(reporter),
        )
