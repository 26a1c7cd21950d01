"""Checks of the GPU nodes, what they report through, and the repair of nodes."""

from collections.abc import Sequence
from typing import Any

import pulumi

from components import catalogue, names
from components.health import autopilot
from components.health.autopilot import Autopilot, AutopilotArgs
from components.health.check_job import CheckArgs, GateArgs
from components.health.nccl_gate import SHARED_MEMORY, NcclGate, NcclGateArgs
from components.health.repair import RepairController, RepairControllerArgs
from components.health.reporter import NCCL_GATE, Reporter, ReporterArgs
from components.health.thresholds import Scope
from components.kubernetes.cluster import Cluster
from components.kubernetes.controller import ControllerPods
from components.observability import prometheus
from components.observability.prometheus import MONITOR_LABELS, Monitoring, scrapers
from components.workloads import nccl
from components.workloads.pods import NodePods
from stacks.config.inputs import StackInputs
from stacks.layers.queueing import Queueing
from stacks.layers.site import SiteLayers
from stacks.settings.health import CheckSettings, Mode


def install(
    inputs: StackInputs[Any],
    cluster: Cluster,
    site: SiteLayers,
    gpus: Sequence[pulumi.Resource],
    metrics: Monitoring | None,
    queues: Queueing | None,
) -> None:
    """Register the checks that are switched on, and the repair of nodes."""
    _checks(inputs, cluster, site, gpus)
    if queues is not None and site.has_repairs:
        settings = inputs.settings
        RepairController(
            "repair-controller",
            RepairControllerArgs(
                image=inputs.mirror.image(catalogue.PYTHON.reference),
                most_percent=settings.recovery.repair.most_percent,
                prometheus=prometheus.address(settings.monitoring.namespace) if metrics is not None else None,
                gpu_resource=cluster.gpu_resource,
                held=cluster.has_admission_policies,
                pods=ControllerPods(nodes=cluster.placement.system, pod_security=cluster.pod_security),
            ),
            cluster.options(queues.namespace),
        )
    if inputs.settings.health.autopilot.enabled:
        needs = [*gpus, *([metrics] if metrics is not None else [])]
        args = autopilot_args(inputs, cluster, site, metrics)
        Autopilot("autopilot", args, cluster.options(*needs))


def autopilot_args(
    inputs: StackInputs[Any], cluster: Cluster, site: SiteLayers, metrics: Monitoring | None
) -> AutopilotArgs:
    """Return Autopilot on this cluster: on each GPU node, also where a check has failed, or it is never found well."""
    settings = inputs.settings.health.autopilot
    own_operator = inputs.settings.gpu.operator
    readers = [scrapers(inputs.settings.monitoring.namespace)] if metrics is not None else []
    return AutopilotArgs(
        image=inputs.mirror.image(catalogue.AUTOPILOT.reference),
        nodes=site.kept_usable(cluster.placement.gpus),
        checks=settings.checks,
        interval_hours=settings.interval_hours,
        deep_check_hours=settings.deep_check_hours,
        pvc_storage_class=settings.pvc_storage_class,
        pcie_gbs=settings.pcie_gbs,
        runtime_class=settings.runtime_class or (autopilot.RUNTIME_CLASS if own_operator else None),
        guarded_gpus=own_operator if settings.guarded_gpus is None else settings.guarded_gpus,
        held=cluster.has_admission_policies,
        pod_security=cluster.pod_security,
        callers=readers if inputs.settings.tenancy.network.enabled else None,
        monitor_labels=MONITOR_LABELS if metrics is not None else None,
    )


def _checks(inputs: StackInputs[Any], cluster: Cluster, site: SiteLayers, gpus: Sequence[pulumi.Resource]) -> None:
    wanted = [item for item in inputs.settings.health.checks().values() if item.enabled]
    if not wanted:
        return
    writes = any(item.mode is Mode.GATE for item in wanted)
    reporter = Reporter("health", ReporterArgs(checks=site.checks_known(), writes=writes), cluster.options(*gpus))
    site.checks(reporter)
    gate, resolved = inputs.settings.health.nccl_gate, inputs.resolved
    if not gate.enabled or resolved.threshold is None:
        return
    own = resolved.gate_image if gate.scope is Scope.NODE else None
    image = inputs.mirror.image(own) if own is not None else resolved.images["nccl"]
    args = NcclGateArgs(
        check=check_args(inputs, cluster, site, gate, image, SHARED_MEMORY),
        scope=gate.scope,
        threshold=resolved.threshold,
        program=site.gate_program if own is not None else nccl.PROGRAM,
    )
    NcclGate(NCCL_GATE.name, args, cluster.options(reporter))


def check_args(
    inputs: StackInputs[Any], cluster: Cluster, site: SiteLayers, item: CheckSettings, image: str, shared_memory: str
) -> CheckArgs:
    """Return what all checks have in common: pods that take whole nodes, and what becomes of their verdict."""
    settings, pool = inputs.settings.workloads, cluster.pool
    return CheckArgs(
        pods=NodePods(
            image=image,
            nodes=item.nodes or pool.count,
            placement=cluster.pool.nodes,
            gpu_resource=cluster.gpu_resource,
            gpus=int(str(pool.shape.resources[names.GPU])),
            cpu=str(settings.cpu),
            memory=str(settings.memory),
            fabric=cluster.fabric,
            shared_memory=shared_memory,
            deadline_seconds=item.deadline_seconds,
        ),
        trigger=item.trigger,
        gate=GateArgs(effect=item.effect, report_to_queues=item.report_to_queues) if item.mode is Mode.GATE else None,
        checks=site.checks_known(),
        python_image=inputs.mirror.image(catalogue.PYTHON.reference),
    )
