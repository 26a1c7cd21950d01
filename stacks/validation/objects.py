"""Lists the objects whose names come from settings, and checks that the names are unique.

Kind, namespace and name identify an object. The list includes objects that AppWrapper creates from its contents and
that Volcano's plugins create for a job. Tests compare it with the program's registered objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from components.kubernetes.network import NAME as BOUNDARY
from components.passwords import GRAFANA, MLOPS
from components.tenancy.team import Subject, binding_name
from components.workloads.indexed_job import files_name, service_name
from components.workloads.interface import Exposure
from components.workloads.pretraining import Kind
from components.workloads.submission import SubmissionMode
from components.workloads.volcano_job import LAUNCHER_ACCOUNT
from stacks.config.errors import ConfigError, Path, key
from stacks.config.secrets import GRAFANA_PASSWORD, JUPYTER_TOKEN, MLOPS_PASSWORD
from stacks.derived.partial import PartialSettings
from stacks.settings.mlops import MlopsSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.samples import SamplesSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import TenancySettings
from stacks.settings.volcano import VolcanoSettings
from stacks.settings.workloads import JobSettings, WorkloadsSettings
from stacks.targets.spec import PLATFORM, Planned
from stacks.validation import network


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield each setting whose name another object already has, once for each setting."""
    first: dict[tuple[str, str, str], Path] = {}
    told: set[Path] = set()
    for item in planned(partial):
        taken = first.setdefault(item.identity, item.path)
        if taken == item.path or item.path in told:
            continue
        told.add(item.path)
        yield _taken(item, taken)


def planned(partial: PartialSettings) -> Iterable[Planned]:
    """Return the objects whose names come from settings, and the platform's own objects."""
    return chain(_platform(partial), _members(partial), _workloads(partial), _sample(partial), _target(partial))


def _taken(item: Planned, by: Path) -> ConfigError:
    whose = "of the platform's own" if by == PLATFORM else f"that {key(by)} names"
    where = f" in namespace {item.namespace}" if item.namespace else ""
    return ConfigError(
        path=item.path,
        value=item.name,
        message=f"there would be two objects of kind {item.kind} with the name {item.name}{where}: this one and one "
        + whose,
        expected="a unique name, also for objects that are named after it",
        hint="give one of the two another name",
    )


def _platform(partial: PartialSettings) -> Iterator[Planned]:
    """Yield the platform's own objects of the kinds that settings name."""
    monitoring, volcano = partial.section(MonitoringSettings), partial.section(VolcanoSettings)
    if monitoring is not None and monitoring.enabled and GRAFANA_PASSWORD not in partial.secrets:
        yield Planned("RandomPassword", "", GRAFANA, PLATFORM)
    mlops = partial.section(MlopsSettings)
    if mlops is not None and mlops.enabled and not mlops.upstream_access and MLOPS_PASSWORD not in partial.secrets:
        yield Planned("RandomPassword", "", MLOPS, PLATFORM)
    tenancy, workloads = partial.section(TenancySettings), partial.section(WorkloadsSettings)
    if workloads is not None and volcano is not None and volcano.enabled:
        yield Planned("RoleBinding", workloads.namespace, LAUNCHER_ACCOUNT, PLATFORM)
    if tenancy is None or not tenancy.network.enabled:
        return
    teams = [team.name for team in partial.known_teams] if network.has_teams(partial) else []
    for namespace in [*teams, *([workloads.namespace] if workloads is not None else [])]:
        yield Planned("NetworkPolicy", namespace, BOUNDARY, PLATFORM)


def _members(partial: PartialSettings) -> Iterator[Planned]:
    """Yield the members' bindings."""
    if not network.has_teams(partial):
        return
    for index, team in enumerate(partial.teams):
        for field, kind, members in (
            ("users", Subject.USER, team.users if team is not None else ()),
            ("groups", Subject.GROUP, team.groups if team is not None else ()),
        ):
            for position, member in enumerate(dict.fromkeys(members)):
                path: Path = ("teams", index, field, position)
                yield Planned("RoleBinding", team.name if team else "", binding_name(member, kind), path)


def _workloads(partial: PartialSettings) -> Iterator[Planned]:
    settings = partial.section(WorkloadsSettings)
    if settings is None:
        return
    for section, job in settings.jobs().items():
        if job.enabled:
            yield from _job(partial, settings, job, ("workloads", section, "name"))
    if settings.jupyterlab.enabled:
        yield from _jupyterlab(partial, settings)
    if settings.vllm.enabled:
        yield from _vllm(partial, settings)
    if settings.pretraining.enabled:
        yield from _pretraining(settings)
    if settings.finetuning.enabled:
        yield from _finetuning(partial, settings)
    home = settings.home(settings.metaseq) or ""
    for section, viewer in settings.viewers().items():
        if viewer.enabled:
            path: Path = ("workloads", section, "name")
            for kind in ("Workload", "Deployment", "Service"):
                yield Planned(kind, "" if kind == "Workload" else home, viewer.name, path)
    if settings.logs_needed():
        yield Planned("PersistentVolumeClaim", home, settings.logs.name, ("workloads", "logs", "name"))


