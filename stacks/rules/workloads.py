"""Rules for workloads: what could never run, and options that exclude each other."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from components import names
from components.kubernetes.node_pool import NodePool
from components.workloads import metaseq
from components.workloads.interface import Exposure
from components.workloads.jobs import Gang
from stacks.problems import Path, Problem, key, listed, nearest
from stacks.reading import Parts
from stacks.rules import admission
from stacks.rules.admission import nodes_key
from stacks.settings.workloads import (
    JupyterLabSettings,
    NodeWorkloadSettings,
    SubmissionSettings,
    ViewerSettings,
    WorkloadsSettings,
    fabric_of,
)

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_GPU_MEMORY: Final = re.compile(r"-(\d+)GB")
_WHAT: Final = {
    "nccl": "the NCCL test",
    "metaseq": "the Metaseq training",
    "olmo": "the OLMo training",
    "jupyterlab": "JupyterLab",
}
_NO_VOLCANO: Final = {
    "olmo": "its pods are those of an Indexed Job, which Volcano does not start together",
    "jupyterlab": "it is a server and no job",
}
_WIDEST_IPV4: Final = 8
"""Shortest prefix of an address range; anything wider is next to everybody."""


def check(parts: Parts) -> Iterator[Problem]:
    """Yield what is wrong with the workloads."""
    settings = parts.workloads
    if settings is None:
        return
    yield from _names(parts, settings)
    for name, workload in settings.node_workloads().items():
        if workload.enabled:
            path: Path = ("workloads", name)
            yield from _submission(parts, path, workload.submission)
            yield from _runs(parts, settings, path, workload)
    for name, job in settings.jobs().items():
        if job.enabled and job.tag is None:
            yield _no_tag(("workloads", name, "tag"), job.image or _image(name))
    if settings.metaseq.enabled and parts.pool is not None:
        yield from _metaseq(parts, settings, parts.pool)
    if settings.olmo.enabled:
        yield from _data(parts, settings)
    if settings.jupyterlab.enabled:
        yield from _exposure(settings.jupyterlab)
    yield from _scratch(parts, settings)
    if settings.nccl.enabled:
        yield from _sizes(settings)
    yield from _viewers(settings)


def _image(name: str) -> str:
    return "nccltest" if name == "nccl" else name


def _names(parts: Parts, settings: WorkloadsSettings) -> Iterator[Problem]:
    teams = [name for name in parts.team_names if isinstance(name, str)]
    if settings.namespace in teams:
        yield Problem(
            path=("workloads", "namespace"),
            value=settings.namespace,
            wrong="this is a team's namespace: jobs that pass its queue by would take GPUs past its quota",
            allowed=f"any but {listed(teams)}",
            fix="name another namespace, or submit the workloads with gang: mlbatch",
        )
    first: dict[str, str] = {}
    named: dict[str, NodeWorkloadSettings | ViewerSettings] = {
        "nccl": settings.nccl,
        "metaseq": settings.metaseq,
        "olmo": settings.olmo,
        "jupyterlab": settings.jupyterlab,
        "aim": settings.aim,
        "tensorboard": settings.tensorboard,
    }
    for section, item in named.items():
        if not item.enabled:
            continue
        name = item.name
        path: Path = ("workloads", section, "name")
        if not _NAME.fullmatch(name):
            yield Problem(
                path=path,
                value=name,
                wrong="Kubernetes would reject this name, or the names that are made from it",
                allowed="at most 40 of a-z, 0-9 and -, with a letter first and a letter or digit last",
                fix=f"for example {section}",
            )
        if name in first:
            yield Problem(
                path=path,
                value=name,
                wrong=f"{key(('workloads', first[name], 'name'))} is {name!r} too",
                allowed="a name that no other workload has",
                fix="give one of the two another name",
            )
        first.setdefault(name, section)


def _submission(parts: Parts, path: Path, submission: SubmissionSettings) -> Iterator[Problem]:
    """Yield options that exclude each other, and ways that are not there."""
    where: Path = (*path, "submission")
    section = str(path[-1])
    gang = submission.gang
    if gang is not Gang.MLBATCH:
        for name, value in (("team", submission.team), ("user", submission.user)):
            if value is not None:
                yield Problem(
                    path=(*where, name),
                    value=value,
                    wrong=f"a {name} submits jobs through its queue, which gang: {gang} passes by; the two exclude "
                    "each other",
                    allowed=f"a {name} with gang: mlbatch, none with gang: {gang}",
                    fix=f"remove the {name}, or set {key((*where, 'gang'))} to mlbatch",
                )
    if gang is Gang.VOLCANO and section in _NO_VOLCANO:
        yield Problem(
            path=(*where, "gang"),
            value=str(gang),
            wrong=_NO_VOLCANO[section],
            allowed="mlbatch, none",
            fix=f"set {key((*where, 'gang'))} to mlbatch",
        )
    elif gang is Gang.VOLCANO and parts.volcano is not None and not parts.volcano.enabled:
        yield Problem(
            path=(*where, "gang"),
            value=str(gang),
            wrong="Volcano is not installed",
            allowed="mlbatch, none; volcano where it is installed",
            fix=f"set {key(('volcano', 'enabled'))} to true, or take another gang",
        )
    if gang is Gang.MLBATCH and parts.queueing is not None and not parts.queueing.enabled:
        yield Problem(
            path=(*where, "gang"),
            value=str(gang),
            wrong="there are no queues",
            allowed="none, and volcano where it is installed; mlbatch with queues",
            fix=f"set {key(('queueing', 'enabled'))} to true, or take another gang",
        )
    team = next((team for team in parts.teams if team is not None and team.name == submission.team), None)
    if gang is Gang.MLBATCH and team is not None and submission.user is not None and submission.user not in team.users:
        meant = nearest(submission.user, team.users)
        yield Problem(
            path=(*where, "user"),
            value=submission.user,
            wrong=f"this user is not in team {team.name}",
            allowed=listed(team.users),
            fix=f"did you mean {meant}?" if meant else f"add {submission.user} to the users of {team.name}",
        )


def _runs(parts: Parts, settings: WorkloadsSettings, path: Path, workload: NodeWorkloadSettings) -> Iterator[Problem]:
    """Yield why a workload could never run: on the nodes, and in its team's queue."""
    gang, team = workload.submission.gang, workload.submission.team
    queued = gang is Gang.MLBATCH and parts.queueing is not None and parts.queueing.enabled
    pool = parts.pool
    if pool is not None and workload.pods > pool.count:
        yield Problem(
            path=(*path, "nodes"),
            value=workload.pods,
            wrong=f"there are {pool.count} GPU nodes",
            allowed=f"a whole number from 1 to {pool.count}" if pool.count else "nothing while there are no GPU nodes",
            fix=f"ask for fewer, or raise {nodes_key(parts)}",
        )
        pool = None
    requests = settings.requests(workload, pool, fabric_of(pool)) if pool is not None else {}
    job = admission.Job(
        what=_WHAT[str(path[-1])],
        path=path,
        size="nodes",
        team=team,
        pods=workload.pods,
        requests=requests,
        submitter=(*path, "submission", "team"),
    )
    if pool is not None and queued:
        yield from admission.check(parts, job)
    elif pool is not None:
        yield from admission.on_nodes(parts, job)
    elif queued and team is None:
        known = [name for name in parts.team_names if isinstance(name, str)]
        yield Problem(
            path=(*path, "submission", "team"),
            wrong="a team has to submit the job",
            allowed=listed(known),
            fix=f"set it to {known[0]}" if known else "add a team to mlbatch:teams",
        )


