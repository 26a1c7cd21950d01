"""Rejects jobs that could never run: on the existing nodes, in the team's queue, or with their volumes."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from components import names
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import ZERO, Quantity
from components.tenancy.quota import Quota
from components.workloads import metaseq, pretraining
from components.workloads.interface import Exposure
from components.workloads.submission import SubmissionMode
from stacks.config.errors import ConfigError, Path, counted, instead, key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.finetuning import FinetuningSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.samples import SamplesSettings
from stacks.settings.submission import WorkloadSettings
from stacks.settings.tenancy import QueueingSettings, TeamSettings, TenancySettings
from stacks.settings.vllm import VllmSettings
from stacks.settings.volcano import VolcanoSettings
from stacks.settings.workloads import (
    JobSettings,
    JupyterLabSettings,
    MetaseqSettings,
    NodeWorkloadSettings,
    PretrainingSettings,
    WorkloadsSettings,
)
from stacks.validation.names import usable_teams
from stacks.validation.walk import apply

_VLLM: Final[Path] = ("workloads", "vllm")
_GPU_MEMORY: Final = re.compile(r"-(\d+)GB")
_GIB: Final = Quantity.parse("1Gi")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Equal pods that run together, submitted to a team's queue.

    what: the job in words. path: of its section. size: the key of the number of pods in it.
    asks: the paths of the settings for one pod's requests, by resource, if there are such settings.
    team: as written, None if the key is missing. submitter: the path of that key, by default `team` in the section.
    `_placed` sets both for a workload. requests: the resources that one pod requests.
    """

    what: str
    path: Path
    size: str
    team: str | None = None
    pods: int
    requests: Quota
    asks: Mapping[str, Path] = field(default_factory=dict)
    submitter: Path | None = None


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of jobs that could never run."""
    return apply(partial, _sample, _workloads)


def _workloads(partial: PartialSettings, settings: WorkloadsSettings) -> Iterator[ConfigError]:
    hopeless = _hopeless(partial, settings)
    yield from hopeless.values()
    settings = settings.without({*hopeless, *(settings.of(NodeWorkloadSettings) if _shares(partial) else ())})
    for name, workload in settings.of(WorkloadSettings).items():
        path: Path = ("workloads", name)
        if workload.enabled:
            yield from _submission(partial, path, workload)
        if workload.enabled and isinstance(workload, NodeWorkloadSettings):
            yield from no_image(partial, path, workload)
            yield from _runs(partial, settings, path, workload)
    training, tuning = settings.pretraining, settings.finetuning
    if settings.vllm.enabled:
        yield from _batch(partial, settings.vllm)
    if settings.metaseq.enabled and partial.pool is not None:
        yield from _training(partial, settings.metaseq, partial.pool)
    if settings.olmo.enabled:
        yield from _data(partial, settings, ("workloads", "olmo"), settings.olmo, settings.olmo.data)
    if training.enabled:
        operator = "trainer" if training.kind is pretraining.Kind.TRAIN_JOB else "trainingOperator"
        yield from _operator(partial, "pretraining", training, operator, training.kind)
        yield from _model(partial, settings, training)
    if tuning.enabled:
        yield from _operator(partial, "finetuning", tuning, "kuberay", "RayJob")
        yield from _tuning(partial, tuning)
    yield from _exposure(partial, settings.jupyterlab)
    if training.enabled and training.data is not None:
        yield from _data(partial, settings, ("workloads", "pretraining"), training, training.data)
    yield from _scratch(partial, settings)


def _hopeless(partial: PartialSettings, settings: WorkloadsSettings) -> Mapping[str, ConfigError]:
    """Return errors of workloads that cannot run with any of their own settings, by their keys."""
    target, pool = partial.target, partial.pool
    if target is None:
        return {}
    found: dict[str, ConfigError] = {}
    if pool is not None and pool.count and not pool.shape.resources[names.GPU].nano:
        for name, workload in settings.of(WorkloadSettings).items():
            found[name] = ConfigError(
                ("workloads", name, "enabled"),
                f"{workload.what} requests GPUs, but the nodes have none",
                f"set it to false, or {target.gpu_advice}",
            )
    if not target.has_volumes:
        found["olmo"] = ConfigError(
            ("workloads", "olmo", "enabled"),
            f"{settings.olmo.what} reads its data from a volume, but target {target.name} has none",
            "set it to false, or run the job on a target that has volumes",
        )
    return {name: error for name, error in found.items() if settings.of(WorkloadSettings)[name].enabled}


def _batch(partial: PartialSettings, batch: VllmSettings) -> Iterator[ConfigError]:
    """Yield why the vLLM batch, which is one pod, could never run."""
    asks = {names.CPU: (*_VLLM, "cpu"), names.MEMORY: (*_VLLM, "memory"), names.GPU: (*_VLLM, "gpus")}
    job = Job(what=batch.what, path=_VLLM, size="gpus", pods=1, requests=batch.amounts(), asks=asks)
    yield from _placed(partial, job, batch, partial.pool)


def no_image(partial: PartialSettings, path: Path, workload: NodeWorkloadSettings) -> Iterator[ConfigError]:
    """Yield the problem of a job whose image has a tag, and no registry to come from."""
    is_named = not isinstance(workload, JobSettings) or workload.image is not None or workload.tag is None
    if is_named or partial.target is None or not partial.sections.keys() >= {*partial.target.registry_key[:1]}:
        return
    if partial.target.registry(partial) is not None:
        return
    registry = key(partial.target.registry_key) if partial.target.registry_key else None
    yield ConfigError(
        (*path, "image"),
        f"the image {workload.repository} has no registry to pull from",
        f"set {key((*path, 'image'))}" + (f" or {registry}" if registry else ""),
    )


def count_key(partial: PartialSettings) -> str:
    """Return the key that sets the number of GPU nodes."""
    return key(partial.count_key) if partial.target is not None else "the number of nodes"


def more_room(partial: PartialSettings) -> str:
    """Return the fix that makes room for more pods."""
    larger = partial.target is not None and partial.target.is_one_node
    return f"use a larger {count_key(partial)}" if larger else f"raise {count_key(partial)}"


def _sample(partial: PartialSettings, samples: SamplesSettings) -> Iterator[ConfigError]:
    gang = samples.gang
    if gang is None or not gang.enabled:
        return
    path: Path = ("samples", "gang")
    if not partial.team_names and (missing := _missing_layers(partial)):
        switches = listed((key((layer, "enabled")) for layer in missing), " and ")
        yield ConfigError(
            (*path, "enabled"),
            "there are no team queues to submit it to",
            f"set it to false, or {switches} to true",
        )
        return
    job = Job(
        what="the gang",
        path=path,
        size="pods",
        team=gang.team,
        pods=gang.pods,
        requests=gang.requests(),
        asks={
            names.CPU: (*path, "cpuPerPod"),
            names.MEMORY: (*path, "memoryPerPod"),
            names.GPU: (*path, "gpusPerPod"),
        },
    )
    yield from admitted(partial, job)
    members = {user: team.name for team in partial.known_teams for user in team.users}
    own = partial.team(gang.team)
    if gang.user is not None and own is not None and not may_be_member(gang.user, own):
        other = members.get(gang.user)
        yield ConfigError(
            ("samples", "gang", "user"),
            f"this user is in team {other}, not in {gang.team}" if other else "this user is in no team",
            f"add {gang.user} to {key(('teams', partial.teams.index(own), 'users'))}"
            + (", or set it to one of these" if own.users else ""),
            expected=listed(own.users),
        )


def may_be_member(user: str, team: TeamSettings) -> bool:
    """Whether a user may be in a team. Only the identity provider knows the members of groups."""
    return user in team.users or bool(team.groups)


def admitted(partial: PartialSettings, job: Job) -> Iterator[ConfigError]:
    """Yield an unknown team, and the first reason why a team's job could never run."""
    yield from _team(partial, job)
    reasons = (*_on_nodes(partial, job), *_in_queue(partial, job))
    yield from reasons[:1]


