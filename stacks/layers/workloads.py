"""The workloads that the settings switch on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from components import catalogue, names
from components.kubernetes.cluster import Cluster
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.network import NetworkBoundary, NetworkBoundaryArgs
from components.layer import Layer
from components.passwords import password
from components.scheduling.volcano import Volcano, VolcanoArgs
from components.tenancy.team import Team
from components.workloads import gang as sample
from components.workloads import jupyterlab, metaseq, nccl, olmo
from components.workloads.aim import Aim, AimArgs
from components.workloads.interface import LogVolume, LogVolumeArgs, Reach
from components.workloads.jupyterlab import JupyterLab, JupyterLabArgs
from components.workloads.metaseq import Metaseq, MetaseqArgs
from components.workloads.nccl import Nccl, NcclArgs
from components.workloads.olmo import Olmo, OlmoArgs
from components.workloads.pods import NodePods
from components.workloads.submission import Submission, SubmissionMode
from components.workloads.tensorboard import TensorBoard, TensorBoardArgs
from stacks.inputs import StackInputs
from stacks.layers.gpu_nodes import GpuNodes
from stacks.layers.network import network
from stacks.layers.queueing import Queueing
from stacks.layers.scheduling import Scheduling
from stacks.layers.site import Namespaces, SiteLayers
from stacks.secrets import JUPYTER_TOKEN
from stacks.settings.workloads import NodeWorkloadSettings, SubmissionSettings


def namespaces(inputs: StackInputs[Any], cluster: Cluster, teams: Mapping[str, Team]) -> Namespaces:
    """Register the namespace of what no team submits, where something is put there; return it with the teams'."""
    settings = inputs.settings
    name = settings.workloads.namespace
    volumes = inputs.resolved.volumes.values()
    used = any(item.enabled and not item.queued for item in settings.workloads.node_workloads().values())
    own: Layer | None = None
    if used or settings.volcano.enabled or name in volumes:
        own = namespace = Namespace("workloads", NamespaceArgs(name=name), cluster.options())
        confined = network(inputs)
        if confined is not None:
            args = NetworkBoundaryArgs(namespace=namespace.name, network=confined)
            own = NetworkBoundary("workloads-network", args, cluster.options(namespace))
    return Namespaces(workloads=own, workloads_name=name, teams=teams)


def install(
    inputs: StackInputs[Any],
    cluster: Cluster,
    site: SiteLayers,
    namespaces: Namespaces,
    volumes: Mapping[str, pulumi.Input[str]],
    nodes: GpuNodes,
    scheduling: Scheduling,
    queueing: Queueing | None,
) -> None:
    """Register Volcano, the workloads and the sample job, each where it is switched on.

    volumes: names of claims with data, by the names in the settings.
    """
    queues = queueing.ready if queueing is not None else ()
    settings, mirror = inputs.settings, inputs.mirror
    volcano = None
    if settings.volcano.enabled and namespaces.workloads is not None:
        args = VolcanoArgs(
            chart=mirror.chart(catalogue.find_chart("volcano", settings.volcano.version)),
            namespace=settings.workloads.namespace,
            queue=settings.volcano.queue,
            launcher_view=settings.volcano.launcher_view,
            nodes=cluster.placement.system,
        )
        volcano = Volcano("volcano", args, cluster.options(namespaces.workloads))
    _Workloads(inputs, cluster, site, namespaces, volumes, nodes, scheduling, queues, volcano).install()


