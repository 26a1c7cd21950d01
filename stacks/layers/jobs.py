"""The batch jobs of the settings: as components take them, and as the documents that a member submits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pulumi

from components import catalogue, names
from components.kubernetes.fabric import Fabric
from components.kubernetes.manifests import Document
from components.kubernetes.placement import NodeGroup
from components.kubernetes.quantity import Quantity
from components.kubernetes.security import PodSecurity
from components.kubernetes.volumes import AccessMode
from components.scheduling.topology import narrowest
from components.tenancy.user_queues import queue_name
from components.workloads import finetuning, metaseq, nccl, olmo, pretraining, synthetic, vllm
from components.workloads.finetuning import FinetuningArgs
from components.workloads.interface import Storage, user_of
from components.workloads.metaseq import MetaseqArgs
from components.workloads.nccl import NcclArgs
from components.workloads.olmo import OlmoArgs
from components.workloads.pods import NodePods
from components.workloads.pretraining import PretrainingArgs
from components.workloads.submission import Submission, SubmissionMode
from components.workloads.synthetic import SyntheticJob, SyntheticLoadArgs
from components.workloads.vllm import VllmArgs
from stacks.config.inputs import StackInputs
from stacks.layers.scheduling import second_scheduler
from stacks.settings.submission import SubmissionSettings, WorkloadSettings
from stacks.settings.tenancy import TeamSettings
from stacks.settings.workloads import JobSettings, NodeWorkloadSettings

_NOT_A_MEMBERS: Final = frozenset({"PodDisruptionBudget"})
"""Kinds beside a job that the role of members does not let them create."""


def local_queue(teams: Sequence[TeamSettings], team: str | None, user: str | None) -> str:
    """Return the LocalQueue that a user's jobs in a team go through."""
    shared = {name for each in teams if each.name == team and each.user_fair_sharing for name in each.users}
    return queue_name(user) if user is not None and user in shared else names.LOCAL_QUEUE


