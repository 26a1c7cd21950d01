"""Lists the objects whose names come from settings, and checks that the names are unique.

Kind, namespace and name identify an object. The list includes objects that AppWrapper creates from its contents and
that Volcano's plugins create for a job. Tests compare it with the program's registered objects.
"""

from collections.abc import Iterator

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
from stacks.settings.finetuning import FinetuningSettings
from stacks.settings.mlops import MlopsSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.samples import SamplesSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.submission import WorkloadSettings
from stacks.settings.tenancy import TenancySettings
from stacks.settings.vllm import VllmSettings
from stacks.settings.volcano import VolcanoSettings
from stacks.settings.workloads import (
    JobSettings,
    JupyterLabSettings,
    PretrainingSettings,
    ViewerSettings,
    WorkloadsSettings,
)
from stacks.targets.spec import PLATFORM, Planned
from stacks.validation import network
from stacks.validation.walk import apply


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield each setting whose name another object already has, once for each setting."""
    first: dict[tuple[str, str, str], Path] = {}
    told: set[Path] = set()
    for item in planned(partial):
        by = first.setdefault(item.identity, item.path)
        if by == item.path or item.path in told:
            continue
        told.add(item.path)
        is_platform, mine = by == PLATFORM, key(item.path)
        owner = "the platform already has" if is_platform else f"{key(by)} already names"
        where = f" in namespace {item.namespace}" if item.namespace else ""
        yield ConfigError(
            item.path,
            f"{owner} the {item.kind} {item.name}{where}",
            f"set {mine} to another name" if is_platform else f"change {mine} or {key(by)}",
        )


def planned(partial: PartialSettings) -> Iterator[Planned]:
    """Yield the objects whose names come from settings, and the platform's own objects."""
    yield from apply(partial, _platform, _members, _workloads, _viewers, _sample)
    if partial.target is not None:
        yield from partial.target.planned(partial)


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
    for index, team in partial.numbered_teams:
        for field, kind, members in (("users", Subject.USER, team.users), ("groups", Subject.GROUP, team.groups)):
            for position, member in enumerate(dict.fromkeys(members)):
                path: Path = ("teams", index, field, position)
                yield Planned("RoleBinding", team.name, binding_name(member, kind), path)


def _workloads(partial: PartialSettings, settings: WorkloadsSettings) -> Iterator[Planned]:
    for section, workload in settings.of(WorkloadSettings).items():
        if workload.enabled:
            path: Path = ("workloads", section, "name")
            yield Planned("Workload", "", workload.name, path)
            yield from _of_workload(partial, workload, settings.home(workload) or "", path)


def _of_workload(partial: PartialSettings, workload: WorkloadSettings, namespace: str, path: Path) -> Iterator[Planned]:
    name = workload.name
    match workload:
        case JobSettings():
            yield from _job(partial, workload, namespace, path)
        case JupyterLabSettings():
            yield from _jupyterlab(partial, workload, namespace, path)
        case VllmSettings():
            yield Planned("Job", namespace, name, path)
            yield Planned("PersistentVolumeClaim", namespace, workload.claim, ("workloads", "vllm", "cache", "name"))
            if workload.queued:
                yield Planned("AppWrapper", namespace, name, path)
        case PretrainingSettings():
            yield Planned(workload.kind, namespace, name, path)
            yield Planned("ConfigMap", namespace, files_name(name), path)
            named = path if workload.checkpoints.name is None else (*path[:-1], "checkpoints", "name")
            yield Planned("PersistentVolumeClaim", namespace, workload.claim, named)
            if workload.queued and workload.kind is Kind.PYTORCH_JOB:
                yield Planned("AppWrapper", namespace, name, path)
        case FinetuningSettings():
            yield Planned("RayJob", namespace, name, path)
            yield Planned("ConfigMap", namespace, files_name(name), path)
            yield Planned("PersistentVolumeClaim", namespace, workload.claim, path)
            if workload.queued:
                yield from _gang(partial, namespace, name, path)


def _viewers(partial: PartialSettings, settings: WorkloadsSettings) -> Iterator[Planned]:
    home = settings.home(settings.metaseq) or ""
    for section, viewer in settings.of(ViewerSettings).items():
        if viewer.enabled:
            path: Path = ("workloads", section, "name")
            for kind in ("Workload", "Deployment", "Service"):
                yield Planned(kind, "" if kind == "Workload" else home, viewer.name, path)
    if settings.logs_needed():
        yield Planned("PersistentVolumeClaim", home, settings.logs.name, ("workloads", "logs", "name"))


def _job(partial: PartialSettings, job: JobSettings, namespace: str, path: Path) -> Iterator[Planned]:
    name, mode = job.name, job.submission.gang
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


def _jupyterlab(partial: PartialSettings, lab: JupyterLabSettings, namespace: str, path: Path) -> Iterator[Planned]:
    name, tenancy = lab.name, partial.section(TenancySettings)
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


def _sample(partial: PartialSettings, samples: SamplesSettings) -> Iterator[Planned]:
    gang = samples.gang
    if gang is not None and gang.enabled and gang.team is not None:
        path: Path = ("samples", "gang", "name")
        yield Planned("Job", gang.team, gang.name, path)
        yield from _wrapped(partial, gang.team, gang.name, path)
