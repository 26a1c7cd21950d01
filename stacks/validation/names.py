"""Checks that names do not collide: of teams, their namespaces and queues, and the stack's own objects."""

from collections.abc import Collection, Iterator
from typing import Final

from components import names
from components.health import autopilot, reporter
from components.nodes import feature_discovery, node_agent, nvshare
from components.observability import prometheus
from components.scheduling import coscheduling, sakkara, volcano
from stacks.config.errors import MISSING, ConfigError, Path, key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.names import label_error
from stacks.settings.workloads import WorkloadsSettings
from stacks.validation.walk import apply

_RESERVED: Final = frozenset(
    {
        "default",
        names.SYSTEM_NAMESPACE,
        feature_discovery.OPERATOR_NAMESPACE,
        node_agent.NAMESPACE,
        reporter.NAMESPACE,
        autopilot.NAMESPACE,
        coscheduling.NAMESPACE,
        sakkara.NAMESPACE,
        nvshare.NAMESPACE,
        volcano.NAMESPACE,
    }
)
"""Kubernetes' default namespace, and those that the platform's layers make."""
_RESERVED_PREFIXES: Final = ("kube-", "openshift-")


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of namespace names that are taken."""
    yield from apply(partial, _teams, _workloads, _monitoring)


def usable_teams(partial: PartialSettings) -> list[str]:
    """Return the teams' names that are not rejected."""
    rejected = {error.path[1] for error in _teams(partial)}
    return [
        str(name) for index, name in enumerate(partial.team_names) if isinstance(name, str) and index not in rejected
    ]


def reserved(partial: PartialSettings) -> tuple[str, ...]:
    """Return the prefixes of the cluster's own namespaces."""
    found = {*_RESERVED_PREFIXES, *(partial.target.namespaces if partial.target is not None else ())}
    return tuple(sorted(each for each in found if not each.startswith(tuple(found - {each}))))


def _teams(partial: PartialSettings) -> Iterator[ConfigError]:
    first: dict[str, int] = {}
    for index, name in enumerate(partial.team_names):
        if not isinstance(name, str):
            continue
        path: Path = ("teams", index, "name")
        yield from label_error(path, name)  # also of a team that is invalid otherwise
        yield from not_reserved(
            partial,
            path,
            name,
            message="a team's name is also its namespace, and this namespace belongs to the cluster or the platform",
            hint="give the team another name",
        )
        if name == names.SLACK_TEAM:
            yield ConfigError(
                path,
                f"the team's queue would be {names.SLACK_QUEUE}, which is the slack queue's name",
                "give the team another name; the slack quota is set in mlbatch:queueing.slack",
            )
        if name in first:
            yield ConfigError(
                path,
                f"duplicate team name: {key(('teams', first[name], 'name'))} is {name!r} too",
                "rename one of the two teams, or merge them",
            )
        first.setdefault(name, index)


def _workloads(partial: PartialSettings, settings: WorkloadsSettings) -> Iterator[ConfigError]:
    path, message = ("workloads", "namespace"), "jobs there that bypass its queue would exceed its quota"
    yield from label_error(path, settings.namespace)
    yield from not_reserved(partial, path, settings.namespace)
    teams = [name for name in partial.team_names if isinstance(name, str)]
    if settings.namespace not in teams:
        return
    if partial.written(path) is MISSING:
        yield ConfigError(
            ("teams", partial.team_names.index(settings.namespace), "name"),
            f"this is the namespace of workloads without a team: {message}",
            f"give the team another name, or name another namespace in {key(path)}",
        )
        return
    yield ConfigError(
        path,
        f"this is a team's namespace: {message}",
        "name another namespace, or give the team another name",
        expected=f"any but {listed(teams)}",
    )


def _monitoring(partial: PartialSettings, settings: MonitoringSettings) -> Iterator[ConfigError]:
    if settings.enabled:
        yield from not_reserved(partial, ("monitoring", "namespace"), settings.namespace, own=_of_target(partial))


def _of_target(partial: PartialSettings) -> Collection[str]:
    return tuple(partial.target.namespaces_made(partial)) if partial.target is not None else ()


def not_reserved(
    partial: PartialSettings,
    path: Path,
    name: str,
    *,
    message: str = "this namespace belongs to the cluster or to another layer of the platform",
    hint: str = "name another namespace, or remove the key",
    own: Collection[str] | None = None,
) -> Iterator[ConfigError]:
    """Yield the error of a name that is taken.

    own: namespaces that settings give the platform; default that of monitoring, and what the target makes.
    """
    if own is None:
        monitoring = partial.section(MonitoringSettings)
        own = [monitoring.namespace if monitoring is not None else prometheus.NAMESPACE, *_of_target(partial)]
    taken, prefixes = _RESERVED.union(own), reserved(partial)
    if name in taken or name.startswith(prefixes):
        yield ConfigError(
            path,
            message,
            hint,
            expected=f"any but {listed(sorted(taken))}, and none that starts with {listed(prefixes)}",
        )
