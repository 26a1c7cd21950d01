"""The workloads that the settings switch on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from components import catalogue
from components.kubernetes.cluster import Cluster
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.network import NetworkBoundary, NetworkBoundaryArgs
from components.layer import Layer
from components.passwords import password
from components.scheduling.volcano import Volcano, VolcanoArgs
from components.tenancy.quota import offered
from components.tenancy.team import Team
from components.workloads import gang as sample
from components.workloads import jupyterlab
from components.workloads.finetuning import Finetuning
from components.workloads.interface import Reach, Storage, user_of
from components.workloads.jupyterlab import JupyterLab, JupyterLabArgs
from components.workloads.logs import Aim, LogViewerArgs, LogVolume, LogVolumeArgs, TensorBoard
from components.workloads.metaseq import Metaseq
from components.workloads.nccl import Nccl
from components.workloads.olmo import Olmo
from components.workloads.pretraining import Pretraining
from components.workloads.submission import SubmissionMode
from components.workloads.synthetic import SyntheticLoad
from components.workloads.vllm import Vllm
from stacks.config.inputs import StackInputs
from stacks.config.secrets import JUPYTER_TOKEN
from stacks.layers.jobs import Jobs, local_queue
from stacks.layers.network import network
from stacks.layers.queueing import Queueing
from stacks.layers.scheduling import Scheduling
from stacks.layers.site import Namespaces
from stacks.settings.finetuning import FinetuningSettings
from stacks.settings.submission import SubmissionSettings, WorkloadSettings
from stacks.settings.vllm import VllmSettings
from stacks.settings.workloads import (
    JupyterLabSettings,
    MetaseqSettings,
    NcclSettings,
    OlmoSettings,
    PretrainingSettings,
)


def namespaces(inputs: StackInputs[Any], cluster: Cluster, teams: Mapping[str, Team]) -> Namespaces:
    """Register the namespace of what no team submits, where something is put there; return it with the teams'."""
    settings = inputs.settings
    name = settings.workloads.namespace
    volumes = inputs.resolved.volumes.values()
    used = any(item.enabled and not item.queued for item in settings.workloads.of(WorkloadSettings).values())
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
    namespaces: Namespaces,
    volumes: Mapping[str, pulumi.Input[str]],
    gpus: Sequence[pulumi.Resource],
    scheduling: Scheduling,
    queueing: Queueing | None,
) -> Mapping[str, pulumi.Input[str]] | None:
    """Register Volcano, the workloads and the sample job, each where it is switched on. Return JupyterLab's access.

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
    return _Workloads(inputs, cluster, namespaces, volumes, gpus, scheduling, queues, volcano).install()


@dataclass(frozen=True)
class _Workloads:
    """What the workloads need of the layers below them."""

    inputs: StackInputs[Any]
    cluster: Cluster
    namespaces: Namespaces
    volumes: Mapping[str, pulumi.Input[str]]
    gpus: Sequence[pulumi.Resource]
    scheduling: Scheduling
    queues: Sequence[pulumi.Resource]
    volcano: Volcano | None

    @property
    def jobs(self) -> Jobs:
        """What makes the workloads' arguments."""
        cluster = self.cluster
        return Jobs(
            self.inputs,
            cluster.pool.nodes,
            cluster.gpu_resource,
            self.inputs.target.cluster_env,
            cluster.pod_security,
            cluster.storage.shared,
        )

    def install(self) -> Mapping[str, pulumi.Input[str]] | None:
        """Register each workload that is switched on. Return JupyterLab's access, or None without it."""
        logs, lab = self._logs(), self.inputs.settings.workloads.jupyterlab
        for workload in self.inputs.settings.workloads.of(WorkloadSettings).values():
            if workload.enabled and workload is not lab:
                self._register(workload, logs)
        if logs is not None:
            self._viewers(logs)
        self._sample()
        self._synthetic()
        if not lab.enabled:
            return None
        home, options = self._namespace(lab.submission)
        return JupyterLab(lab.name, self._jupyterlab(lab, home), options).access

    def _register(self, workload: WorkloadSettings, logs: LogVolume | None) -> None:
        name, jobs, files = workload.name, self.jobs, self.cluster.storage.files
        home, options = self._namespace(workload.submission)
        match workload:
            case NcclSettings():
                Nccl(name, jobs.nccl(home), options)
            case MetaseqSettings():
                Metaseq(name, jobs.metaseq(home, logs.name if logs else None), options)
            case OlmoSettings(data=data):
                Olmo(name, jobs.olmo(home, self.volumes[data or ""]), options)
            case VllmSettings():
                Vllm(name, jobs.vllm(home, files), options)
            case PretrainingSettings(data=data):
                texts = self.volumes[data] if data is not None else None
                Pretraining(name, jobs.pretraining(home, files, texts), options)
            case FinetuningSettings():
                Finetuning(name, jobs.finetuning(home, files), options)

    def _jupyterlab(self, lab: JupyterLabSettings, namespace: pulumi.Input[str]) -> JupyterLabArgs:
        image = lab.image or self.inputs.mirror.image(catalogue.PYTORCH.reference)
        return JupyterLabArgs(
            submission=self.jobs.submission(lab.submission, namespace),
            pods=self.jobs.pods(lab, image, jupyterlab.SHARED_MEMORY, 0),
            token=password(lab.name, self.inputs.secrets.get(JUPYTER_TOKEN)),
            storage=Storage(
                storage_class=lab.storage_class or self.cluster.storage.files,
                size=f"{lab.fs_size}Ti",
                access=self.cluster.storage.shared,
            ),
            reach=Reach(exposure=lab.exposure, ranges=lab.source_ranges, internal=self.cluster.load_balancer),
            user=user_of(self.cluster.pod_security, lab.user),
            scratch=lab.scratch,
            idle_seconds=lab.idle_minutes * 60 if lab.idle_minutes is not None else None,
            closed=self.inputs.settings.tenancy.network.enabled,
        )

    def _logs(self) -> LogVolume | None:
        settings = self.inputs.settings.workloads
        if not settings.logs_needed():
            return None
        namespace, options = self._namespace(settings.metaseq.submission)
        storage = Storage(
            storage_class=settings.logs.storage_class or self.cluster.storage.logs,
            size=str(settings.logs.size),
            access=self.cluster.storage.shared,
        )
        return LogVolume(settings.logs.name, LogVolumeArgs(namespace=namespace, storage=storage), options)

    def _viewers(self, logs: LogVolume) -> None:
        settings, images = self.inputs.settings.workloads, self.inputs.resolved.images
        namespace, options = self._namespace(settings.metaseq.submission)
        nodes, user = self.cluster.placement.system, user_of(self.cluster.pod_security)
        viewers = (("aim", settings.aim, Aim), ("tensorboard", settings.tensorboard, TensorBoard))
        for key, viewer, component in viewers:
            if viewer.enabled:
                args = LogViewerArgs(namespace=namespace, logs=logs.name, image=images[key], nodes=nodes, user=user)
                component(viewer.name, args, options)

    def _sample(self) -> None:
        gang = self.inputs.settings.samples.gang
        if gang is None or not gang.enabled or gang.team is None:
            return
        team = self.namespaces.teams[gang.team]
        job = sample.GangArgs(
            namespace=team.namespace,
            queue=local_queue(self.inputs.settings.teams, gang.team, gang.user),
            user=gang.user,
            pods=gang.pods,
            requests={
                offered(resource, self.cluster.gpu_resource): amount for resource, amount in gang.requests().items()
            },
            seconds=gang.seconds,
            priority_class=gang.priority_class,
            image=self.inputs.mirror.image(catalogue.BUSYBOX.reference),
            node_selector=self.cluster.pool.nodes.node_selector,
            has_pod_groups=self.scheduling.has_pod_groups,
        )
        sample.Gang(gang.name, job, self.cluster.options(*self.queues, team))

    def _synthetic(self) -> None:
        load = self.inputs.settings.samples.synthetic
        if load is None or not load.enabled:
            return
        teams = {job.team: self.namespaces.teams[job.team] for job in self.inputs.load}
        args = self.jobs.synthetic({name: team.namespace for name, team in teams.items()})
        SyntheticLoad(load.name, args, self.cluster.options(*self.gpus, *self.queues, *teams.values()))

    def _namespace(self, settings: SubmissionSettings) -> tuple[pulumi.Input[str], pulumi.ResourceOptions]:
        """Return the namespace of a job, and the options of what is to run there."""
        if settings.gang is SubmissionMode.MLBATCH:
            team = self.namespaces.teams[settings.team or ""]
            return team.namespace, self.cluster.options(*self.gpus, *self.queues, team)
        volcano = [self.volcano] if self.volcano is not None else []
        own = self.namespaces.find(self.namespaces.workloads_name)
        return self.namespaces.workloads_name, self.cluster.options(*self.gpus, *volcano, own)