@dataclass(frozen=True)
class Jobs:
    """Makes the arguments of jobs from the settings.

    gpus: the nodes they go to. gpu_resource: as which they ask for GPUs. cluster_env: which of metaseq's own clusters
    this one is like. pod_security: what judges pods. shared: from how many nodes volumes are mounted that several pods
    write to.
    """

    inputs: StackInputs[Any]
    gpus: NodeGroup
    gpu_resource: str = names.GPU
    cluster_env: str | None = None
    pod_security: PodSecurity = PodSecurity.STANDARDS
    shared: AccessMode = AccessMode.MANY_NODES

    def nccl(self, namespace: pulumi.Input[str]) -> NcclArgs:
        """Return the NCCL test's."""
        job = self.inputs.settings.workloads.nccl
        return NcclArgs(
            submission=self.submission(job.submission, namespace),
            pods=self._job_pods("nccl", job, nccl.SHARED_MEMORY),
            smallest=job.smallest,
            largest=job.largest,
            sharp=job.sharp,
            debug=job.debug,
        )

    def metaseq(self, namespace: pulumi.Input[str], logs: pulumi.Input[str] | None) -> MetaseqArgs:
        """Return the Metaseq training's. logs: claim of the volume for its logs, None for nowhere."""
        job = self.inputs.settings.workloads.metaseq
        return MetaseqArgs(
            submission=self.submission(job.submission, namespace),
            pods=self._job_pods("metaseq", job, metaseq.SHARED_MEMORY),
            model=job.model,
            updates=job.updates,
            logs=logs if job.use_aim or job.use_tensorboard else None,
            use_aim=job.use_aim,
            use_tensorboard=job.use_tensorboard,
            cluster_env=self.cluster_env,
        )

    def olmo(self, namespace: pulumi.Input[str], data: pulumi.Input[str]) -> OlmoArgs:
        """Return the OLMo training's. data: claim of the volume with its data."""
        job = self.inputs.settings.workloads.olmo
        return OlmoArgs(
            submission=self.submission(job.submission, namespace),
            pods=self._job_pods("olmo", job, olmo.SHARED_MEMORY),
            data=data,
            training=job.training,
            stop_at=job.stop_at,
        )

    def vllm(self, namespace: pulumi.Input[str], storage_class: str | None) -> VllmArgs:
        """Return the vLLM batch's. storage_class: of shared files, unless the settings name one."""
        job = self.inputs.settings.workloads.vllm
        return VllmArgs(
            submission=self.submission(job.submission, namespace),
            image=job.image or self.inputs.mirror.image(catalogue.VLLM.reference),
            generator_image=job.generator_image,
            model=job.model,
            model_revision=job.model_revision or catalogue.hub_revision(job.model),
            requests=job.requests,
            concurrency=job.concurrency,
            input_tokens=job.input_tokens,
            output_tokens=job.output_tokens,
            gpus=job.gpus,
            gpu_resource=self.gpu_resource,
            cpu=str(job.cpu),
            memory=str(job.memory),
            generator_cpu=str(job.generator_cpu),
            generator_memory=str(job.generator_memory),
            placement=self.gpus,
            claim=job.claim,
            storage=self._storage(job.cache.storage_class or storage_class, job.cache.size),
            bounded=job.bounded,
            start_seconds=job.start_seconds,
            deadline_seconds=job.deadline_seconds,
            user=user_of(self.pod_security),
        )

    def pretraining(
        self, namespace: pulumi.Input[str], storage_class: str | None, data: pulumi.Input[str] | None
    ) -> PretrainingArgs:
        """Return the pre-training's. storage_class: as vLLM's. data: claim of the volume with its texts, if any."""
        job = self.inputs.settings.workloads.pretraining
        image = job.image or self.inputs.mirror.image(catalogue.PYTORCH.reference)
        return PretrainingArgs(
            kind=job.kind,
            submission=self.submission(job.submission, namespace),
            pods=self.pods(job, image, pretraining.SHARED_MEMORY, job.deadline_seconds),
            model=job.model,
            batch=job.batch,
            steps=job.steps,
            learning_rate=job.learning_rate,
            checkpoint_every=job.checkpoint_every,
            checkpoints=job.claim,
            storage=self._storage(job.checkpoints.storage_class or storage_class, job.checkpoints.size),
            data=data,
        )

    def finetuning(self, namespace: pulumi.Input[str], storage_class: str | None) -> FinetuningArgs:
        """Return the fine-tuning's. storage_class: as vLLM's."""
        job = self.inputs.settings.workloads.finetuning
        return FinetuningArgs(
            submission=self.submission(job.submission, namespace),
            image=job.image or self.inputs.mirror.image(catalogue.RAY_TRAIN.reference),
            packages=catalogue.RAY_TRAIN_PACKAGES,
            model=job.model,
            model_revision=job.model_revision or catalogue.hub_revision(job.model),
            dataset_revision=job.dataset_revision or catalogue.hub_revision(finetuning.DATASET),
            workers=job.workers,
            gpu_resource=self.gpu_resource,
            cpu=str(job.cpu),
            memory=str(job.memory),
            head_cpu=str(job.head_cpu),
            head_memory=str(job.head_memory),
            rank=job.rank,
            batch=job.batch,
            context=job.context,
            steps=job.steps,
            learning_rate=job.learning_rate,
            checkpoint_every=job.checkpoint_every,
            placement=self.gpus,
            claim=job.claim,
            storage=self._storage(job.result.storage_class or storage_class, job.result.size),
            deadline_seconds=job.deadline_seconds,
            user=user_of(self.pod_security),
            signs_in=not self.inputs.resolved.installs_operators or "kuberay" in self.inputs.resolved.brings,
        )

    def synthetic(self, namespaces: Mapping[str, pulumi.Input[str]]) -> SyntheticLoadArgs:
        """Return the synthetic load's. namespaces: of teams, by name. Raises LookupError without a synthetic load."""
        load = self.inputs.settings.samples.synthetic
        if load is None:
            raise LookupError("the settings have no synthetic load")
        return SyntheticLoadArgs(
            jobs=self.inputs.load,
            namespaces=namespaces,
            submission=self.submission(SubmissionSettings(), ""),
            image=self.inputs.mirror.image(catalogue.BUSYBOX.reference),
            per_gpu=load.per_gpu(),
            placement=self.gpus,
            gpu_resource=self.gpu_resource,
        )

    def submission(self, settings: SubmissionSettings, namespace: pulumi.Input[str]) -> Submission:
        """Return how a workload is submitted. namespace: where it is to run, which stands by then."""
        everything = self.inputs.settings
        own = local_queue(everything.teams, settings.team, settings.user)
        is_volcano = settings.gang is SubmissionMode.VOLCANO
        queued, packing = everything.queueing.enabled, everything.scheduling.packing
        return Submission(
            mode=settings.gang,
            namespace=namespace,
            queue=everything.volcano.queue if is_volcano else own,
            priority_class=settings.priority_class,
            user=settings.user,
            has_pod_groups=queued and packing.has_pod_groups,
            groups_alone=queued and packing.places_groups_alone,
            near=narrowest(everything.scheduling.topology.levels) if queued else None,
            scheduler=second_scheduler(packing) if queued else None,
        )

    def pods(self, workload: NodeWorkloadSettings, image: str, shared_memory: str, deadline: int) -> NodePods:
        """Return a workload's pods. deadline: in seconds, 0 for none."""
        settings, resolved = self.inputs.settings.workloads, self.inputs.resolved
        amounts = settings.amounts(workload, resolved.pool.shape.resources[names.GPU])
        return NodePods(
            image=image,
            nodes=workload.pods,
            placement=self.gpus,
            gpu_resource=self.gpu_resource,
            gpus=int(str(amounts[names.GPU])),
            cpu=str(amounts[names.CPU]),
            memory=str(amounts[names.MEMORY]),
            fabric=resolved.fabric if workload.part is None else Fabric(),
            shared_memory=shared_memory,
            deadline_seconds=deadline,
            scratch=self.inputs.settings.gpu.nvme_scratch.folder,
        )

    def _storage(self, storage_class: str | None, size: Quantity) -> Storage:
        return Storage(storage_class=storage_class, size=str(size), access=self.shared)

    def _job_pods(self, key: str, job: JobSettings, shared_memory: str) -> NodePods:
        return self.pods(job, self.inputs.resolved.images[key], shared_memory, job.deadline_seconds)


