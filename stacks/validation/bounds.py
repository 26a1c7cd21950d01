"""Checks that the stack's own objects in a team's namespace are within the team's bounds."""

from collections.abc import Iterator

from components.kubernetes.quantity import ZERO, Quantity
from components.workloads.interface import Exposure
from stacks.config.errors import ConfigError, Path, key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.submission import WorkloadSettings
from stacks.settings.tenancy import TeamSettings
from stacks.settings.workloads import WorkloadsSettings
from stacks.targets.spec import Claim
from stacks.validation import objects


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of objects that the API server would reject because of a team's bounds."""
    claims = list(_claims(partial))
    for index, team in partial.numbered_teams:
        yield from _exposure(partial, index, team)
        yield from _storage(index, team, [claim for claim in claims if claim.namespace == team.name])
        yield from _services(partial, index, team)


def _exposure(partial: PartialSettings, index: int, team: TeamSettings) -> Iterator[ConfigError]:
    workloads = partial.section(WorkloadsSettings)
    if workloads is None or _team(workloads.jupyterlab) != team.name or team.services.load_balancers:
        return
    exposure = workloads.jupyterlab.exposure
    if partial.target is None or not partial.target.has_load_balancers:
        return  # another error reports a target without load balancers
    if exposure is not Exposure.CLUSTER:
        allowed = key(("teams", index, "services", "loadBalancers"))
        yield ConfigError(
            ("workloads", "jupyterlab", "exposure"),
            f"this needs a load balancer in the namespace of team {team.name}, whose limit is 0: a member "
            "could replace it with another one",
            f"set {allowed} to 1, or this to cluster and use a port-forward",
        )


def _storage(index: int, team: TeamSettings, claims: list[Claim]) -> Iterator[ConfigError]:
    path: Path = ("teams", index, "storage")
    total = ZERO
    for claim in claims:
        total = total + claim.size
    keys = listed(key(claim.path) for claim in claims)
    if team.storage.size < total:
        yield ConfigError(
            (*path, "size"),
            f"the stack's own volumes in the team's namespace request {total} in total: {keys}",
            f"raise {key((*path, 'size'))} to fit these and the team's own volumes, or make these smaller",
        )
    if team.storage.claims < len(claims):
        yield ConfigError(
            (*path, "claims"),
            f"the stack itself has {len(claims)} volumes in the team's namespace: {keys}",
            f"raise {key((*path, 'claims'))} to fit these and the team's own volumes",
        )


def _services(partial: PartialSettings, index: int, team: TeamSettings) -> Iterator[ConfigError]:
    own = [item for item in objects.planned(partial) if (item.kind, item.namespace) == ("Service", team.name)]
    if team.services.total < len(own):
        yield ConfigError(
            ("teams", index, "services", "total"),
            f"the stack itself has {len(own)} Services in the team's namespace: " + listed(item.name for item in own),
            f"raise {key(('teams', index, 'services', 'total'))} to fit these and those of the team's jobs",
        )


def _claims(partial: PartialSettings) -> Iterator[Claim]:
    """Yield the claims that the stack makes in teams' namespaces."""
    if partial.target is not None:
        yield from partial.target.claims(partial)
    workloads = partial.section(WorkloadsSettings)
    if workloads is None:
        return
    lab, training = workloads.jupyterlab, workloads.metaseq
    sizes: tuple[tuple[Path, WorkloadSettings, Quantity], ...] = (
        (("jupyterlab", "fsSize"), lab, Quantity.parse(f"{lab.fs_size}Ti")),
        (("vllm", "cache", "size"), workloads.vllm, workloads.vllm.cache.size),
        (("pretraining", "checkpoints", "size"), workloads.pretraining, workloads.pretraining.checkpoints.size),
        (("finetuning", "result", "size"), workloads.finetuning, workloads.finetuning.result.size),
    )
    for path, workload, size in sizes:
        if (team := _team(workload)) is not None:
            yield Claim(path=("workloads", *path), namespace=team, size=size)
    if workloads.logs_needed() and training.queued and (team := training.submission.team) is not None:
        yield Claim(path=("workloads", "logs", "size"), namespace=team, size=workloads.logs.size)


def _team(workload: WorkloadSettings) -> str | None:
    return workload.submission.team if workload.enabled and workload.queued else None