def _no_tag(path: Path, image: str) -> Problem:
    return Problem(
        path=path,
        wrong=f"nothing says which image {image} to run; nobody publishes it",
        allowed="a tag of an image that you have built and pushed",
        fix="build it (docs/aks.md says how) and set the tag",
    )


def _sizes(settings: WorkloadsSettings) -> Iterator[Problem]:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    smallest, largest = (
        int(size.rstrip("KMG")) * units.get(size[-1], 1) for size in (settings.nccl.smallest, settings.nccl.largest)
    )
    if smallest > largest:
        yield Problem(
            path=("workloads", "nccl", "smallest"),
            value=settings.nccl.smallest,
            wrong=f"the smallest message is larger than the largest, {settings.nccl.largest}",
            allowed=f"at most {settings.nccl.largest}",
            fix="lower it, or raise largest",
        )


def gpu_bytes(pool: NodePool) -> int | None:
    """Return the memory of one of a pool's GPUs, None where the product's name does not tell."""
    found = _GPU_MEMORY.search(pool.shape.gpu_product)
    return int(found[1]) << 30 if found else None


def _metaseq(parts: Parts, settings: WorkloadsSettings, pool: NodePool) -> Iterator[Problem]:
    job = settings.metaseq
    size = metaseq.SIZES[job.size]
    gpus = pool.shape.resources[names.GPU].nano // 10**9
    if gpus == 0:
        return
    path: Path = ("workloads", "metaseq")
    try:
        metaseq.layout(size, job.nodes * gpus)
    except ValueError as error:
        yield Problem(
            path=(*path, "nodes"),
            value=job.nodes,
            wrong=f"{job.size} cannot be trained so: {error}",
            allowed=f"numbers of nodes whose {gpus} GPUs each make groups of {size.model_parallel}",
            fix=f"take another number of nodes, or another {key((*path, 'size'))}",
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
        usable = metaseq.USABLE_MEMORY * memory / (1 << 30)
        yield Problem(
            path=(*path, "size"),
            value=job.size,
            wrong=f"weights, gradients and optimizer of {job.size} take {needed:.0f} GB of GPU memory, and "
            f"{job.nodes * gpus} GPUs have {usable:.0f} GiB each for them",
            allowed=f"{job.size} on {fewest} nodes or more; on {job.nodes}: {listed(fitting)}",
            fix=f"set {key((*path, 'nodes'))} to {fewest}"
            + (f" and {nodes_key(parts)} to as many" if fewest > pool.count else "")
            + (f", or take {fitting[-1]}" if fitting else ""),
        )


def _exposure(settings: JupyterLabSettings) -> Iterator[Problem]:
    path: Path = ("workloads", "jupyterlab")
    if settings.exposure is Exposure.CLUSTER:
        if settings.source_ranges:
            yield Problem(
                path=(*path, "sourceRanges"),
                value=list(settings.source_ranges),
                wrong="without a load balancer nothing is reached from outside, whatever the addresses",
                allowed="address ranges with exposure internal or public",
                fix=f"remove them, or set {key((*path, 'exposure'))}",
            )
        return
    if not settings.source_ranges:
        yield Problem(
            path=(*path, "sourceRanges"),
            wrong=f"exposure {settings.exposure} without address ranges offers a shell on GPU nodes to everybody who "
            "can reach the load balancer",
            allowed="a list of CIDR blocks, such as 203.0.113.0/24",
            fix=f"add them, or set {key((*path, 'exposure'))} to cluster and use a port-forward",
        )
    for index, value in enumerate(settings.source_ranges):
        yield from _range((*path, "sourceRanges", index), value)


def _range(path: Path, value: str) -> Iterator[Problem]:
    try:
        network = ipaddress.ip_network(value)
    except ValueError as error:
        yield Problem(
            path=path,
            value=value,
            wrong=f"this is no address range: {error}",
            allowed="a CIDR block, such as 203.0.113.0/24",
            fix="correct it; a single address ends in /32",
        )
        return
    if (network.version == 4 and network.prefixlen < _WIDEST_IPV4) or (network.version == 6 and network.prefixlen < 32):
        yield Problem(
            path=path,
            value=value,
            wrong="this is next to every address there is",
            allowed="the addresses of those who use it",
            fix="name your own network's range",
        )


def _viewers(settings: WorkloadsSettings) -> Iterator[Problem]:
    job = settings.metaseq
    for name, viewer, writes, option in (
        ("aim", settings.aim, job.use_aim, "useAim"),
        ("tensorboard", settings.tensorboard, job.use_tensorboard, "useTensorboard"),
    ):
        if not viewer.enabled:
            continue
        path: Path = ("workloads", name)
        if not (job.enabled and writes):
            yield Problem(
                path=(*path, "enabled"),
                value=True,
                wrong="nothing writes logs for it to show",
                allowed=f"true with {key(('workloads', 'metaseq', option))}: true",
                fix=f"enable metaseq and set {option}, or turn {name} off",
            )
        if viewer.image is not None and viewer.tag is None:
            yield _no_tag((*path, "tag"), viewer.image)


def _scratch(parts: Parts, settings: WorkloadsSettings) -> Iterator[Problem]:
    if parts.gpu is None or parts.gpu.nvme_scratch.enabled:
        return
    wanting: list[tuple[Path, bool]] = [
        (("workloads", "olmo", "enabled"), settings.olmo.enabled),
        (("workloads", "jupyterlab", "scratch"), settings.jupyterlab.enabled and settings.jupyterlab.scratch),
    ]
    for path, wants in wanting:
        if wants:
            switch = key(("gpu", "nvmeScratch", "enabled"))
            yield Problem(
                path=path,
                value=True,
                wrong="its pods mount the nodes' local disks, which nothing makes ready: they would wait for ever",
                allowed=f"true with {switch}: true",
                fix=f"set {switch} to true, or this to false",
            )


def _data(parts: Parts, settings: WorkloadsSettings) -> Iterator[Problem]:
    if parts.storage is None:
        return
    job = settings.olmo
    in_team = job.submission.gang is Gang.MLBATCH
    namespace = job.submission.team if in_team else settings.namespace
    volumes = {volume.name: volume for volume in parts.storage.volumes}
    usable = [name for name, volume in volumes.items() if volume.namespace == namespace]
    path: Path = ("workloads", "olmo", "data")
    if job.data is None or job.data not in volumes:
        meant = nearest(job.data, volumes) if job.data else None
        first = (
            f"set it to {usable[0]}" if usable else f"add a volume of namespace {namespace} to mlbatch:storage.volumes"
        )
        yield Problem(
            path=path,
            **({} if job.data is None else {"value": job.data}),
            wrong="OLMo reads its data from blob storage, and "
            + ("no volume is named" if job.data is None else "there is no such volume"),
            allowed=listed(usable),
            fix=f"did you mean {meant}?" if meant else first,
        )
    elif namespace is not None and job.data not in usable:
        yield Problem(
            path=path,
            value=job.data,
            wrong=f"this volume is in namespace {volumes[job.data].namespace}, and the job in {namespace}",
            allowed=listed(usable),
            fix=f"set the volume's namespace to {namespace}, or add one there",
        )