def load(inputs: StackInputs[Any], team: str | None = None, user: str | None = None) -> Sequence[Document]:
    """Return what members submit to run the synthetic load: those of one team, or of all. user: on whose behalf."""
    made = Jobs(inputs, inputs.resolved.pool.nodes, inputs.resolved.gpu_resource)
    args = made.synthetic({each.name: each.name for each in inputs.settings.teams})

    def document(job: SyntheticJob) -> Document:
        queue = local_queue(inputs.settings.teams, job.team, user)
        return synthetic.document(job, replace(args, submission=replace(args.submission, user=user, queue=queue)))

    return [document(job) for job in args.jobs if team in (None, job.team)]


def documents(inputs: StackInputs[Any], job: str) -> Sequence[Document]:
    """Return what a member submits to run a job of the settings as it stands there, in a team's queue.

    job: its key. Namespaces and claims are named, not made: the team's is there, and so is the volume with the data.
    """
    spec, settings = inputs.target, inputs.settings.workloads
    made = Jobs(
        inputs,
        inputs.resolved.pool.nodes,
        inputs.resolved.gpu_resource,
        spec.cluster_env,
        spec.pod_security,
        spec.shared_access,
    )
    team, files = settings.of(WorkloadSettings)[job].submission.team or "", spec.shared_files(inputs.settings)
    makers: Mapping[str, Callable[[], list[Document]]] = {
        "nccl": lambda: nccl.documents(settings.nccl.name, made.nccl(team)),
        "metaseq": lambda: metaseq.documents(settings.metaseq.name, made.metaseq(team, settings.logs.name)),
        "olmo": lambda: olmo.documents(settings.olmo.name, made.olmo(team, settings.olmo.data or "")),
        "vllm": lambda: vllm.documents(settings.vllm.name, made.vllm(team, files)),
        "finetuning": lambda: finetuning.documents(settings.finetuning.name, made.finetuning(team, files)),
        "pretraining": lambda: pretraining.documents(
            settings.pretraining.name, made.pretraining(team, files, settings.pretraining.data)
        ),
    }
    return [document for document in makers[job]() if document["kind"] not in _NOT_A_MEMBERS]
