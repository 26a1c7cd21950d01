"""Checks that names do not collide: of teams, their namespaces and queues, and the stack's own objects."""

from __future__ import annotations

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

_OWN: Final = frozenset(
    {
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
"""Namespaces that the platform's layers make."""
_RESERVED: Final = frozenset({"default", *_OWN})
_RESERVED_PREFIXES: Final = ("kube-", "openshift-")


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of namespace names that are taken."""
    yield from _teams(partial)
    yield from _workloads(partial)
    yield from _monitoring(partial)


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
                path=path,
                value=name,
                message=f"the team's queue would be {names.SLACK_QUEUE}, which is the slack queue's name",
                expected=f"any name but {names.SLACK_TEAM}",
                hint="give the team another name; the slack quota is set in mlbatch:queueing.slack",
            )
        if name in first:
            yield ConfigError(
                path=path,
                value=name,
                message=f"duplicate team name: {key(('teams', first[name], 'name'))} is {name!r} too",
                expected="a name that no other team has",
                hint="rename one of the two, or merge the teams",
            )
        first.setdefault(name, index)


def _workloads(partial: PartialSettings) -> Iterator[ConfigError]:
    settings = partial.section(WorkloadsSettings)
    if settings is not None:
        name, path = settings.namespace, ("workloads", "namespace")
        yield from label_error(path, name)
        yield from not_reserved(
            partial,
            path,
            name,
            message="this namespace belongs to the cluster or to another layer of the platform",
            hint="name another namespace, or remove the key",
        )
    teams = [name for name in partial.team_names if isinstance(name, str)]
    if settings is None or settings.namespace not in teams:
        return
    path, message = ("workloads", "namespace"), "jobs there that bypass its queue would exceed its quota"
    if partial.written(path) is MISSING:
        yield ConfigError(
            path=("teams", partial.team_names.index(settings.namespace), "name"),
            value=settings.namespace,
            message=f"this is the namespace of workloads without a team: {message}",
            expected=f"any name but {settings.namespace}, while {key(path)} is its default",
            hint=f"give the team another name, or name another namespace in {key(path)}",
        )
        return
    yield ConfigError(
        path=path,
        value=settings.namespace,
        message=f"this is a team's namespace: {message}",
        expected=f"any but {listed(teams)}",
        hint="name another namespace, or give the team another name",
    )


def _monitoring(partial: PartialSettings) -> Iterator[ConfigError]:
    settings = partial.section(MonitoringSettings)
    if settings is not None and settings.enabled:
        yield from not_reserved(
            partial,
            ("monitoring", "namespace"),
            settings.namespace,
            message="this namespace belongs to the cluster or to another layer of the platform",
            hint="name another namespace, or remove the key",
            own=_of_target(partial),
        )


def _of_target(partial: PartialSettings) -> Collection[str]:
    return tuple(partial.target.namespaces_made(partial)) if partial.target is not None else ()


def not_reserved(
    partial: PartialSettings, path: Path, name: str, *, message: str, hint: str, own: Collection[str] | None = None
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
            path=path,
            value=name,
            message=message,
            expected=f"any but {listed(sorted(taken))}, and none that starts with {listed(prefixes)}",
            hint=hint,
        )