@dataclass(frozen=True)
class _Workloads:
    """What the workloads need of the layers below them."""

    inputs: StackInputs[Any]
    cluster: Cluster
    site: SiteLayers
    namespaces: Namespaces
    volumes: Mapping[str, pulumi.Input[str]]
    nodes: GpuNodes
    scheduling: Scheduling
    queues: Sequence[pulumi.Resource]
    volcano: Volcano | None

    def install(self) -> None:
        """Register each workload that is switched on."""
        settings = self.inputs.settings.workloads
        logs = self._logs()
        if settings.nccl.enabled:
            self._nccl()
        if settings.metaseq.enabled:
            self._metaseq(logs)
        if settings.olmo.enabled:
            self._olmo()
        if settings.jupyterlab.enabled:
            self._jupyterlab()
        if logs is not None:
            self._viewers(logs)
        self._sample()

    def _nccl(self) -> None:
        job = self.inputs.settings.workloads.nccl
        submission, options = self._submission(job.submission)
        args = NcclArgs(
            submission=submission,
            pods=self._pods(job, self.inputs.resolved.images["nccl"], nccl.SHARED_MEMORY, job.deadline_seconds),
            smallest=job.smallest,
            largest=job.largest,
            sharp=job.sharp,
            debug=job.debug,
        )
        Nccl(job.name, args, options)

    def _metaseq(self, logs: LogVolume | None) -> None:
        job = self.inputs.settings.workloads.metaseq
        submission, options = self._submission(job.submission)
        args = MetaseqArgs(
            submission=submission,
            pods=self._pods(job, self.inputs.resolved.images["metaseq"], metaseq.SHARED_MEMORY, job.deadline_seconds),
            model=job.model,
            updates=job.updates,
            logs=logs.name if logs and (job.use_aim or job.use_tensorboard) else None,
            use_aim=job.use_aim,
            use_tensorboard=job.use_tensorboard,
            cluster_env=self.site.cluster_env,
        )
        Metaseq(job.name, args, options)

    def _olmo(self) -> None:
        job = self.inputs.settings.workloads.olmo
        submission, options = self._submission(job.submission)
        args = OlmoArgs(
            submission=submission,
            pods=self._pods(job, self.inputs.resolved.images["olmo"], olmo.SHARED_MEMORY, job.deadline_seconds),
            data=self.volumes[job.data or ""],
            training=job.training,
            stop_at=job.stop_at,
        )
        Olmo(job.name, args, options)

    def _jupyterlab(self) -> None:
        lab = self.inputs.settings.workloads.jupyterlab
        submission, options = self._submission(lab.submission)
        image = lab.image or self.inputs.mirror.image(catalogue.PYTORCH.reference)
        args = JupyterLabArgs(
            submission=submission,
            pods=self._pods(lab, image, jupyterlab.SHARED_MEMORY, 0),
            token=password(lab.name, self.inputs.secrets.get(JUPYTER_TOKEN)),
            storage_class=lab.storage_class or self.cluster.storage.files,
            storage=f"{lab.fs_size}Ti",
            reach=Reach(exposure=lab.exposure, ranges=lab.source_ranges, internal=self.cluster.load_balancer),
            user=lab.user,
            scratch=lab.scratch,
            closed=self.inputs.settings.tenancy.network.enabled,
        )
        JupyterLab(lab.name, args, options)

    def _logs(self) -> LogVolume | None:
        settings = self.inputs.settings.workloads
        if not settings.logs_needed():
            return None
        namespace, options = self._namespace(settings.metaseq.submission)
        storage_class = settings.logs.storage_class or self.cluster.storage.logs
        args = LogVolumeArgs(namespace=namespace, storage_class=storage_class, size=str(settings.logs.size))
        return LogVolume(settings.logs.name, args, options)

    def _viewers(self, logs: LogVolume) -> None:
        settings, images = self.inputs.settings.workloads, self.inputs.resolved.images
        namespace, options = self._namespace(settings.metaseq.submission)
        nodes = self.cluster.placement.system
        if settings.aim.enabled:
            aim = AimArgs(namespace=namespace, logs=logs.name, image=images["aim"], nodes=nodes)
            Aim(settings.aim.name, aim, options)
        if settings.tensorboard.enabled:
            board = TensorBoardArgs(namespace=namespace, logs=logs.name, image=images["tensorboard"], nodes=nodes)
            TensorBoard(settings.tensorboard.name, board, options)

    def _sample(self) -> None:
        gang = self.inputs.settings.samples.gang
        if gang is None or not gang.enabled or gang.team is None:
            return
        team = self.namespaces.teams[gang.team]
        job = sample.GangArgs(
            namespace=team.namespace,
            user=gang.user,
            pods=gang.pods,
            requests=gang.requests(),
            seconds=gang.seconds,
            priority_class=gang.priority_class,
            image=self.inputs.mirror.image(catalogue.BUSYBOX.reference),
            node_selector=self.cluster.placement.gpus.node_selector,
            has_pod_groups=self.scheduling.has_pod_groups,
        )
        sample.Gang(gang.name, job, self.cluster.options(*self.queues, team))

    def _submission(self, settings: SubmissionSettings) -> tuple[Submission, pulumi.ResourceOptions]:
        """Return how a job is submitted, and the options of a component that may start once it can be."""
        namespace, options = self._namespace(settings)
        is_volcano = settings.gang is SubmissionMode.VOLCANO
        submission = Submission(
            mode=settings.gang,
            namespace=namespace,
            queue=self.inputs.settings.volcano.queue if is_volcano else names.LOCAL_QUEUE,
            priority_class=settings.priority_class,
            user=settings.user,
            has_pod_groups=self.scheduling.has_pod_groups,
        )
        return submission, options

    def _namespace(self, settings: SubmissionSettings) -> tuple[pulumi.Input[str], pulumi.ResourceOptions]:
        """Return the namespace of a job, and the options of what is to run there."""
        if settings.gang is SubmissionMode.MLBATCH:
            team = self.namespaces.teams[settings.team or ""]
            return team.namespace, self.cluster.options(*self.nodes.ready, *self.queues, team)
        volcano = [self.volcano] if self.volcano is not None else []
        own = self.namespaces.find(self.namespaces.workloads_name)
        return self.namespaces.workloads_name, self.cluster.options(*self.nodes.ready, *volcano, own)

    def _pods(self, workload: NodeWorkloadSettings, image: str, shared_memory: str, deadline: int) -> NodePods:
        settings = self.inputs.settings.workloads
        return NodePods(
            image=image,
            nodes=workload.pods,
            placement=self.cluster.placement.gpus,
            gpu_resource=self.cluster.gpu_resource,
            gpus=int(str(self.cluster.pool.shape.resources[names.GPU])),
            cpu=str(workload.cpu or settings.cpu),
            memory=str(workload.memory or settings.memory),
            fabric=self.cluster.fabric,
            shared_memory=shared_memory,
            deadline_seconds=deadline,
            scratch=self.inputs.settings.gpu.nvme_scratch.folder,
        )