def _job(partial: PartialSettings, settings: WorkloadsSettings, job: JobSettings, path: Path) -> Iterator[Planned]:
    namespace, name, mode = settings.home(job) or "", job.name, job.submission.gang
    yield Planned("Workload", "", name, path)
    if path[1] != "olmo" and not (path[1] == "nccl" and mode is SubmissionMode.VOLCANO):
        yield Planned("ConfigMap", namespace, files_name(name), path)
    if path[1] != "nccl":
        yield Planned("PodDisruptionBudget", namespace, name, path)
    if mode is SubmissionMode.VOLCANO:
        yield from _volcano(namespace, name, path)
        return
    yield Planned("Service", namespace, service_name(name), path)
    yield Planned("Job", namespace, name, path)
    if mode is SubmissionMode.MLBATCH:
        yield from _wrapped(partial, namespace, name, path)


def _volcano(namespace: str, name: str, path: Path) -> Iterator[Planned]:
    """Yield a Volcano Job and the objects that its plugins create.

    Source: volcano-sh/volcano, pkg/controllers/job/plugins/ssh/ssh.go and svc/svc.go.
    """
    yield Planned("Volcano Job", namespace, name, path)
    yield Planned("Service", namespace, name, path)
    yield Planned("NetworkPolicy", namespace, name, path)
    yield Planned("ConfigMap", namespace, f"{name}-svc", path)
    yield Planned("Secret", namespace, f"{name}-ssh", path)


def _wrapped(partial: PartialSettings, namespace: str, name: str, path: Path) -> Iterator[Planned]:
    yield Planned("AppWrapper", namespace, name, path)
    yield from _gang(partial, namespace, name, path)


def _gang(partial: PartialSettings, namespace: str, name: str, path: Path) -> Iterator[Planned]:
    scheduling = partial.section(SchedulingSettings)
    if scheduling is not None and scheduling.packing.has_pod_groups:
        yield Planned("PodGroup", namespace, name, path)


def _jupyterlab(partial: PartialSettings, settings: WorkloadsSettings) -> Iterator[Planned]:
    lab, tenancy = settings.jupyterlab, partial.section(TenancySettings)
    namespace, name, path = settings.home(lab) or "", lab.name, ("workloads", "jupyterlab", "name")
    yield Planned("Workload", "", name, path)
    if JUPYTER_TOKEN not in partial.secrets:
        yield Planned("RandomPassword", "", name, path)
    for kind in ("Deployment", "Service", "PodDisruptionBudget"):
        yield Planned(kind, namespace, name, path)
    yield Planned("Secret", namespace, f"{name}-token", path)
    yield Planned("PersistentVolumeClaim", namespace, f"{name}-home", path)
    if lab.exposure is not Exposure.CLUSTER and tenancy is not None and tenancy.network.enabled:
        yield Planned("NetworkPolicy", namespace, name, path)
    if lab.queued:
        yield Planned("AppWrapper", namespace, name, path)


def _vllm(partial: PartialSettings, settings: WorkloadsSettings) -> Iterator[Planned]:
    batch = settings.vllm
    namespace, path = settings.home(batch) or "", ("workloads", "vllm", "name")
    yield Planned("Workload", "", batch.name, path)
    yield Planned("Job", namespace, batch.name, path)
    yield Planned("PersistentVolumeClaim", namespace, batch.claim, ("workloads", "vllm", "cache", "name"))
    if batch.queued:
        yield Planned("AppWrapper", namespace, batch.name, path)


def _pretraining(settings: WorkloadsSettings) -> Iterator[Planned]:
    job, path = settings.pretraining, ("workloads", "pretraining", "name")
    namespace = settings.home(job) or ""
    yield Planned("Workload", "", job.name, path)
    yield Planned(job.kind, namespace, job.name, path)
    yield Planned("ConfigMap", namespace, files_name(job.name), path)
    named = path if job.checkpoints.name is None else ("workloads", "pretraining", "checkpoints", "name")
    yield Planned("PersistentVolumeClaim", namespace, job.claim, named)
    if job.queued and job.kind is Kind.PYTORCH_JOB:
        yield Planned("AppWrapper", namespace, job.name, path)


def _finetuning(partial: PartialSettings, settings: WorkloadsSettings) -> Iterator[Planned]:
    job, path = settings.finetuning, ("workloads", "finetuning", "name")
    namespace = settings.home(job) or ""
    yield Planned("Workload", "", job.name, path)
    yield Planned("RayJob", namespace, job.name, path)
    yield Planned("ConfigMap", namespace, files_name(job.name), path)
    yield Planned("PersistentVolumeClaim", namespace, job.claim, path)
    if job.queued:
        yield from _gang(partial, namespace, job.name, path)


def _sample(partial: PartialSettings) -> Iterator[Planned]:
    samples = partial.section(SamplesSettings)
    gang = samples.gang if samples is not None else None
    if gang is not None and gang.enabled and gang.team is not None:
        path: Path = ("samples", "gang", "name")
        yield Planned("Job", gang.team, gang.name, path)
        yield from _wrapped(partial, gang.team, gang.name, path)


def _target(partial: PartialSettings) -> Iterable[Planned]:
    return partial.target.planned(partial) if partial.target is not None else ()
