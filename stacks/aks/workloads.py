"""The workloads that the settings switch on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from components import catalogue, names
from components.kubernetes.namespace import Namespace
from components.passwords import password
from components.scheduling.volcano import Volcano
from components.storage.blob_volume import BlobVolume
from components.workloads import jupyterlab, metaseq, nccl, olmo
from components.workloads.aim import Aim, AimArgs
from components.workloads.interface import LogVolume, LogVolumeArgs, Reach
from components.workloads.jobs import Gang, NodePods, Submission
from components.workloads.jupyterlab import JupyterLab, JupyterLabArgs
from components.workloads.metaseq import Metaseq, MetaseqArgs
from components.workloads.nccl import Nccl, NcclArgs
from components.workloads.olmo import Olmo, OlmoArgs
from components.workloads.tensorboard import TensorBoard, TensorBoardArgs
from stacks.aks.infrastructure import Infrastructure
from stacks.aks.machines import Machines
from stacks.batch import Batch, On
from stacks.load import JUPYTER_TOKEN, Stack
from stacks.settings.workloads import JobSettings, NodeWorkloadSettings, SubmissionSettings, ViewerSettings

REPOSITORIES: Mapping[str, str] = {"nccl": "nccltest", "metaseq": "metaseq", "olmo": "olmo"}
"""Names in the stack's registry under which the site pushes the images of edwardsp/ai-on-aks, by workload."""


@dataclass(frozen=True)
class Workloads:
    """What the workloads need of the layers below them."""

    stack: Stack
    azure: Infrastructure
    nodes: Machines
    queues: Batch
    namespace: Namespace
    volcano: Volcano | None
    data: Mapping[str, BlobVolume]
    on: On

    def submit(self) -> None:
        """Register each workload that is switched on."""
        settings = self.stack.settings.workloads
        if settings.nccl.enabled:
            self._nccl()
        logs = self._logs()
        if settings.metaseq.enabled:
            self._metaseq(logs)
        if settings.olmo.enabled:
            self._olmo()
        if settings.jupyterlab.enabled:
            self._jupyterlab()
        if settings.aim.enabled and logs is not None:
            home, options = self._home(settings.metaseq.submission)
            image = self._viewer_image(settings.aim)
            Aim(settings.aim.name, AimArgs(namespace=home, logs=logs.name, image=image), options)
        if settings.tensorboard.enabled and logs is not None:
            home, options = self._home(settings.metaseq.submission)
            image = self._viewer_image(settings.tensorboard)
            board = TensorBoardArgs(namespace=home, logs=logs.name, image=image)
            TensorBoard(settings.tensorboard.name, board, options)

    def _nccl(self) -> None:
        job = self.stack.settings.workloads.nccl
        submission, options = self._submission(job.submission)
        args = NcclArgs(
            submission=submission,
            pods=self._pods(job, self._image("nccl", job), nccl.SHARED_MEMORY, job.deadline_seconds),
            smallest=job.smallest,
            largest=job.largest,
            sharp=job.sharp,
            debug=job.debug,
        )
        Nccl(job.name, args, options)

    def _metaseq(self, logs: LogVolume | None) -> None:
        job = self.stack.settings.workloads.metaseq
        submission, options = self._submission(job.submission)
        args = MetaseqArgs(
            submission=submission,
            pods=self._pods(job, self._image("metaseq", job), metaseq.SHARED_MEMORY, job.deadline_seconds),
            size=job.size,
            updates=job.updates,
            logs=logs.name if logs and (job.use_aim or job.use_tensorboard) else None,
            use_aim=job.use_aim,
            use_tensorboard=job.use_tensorboard,
        )
        Metaseq(job.name, args, options)

    def _olmo(self) -> None:
        job = self.stack.settings.workloads.olmo
        assert job.data is not None
        submission, options = self._submission(job.submission)
        args = OlmoArgs(
            submission=submission,
            pods=self._pods(job, self._image("olmo", job), olmo.SHARED_MEMORY, job.deadline_seconds),
            data=self.data[job.data].claim,
            training=job.training,
            stop_at=job.stop_at,
        )
        Olmo(job.name, args, options)

    def _jupyterlab(self) -> None:
        lab = self.stack.settings.workloads.jupyterlab
        submission, options = self._submission(lab.submission)
        image = lab.image or self.stack.mirror.image(catalogue.PYTORCH.reference)
        args = JupyterLabArgs(
            submission=submission,
            pods=self._pods(lab, image, jupyterlab.SHARED_MEMORY, 0),
            token=password(lab.name, self.stack.secrets.get(JUPYTER_TOKEN)),
            storage_class=lab.storage_class,
            storage=f"{lab.fs_size}Ti",
            reach=Reach(exposure=lab.exposure, ranges=lab.source_ranges),
            user=lab.user,
            scratch=lab.scratch,
        )
        JupyterLab(lab.name, args, options)

    def _logs(self) -> LogVolume | None:
        settings = self.stack.settings.workloads
        if not settings.logs_needed():
            return None
        home, options = self._home(settings.metaseq.submission)
        args = LogVolumeArgs(namespace=home, storage_class=settings.logs.storage_class, size=str(settings.logs.size))
        return LogVolume(settings.logs.name, args, options)

    def _submission(self, settings: SubmissionSettings) -> tuple[Submission, pulumi.ResourceOptions]:
        """Return how a job is submitted, and the options of a component that may start once it can be."""
        home, options = self._home(settings)
        queue = self.stack.settings.volcano.queue if settings.gang is Gang.VOLCANO else names.LOCAL_QUEUE
        submission = Submission(
            gang=settings.gang,
            namespace=home,
            queue=queue,
            priority_class=settings.priority_class,
            user=settings.user,
        )
        return submission, options

    def _home(self, settings: SubmissionSettings) -> tuple[pulumi.Input[str], pulumi.ResourceOptions]:
        """Return the namespace of a job, and the options of what is to run there."""
        if settings.gang is Gang.MLBATCH:
            assert settings.team is not None
            team = self.queues.teams[settings.team]
            return team.namespace, self.on(*self.nodes.ready, *self.queues.ready, team)
        volcano = [self.volcano] if self.volcano is not None else []
        return self.namespace.name, self.on(*self.nodes.ready, *volcano)

    def _pods(self, workload: NodeWorkloadSettings, image: str, shared_memory: str, deadline: int) -> NodePods:
        settings = self.stack.settings
        return NodePods(
            image=image,
            nodes=workload.pods,
            gpus=int(str(settings.pool.shape.resources[names.GPU])),
            cpu=str(workload.cpu or settings.workloads.cpu),
            memory=str(workload.memory or settings.workloads.memory),
            fabric=self.nodes.fabric,
            shared_memory=shared_memory,
            deadline_seconds=deadline,
        )

    def _image(self, workload: str, job: JobSettings) -> str:
        repository = job.image or f"{self.azure.registry}/{REPOSITORIES[workload]}"
        return f"{repository}:{job.tag}"

    def _viewer_image(self, viewer: ViewerSettings) -> str:
        """Return a viewer's image: its own, else that of the training, which has the viewers too."""
        training = self.stack.settings.workloads.metaseq
        repository = viewer.image or training.image or f"{self.azure.registry}/{REPOSITORIES['metaseq']}"
        return f"{repository}:{viewer.tag or training.tag}"