def _on_nodes(partial: PartialSettings, job: Job) -> Iterator[ConfigError]:
    """Yield the error of a job whose pods do not fit on the nodes at once."""
    pool = partial.pool
    if pool is None:
        return
    available = pool.for_jobs
    per_node = {resource: available[resource] // amount for resource, amount in job.requests.items() if amount.nano}
    fitting = min(per_node.values()) * pool.count
    if fitting >= job.pods:
        return
    if not pool.count:
        yield ConfigError(
            (*job.path, job.size),
            "there are no GPU nodes",
            f"set {key((*job.path, 'enabled'))} to false, or raise {count_key(partial)}",
        )
        return
    scarce = min(per_node, key=lambda resource: per_node[resource])
    blamed = job.asks.get(scarce) if not per_node[scarce] else None
    yield ConfigError(
        blamed or (*job.path, job.size),
        f"{_fit(pool)} {fitting} such pods at once: {_has(pool, scarce)}, a pod requests {job.requests[scarce]}",
        "lower it, or use larger nodes" if blamed else f"request fewer or smaller pods, or {more_room(partial)}",
        expected=f"at most {counted(fitting, 'pod')}"
        if fitting
        else f"pods that request at most {available[scarce]} {scarce}",
    )


def _fit(pool: NodePool) -> str:
    return f"{counted(pool.count, 'node')} {'fits' if pool.count == 1 else 'fit'}"


def _has(pool: NodePool, resource: str) -> str:
    """Return in words how much of a resource a node has for jobs, and how much it reserves."""
    kept = pool.reserved.get(resource)
    return f"a node has {pool.for_jobs[resource]} {resource}" + (f" and {kept} for its DaemonSets" if kept else "")


def _team(partial: PartialSettings, job: Job) -> Iterator[ConfigError]:
    known = [name for name in partial.team_names if isinstance(name, str)]
    if job.team is not None and (job.team in known or len(known) < len(partial.team_names)):
        return
    known = usable_teams(partial)
    yield ConfigError(
        job.submitter or (*job.path, "team"),
        "a team is required for the job" if job.team is None else "unknown team",
        instead(job.team or "", known, f"set it to {known[0]}" if known else "add a team to mlbatch:teams"),
        expected=listed(known) if known else "the name of a team, but mlbatch:teams has no valid team",
    )


def _in_queue(partial: PartialSettings, job: Job) -> Iterator[ConfigError]:
    needs = {resource: amount * job.pods for resource, amount in job.requests.items()}
    size = (*job.path, job.size)
    asks = job.asks if job.pods == 1 else {}
    places = {resource: asks.get(resource, size) for resource in (*needs, names.PODS)}
    yield from _beyond(partial, job.team, {**needs, names.PODS: Quantity.parse(job.pods)}, job.what, places)


def _beyond(
    partial: PartialSettings, name: str | None, needs: Quota, what: str, places: Mapping[str, Path]
) -> Iterator[ConfigError]:
    """Yield errors of resources that a team can never have enough of for a job.

    name: of the team, as written. what: the job in words. places: the keys to lower, by resource.
    """
    team = partial.team(name)
    if team is None or team.name not in partial.quotas:
        return
    own, borrowing = partial.quotas[team.name], partial.borrowing_limits[team.name]
    where = partial.team_key(partial.teams.index(team))
    for resource, need in needs.items():
        lent = partial.lent(team, resource)
        if lent is None:
            return
        borrowed = min(lent, borrowing.get(resource, lent))
        most = own[resource] + borrowed
        if most < need:
            quota = key((*where, "quota", resource) if team.share is None else (*where, "share"))
            yield ConfigError(
                places[resource],
                f"{what} needs {need} {resource}, but team {team.name} can have at most {most}: a quota of "
                f"{own[resource]}, and {borrowed} borrowed",
                f"lower it, raise {quota}, or raise the borrowing and lending limits of the teams",
            )


def _submission(partial: PartialSettings, path: Path, workload: WorkloadSettings) -> Iterator[ConfigError]:
    """Yield errors of submission modes that the stack does not provide."""
    where: Path = (*path, "submission")
    submission, gang = workload.submission, workload.submission.gang
    volcano = partial.section(VolcanoSettings)
    asks_volcano = gang is SubmissionMode.VOLCANO and not workload.no_volcano
    if asks_volcano and volcano is not None and not volcano.enabled:
        yield ConfigError(
            (*where, "gang"),
            "Volcano is not installed",
            "set mlbatch:volcano.enabled to true, or use another gang",
            expected="mlbatch, none; volcano where it is installed",
        )
    if asks_volcano and not _offers(partial, "volcano"):
        yield ConfigError(
            (*where, "gang"),
            "Volcano is not installed on this target",
            "set it to one of these",
            expected="mlbatch, none",
        )
    if gang is SubmissionMode.MLBATCH and (missing := _missing_layers(partial)):
        yield ConfigError(
            (*where, "gang"),
            "there are no team queues" if missing == ["tenancy"] else "there are no queues",
            f"set {listed((key((layer, 'enabled')) for layer in missing), ' and ')} to true, or use another gang",
            expected="none, and volcano where it is installed; mlbatch with queues",
        )
    team, user = partial.team(submission.team), submission.user
    if gang is SubmissionMode.MLBATCH and team is not None and user is not None and not may_be_member(user, team):
        users = key(("teams", partial.teams.index(team), "users"))
        yield ConfigError(
            (*where, "user"),
            f"this user is not in team {team.name}",
            instead(user, team.users, f"add {user} to {users}"),
            expected=listed(team.users),
        )


def _offers(partial: PartialSettings, section: str) -> bool:
    """Return whether the target has a section, which may be invalid."""
    return partial.target is None or section in partial.target.sections


def _missing_layers(partial: PartialSettings) -> list[str]:
    """Return the sections of the disabled layers that make teams' queues.

    Tenancy is excluded if there are teams: another error reports that case.
    """
    tenancy = None if partial.team_names else partial.section(TenancySettings)
    layers = {"queueing": partial.section(QueueingSettings), "tenancy": tenancy}
    return [name for name, section in layers.items() if section is not None and not section.enabled]


def _runs(
    partial: PartialSettings, settings: WorkloadsSettings, path: Path, workload: NodeWorkloadSettings
) -> Iterator[ConfigError]:
    """Yield errors of a workload that could never run on the nodes or in its team's queue."""
    pool = partial.pool
    if pool is not None and workload.pods > pool.count:
        yield _too_many(partial, path, workload.pods, pool.count)
        pool = None
    fabric = partial.fabric
    requests = settings.requests(workload, pool, fabric) if pool is not None and fabric is not None else {}
    asks: dict[str, Path] = {
        names.CPU: (*path, "cpu") if workload.cpu is not None else ("workloads", "cpu"),
        names.MEMORY: (*path, "memory") if workload.memory is not None else ("workloads", "memory"),
        **({names.GPU: (*path, "gpus")} if workload.part is not None else {}),
    }
    job = Job(what=workload.what, path=path, size="nodes", pods=workload.pods, requests=requests, asks=asks)
    yield from _placed(partial, job, workload, pool)


def _too_many(partial: PartialSettings, path: Path, nodes: int, count: int) -> ConfigError:
    """Return the error of a job on more nodes than exist. path: of the job."""
    if partial.target is not None and partial.target.is_one_node:
        return ConfigError(
            (*path, "nodes"),
            f"{nodes} nodes requested, but target {partial.target.name} has one machine with a cluster of one node",
            "set it to 1, or run the job on a target with several nodes",
        )
    return ConfigError(
        (*path, "nodes"),
        f"{counted(nodes, 'node')} requested, but the pool has {count}",
        f"{'request fewer, or ' if count else ''}raise {count_key(partial)}",
    )


def _placed(
    partial: PartialSettings, job: Job, workload: WorkloadSettings, pool: NodePool | None
) -> Iterator[ConfigError]:
    """Yield errors of a workload whose pods could never run on the nodes of a pool or in its team's queue.

    pool: None if the nodes are not checked.
    """
    job = replace(job, team=workload.submission.team, submitter=(*job.path, "submission", "team"))
    queued = _is_queued(partial, workload)
    if pool is not None and queued:
        yield from admitted(partial, job)
    elif pool is not None:
        yield from _on_nodes(partial, job)
    elif queued and job.team is None:
        yield from _team(partial, job)


def _is_queued(partial: PartialSettings, workload: WorkloadSettings) -> bool:
    return workload.queued and partial.section(QueueingSettings) is not None and not _missing_layers(partial)


def gpu_bytes(pool: NodePool) -> int | None:
    """Return the memory of one of a pool's GPUs, or None if the product's name does not include it."""
    found = _GPU_MEMORY.search(pool.shape.gpu_product)
    return int(found[1]) << 30 if found else None


def _training(partial: PartialSettings, job: MetaseqSettings, pool: NodePool) -> Iterator[ConfigError]:
    size = job.model
    gpus = pool.shape.resources[names.GPU].nano // 10**9
    if gpus == 0:
        return
    path: Path = ("workloads", "metaseq")
    if any(job.undivided(path)):
        return
    replicas = job.nodes * gpus // size.model_parallel
    if job.batch is not None and replicas * metaseq.SEQUENCE_LENGTH > job.batch:
        least = replicas * metaseq.SEQUENCE_LENGTH
        yield ConfigError(
            (*path, "batch"),
            f"{replicas} groups of {size.model_parallel} GPUs use {metaseq.SEQUENCE_LENGTH} tokens "
            f"each in one update, {least} in total",
            f"raise it, or lower {key((*path, 'nodes'))}",
        )
        return
    try:
        metaseq.layout(size, job.nodes * gpus)
    except ValueError as error:
        yield ConfigError(
            (*path, "nodes"),
            f"{job.size} cannot be trained on these nodes: {error}",
            f"change the number of nodes, or {key((*path, 'size'))}",
            expected=f"nodes of {gpus} GPUs each that together divide into groups of {size.model_parallel} GPUs",
        )
        return
    memory = gpu_bytes(pool)
    if memory is None:
        return
    fewest = metaseq.fewest_nodes(size, gpus=gpus, gpu_bytes=memory)
    if job.nodes < fewest:
        fitting = [
            name
            for name, known in metaseq.SIZES.items()
            if metaseq.fewest_nodes(known, gpus=gpus, gpu_bytes=memory) <= job.nodes
        ]
        needed = size.parameters * metaseq.BYTES_PER_PARAMETER / 1e9
        parts = [name for name in ("layers", "embedding") if getattr(job, name) is not None]
        what = f"{job.size} with this {' and '.join(parts)}" if parts else job.size
        usable = metaseq.USABLE_MEMORY * memory / (1 << 30)
        yield ConfigError(
            (*path, parts[0] if parts else "size"),
            f"weights, gradients and optimizer of {what} need {needed:.0f} GB of GPU memory, but "
            f"{job.nodes * gpus} GPUs have {usable:.0f} GiB each for them",
            f"set {key((*path, 'nodes'))} to {fewest}"
            + (f" and {count_key(partial)} to as many" if fewest > pool.count else "")
            + (", or lower it" if parts else f", or use {fitting[-1]}" if fitting else ""),
            expected=f"{what} on {fewest} nodes or more" + ("" if parts else f"; on {job.nodes}: {listed(fitting)}"),
        )


def _exposure(partial: PartialSettings, lab: JupyterLabSettings) -> Iterator[ConfigError]:
    """Yield the error of an interface with a load balancer on a target without load balancers."""
    target = partial.target
    if target is None or target.has_load_balancers or not lab.enabled or lab.exposure is Exposure.CLUSTER:
        return
    yield ConfigError(
        ("workloads", "jupyterlab", "exposure"),
        f"target {target.name} has no load balancers: the Service would never get an address",
        "remove the key and mlbatch:workloads.jupyterlab.sourceRanges, and use a port-forward",
    )


def _scratch(partial: PartialSettings, settings: WorkloadsSettings) -> Iterator[ConfigError]:
    gpu = partial.section(GpuSettings)
    if (gpu is None and _offers(partial, "gpu")) or (gpu is not None and gpu.nvme_scratch.enabled):
        return
    wanting: list[tuple[Path, bool]] = [
        (("workloads", "olmo", "enabled"), settings.olmo.enabled),
        (("workloads", "jupyterlab", "scratch"), settings.jupyterlab.enabled and settings.jupyterlab.scratch),
    ]
    for path, wants in wanting:
        if wants:
            switch = key(("gpu", "nvmeScratch", "enabled")) if _offers(partial, "gpu") else None
            yield ConfigError(
                path,
                "the pods mount the nodes' local disks, which no layer prepares: the pods would stay pending",
                f"set {switch} to true, or this to false" if switch else "set it to false",
            )


def _model(
    partial: PartialSettings, settings: WorkloadsSettings, training: PretrainingSettings
) -> Iterator[ConfigError]:
    """Yield the error of a model that does not fit into a GPU's memory, or else not into its volume or pod."""
    path: Path = ("workloads", "pretraining")
    memory = gpu_bytes(partial.pool) if partial.pool is not None else None
    weights, size = training.model.weights, training.checkpoints.size
    needed = pretraining.BYTES_PER_WEIGHT * weights
    if memory is not None and needed > memory:
        yield ConfigError(
            (*path, "embedding"),
            f"weights, gradients and optimizer of the model need {needed / 1e9:.0f} GB on each GPU, and a GPU "
            f"has {memory / (1 << 30):.0f} GiB",
            f"lower it, or lower {key((*path, 'layers'))}",
            expected=f"a model of at most {memory / pretraining.BYTES_PER_WEIGHT / 1e9:.1f} billion weights",
        )
    elif size.nano < training.model.checkpoint_bytes * 10**9:
        least = f"{math.ceil(training.model.checkpoint_bytes / (1 << 30))}Gi"
        yield ConfigError(
            (*path, "checkpoints", "size"),
            f"a model of {weights / 1e6:.0f} million weights has {pretraining.CHECKPOINTS_AT_A_TIME} "
            f"checkpoints of {pretraining.CHECKPOINT_BYTES_PER_WEIGHT * weights / 1e9:.1f} GB at a time",
            f"set it to {least}, or train a smaller model",
        )
    elif partial.pool is not None:
        yield from _going_on(settings, training, partial.pool)


def _going_on(settings: WorkloadsSettings, training: PretrainingSettings, pool: NodePool) -> Iterator[ConfigError]:
    """Yield the error of memory that is enough to start a training but not to resume it: each GPU has one process."""
    memory = training.memory or settings.memory
    processes = pool.shape.resources[names.GPU].nano // 10**9
    each = pretraining.CHECKPOINT_BYTES_PER_WEIGHT * training.model.weights
    if memory.nano >= processes * each * 10**9:
        return
    path: Path = ("workloads", "pretraining", "memory") if training.memory is not None else ("workloads", "memory")
    least, room = math.ceil(processes * each / (1 << 30)), pool.for_jobs[names.MEMORY] // _GIB
    more = f"at least {least}Gi (recommended: {min(2 * least, room)}Gi)" if room > least else f"{least}Gi"
    yield ConfigError(
        path,
        f"at a restart, {processes} processes of a pod read a checkpoint of {each / 1e9:.1f} GB each. "
        "The job could not resume",
        f"set it to {more}, or train a smaller model"
        if room >= least
        else f"train a smaller model, or use larger nodes: {_has(pool, names.MEMORY)}",
        expected=f"{least}Gi or more",
    )


def _tuning(partial: PartialSettings, tuning: FinetuningSettings) -> Iterator[ConfigError]:
    """Yield errors of a fine-tuning whose workers, or else head, or else both together, could never run."""
    problems = [*_together(partial, tuning)] or [*_workers(partial, tuning)] or [*_head(partial, tuning)]
    yield from problems or [*_beside(partial, tuning)][:1]


def _together(partial: PartialSettings, tuning: FinetuningSettings) -> Iterator[ConfigError]:
    """Yield the error of several workers on shared GPUs: two workers may get the same GPU.

    NCCL rejects a GPU that two processes of one training use (NVIDIA/nccl, src/init.cc: Duplicate GPU detected).
    """
    if _shares(partial) and tuning.workers != 1:
        yield ConfigError(
            ("workloads", "finetuning", "workers"),
            "workers that share a GPU cannot train together: NCCL needs a separate GPU for each",
            "set it to 1, or set mlbatch:nvshare.enabled to false",
        )


def _shares(partial: PartialSettings) -> bool:
    """Return whether several pods share each GPU. Jobs on whole nodes are then rejected (`nvshare.py`)."""
    return partial.gpu_resource == names.SHARED_GPU


def _head(partial: PartialSettings, tuning: FinetuningSettings) -> Iterator[ConfigError]:
    what, path = f"the head of {tuning.what}", ("workloads", "finetuning")
    asks = {names.CPU: (*path, "headCpu"), names.MEMORY: (*path, "headMemory")}
    job = Job(what=what, path=path, size="headCpu", pods=1, requests=tuning.head_amounts(), asks=asks)
    yield from _placed(partial, job, tuning, partial.pool)


def _beside(partial: PartialSettings, tuning: FinetuningSettings) -> Iterator[ConfigError]:
    """Yield the error of a head that does not fit next to the workers, on nodes or in the queue. All start together."""
    path: Path = ("workloads", "finetuning")
    head, worker, pool = tuning.head_amounts(), tuning.amounts(), partial.pool
    if pool is not None and pool.count:
        rooms = _rooms(partial, pool)
        alone = [_fitting(room, worker)[0] for room in rooms]
        beside = [_fitting({name: room[name] - head.get(name, ZERO) for name in worker}, worker) for room in rooms]
        taken, scarce, room = min(
            ((each - left, resource, room) for each, (left, resource), room in zip(alone, beside, rooms, strict=True)),
            key=lambda found: found[0],
        )
        fitting = sum(alone) - taken
        if fitting < tuning.workers:
            yield ConfigError(
                (*path, "workers"),
                f"{_fit(pool)} {fitting} such workers next to the head: {_has(pool, scarce)}, a "
                f"worker requests {worker[scarce]} and the head {head.get(scarce, ZERO)}",
                ("request fewer workers, or less" if fitting else "request less")
                + f" for each or for the head, or {more_room(partial)}",
                expected=f"at most {counted(fitting, 'worker')}"
                if fitting
                else f"a worker and a head that together request at most {room[scarce]} {scarce}",
            )
    if _is_queued(partial, tuning):
        needs = {name: amount * tuning.workers + head.get(name, ZERO) for name, amount in worker.items()}
        needs[names.PODS] = Quantity.parse(tuning.workers + 1)
        places: Mapping[str, Path] = dict.fromkeys(needs, (*path, "workers"))
        yield from _beyond(partial, tuning.submission.team, needs, f"{tuning.what} with its head", places)


def _rooms(partial: PartialSettings, pool: NodePool) -> list[Quota]:
    """Return what each node has for jobs. Values read from the cluster may differ by node."""
    labels = pool.nodes.node_selector
    nodes = partial.facts.nodes_with(labels) if pool.is_read and partial.facts is not None else ()
    has = [{name: Quantity.parse(node.allocatable.get(name, "0")) for name in names.RESOURCES} for node in nodes]
    read = [replace(pool, shape=replace(pool.shape, resources=partial.shared(amounts))).for_jobs for amounts in has]
    return read + [pool.for_jobs] * (pool.count - len(read))


def _fitting(room: Quota, pod: Quota) -> tuple[int, str]:
    """Return how many such pods fit, and the resource that limits them."""
    return min((room[resource] // amount, resource) for resource, amount in pod.items())


def _workers(partial: PartialSettings, tuning: FinetuningSettings) -> Iterator[ConfigError]:
    path: Path = ("workloads", "finetuning")
    asks = {names.CPU: (*path, "cpu"), names.MEMORY: (*path, "memory")}
    job = Job(what=tuning.what, path=path, size="workers", pods=tuning.workers, requests=tuning.amounts(), asks=asks)
    yield from _placed(partial, job, tuning, partial.pool)


def _operator(
    partial: PartialSettings, workload: str, job: WorkloadSettings, operator: str, kind: str
) -> Iterator[ConfigError]:
    """Yield errors of a job whose operator is off, or cannot act where the job is.

    Operators have access to teams' namespaces only (operator_scope.py). operator: its section. kind: of the job.
    """
    tenancy, queueing = partial.section(TenancySettings), partial.section(QueueingSettings)
    if job.submission.gang is SubmissionMode.NONE and tenancy is not None and tenancy.enabled:
        path: Path = ("workloads", workload, "submission", "gang")
        yield ConfigError(
            path,
            "the operator that makes its pods works in team namespaces only",
            f"set {key(path)} to mlbatch, and name a team",
        )
    if queueing is None or partial.target is None or not partial.target.installs_operators(partial):
        return
    switched_on = {
        "trainingOperator": queueing.training_operator.enabled,
        "trainer": queueing.trainer.enabled,
        "kuberay": queueing.kuberay.enabled,
    }
    if queueing.enabled and (switched_on[operator] or operator in partial.target.brings(partial)):
        return
    switch = key(("queueing", *([operator] if queueing.enabled else []), "enabled"))
    yield ConfigError(
        ("workloads", workload, "enabled"),
        f"{job.what} is a {kind}, and its operator is not installed",
        f"set {switch} to true, or this to false",
    )


def _data(
    partial: PartialSettings, settings: WorkloadsSettings, path: Path, job: WorkloadSettings, data: str | None
) -> Iterator[ConfigError]:
    """Yield the error of a job whose data volume is missing or in another namespace. path: of the job."""
    volumes = partial.target.volumes(partial) if partial.target is not None else None
    if partial.target is None or volumes is None:
        return
    if not partial.target.has_volumes:
        yield ConfigError(
            (*path, "data"),
            f"target {partial.target.name} has no volumes with data",
            "remove the key; the job then trains on generated texts",
        )
        return
    namespace = job.submission.team if job.queued else settings.namespace
    usable = [name for name, home in volumes.items() if home == namespace]
    allowed = listed(usable) if usable else _elsewhere(volumes, namespace)
    if data is None or data not in volumes:
        first = f"set it to {usable[0]}" if usable else f"add a volume of namespace {namespace or 'its team'}"
        yield ConfigError(
            (*path, "data"),
            f"{job.what} reads its data from a volume, but "
            + ("no volume is named" if data is None else "there is no such volume"),
            instead(data or "", volumes, first),
            expected=allowed,
        )
    elif namespace is not None and data not in usable:
        yield ConfigError(
            (*path, "data"),
            f"this volume is in namespace {volumes[data]}, the job in {namespace}",
            f"set the volume's namespace to {namespace}, or add one there",
            expected=allowed,
        )


def _elsewhere(volumes: Mapping[str, str], namespace: str | None) -> str:
    """Return in words that the job's namespace has no volume, and where the volumes are."""
    others = listed(f"{name} is in {home}" for name, home in volumes.items())
    where = f"a volume of namespace {namespace or 'its team'}"
    return f"{where}; there is none" + (f", but {others}" if volumes else "")
