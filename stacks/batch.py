"""The layers that are the same on every target: gang admission, quotas, teams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pulumi

from components import catalogue, names
from components.artefacts import Mirror, Release
from components.kubernetes.cluster import Cluster
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.queueing.appwrapper import AppWrappers, AppWrappersArgs
from components.queueing.kueue import Kueue, KueueArgs
from components.scheduling.priorities import Priorities, PrioritiesArgs
from components.tenancy.editor import EditorRole
from components.tenancy.flavor import DefaultFlavor, DefaultFlavorArgs
from components.tenancy.slack import SlackController, SlackControllerArgs, SlackQueue, SlackQueueArgs
from components.tenancy.team import Team, TeamArgs
from components.workloads.gang import Gang, GangArgs
from stacks.quotas import slack_quota, team_quotas
from stacks.settings import Settings

On: TypeAlias = Callable[..., pulumi.ResourceOptions]
"""Returns the options of a layer that stands on the given resources."""


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Upstream's files that the layers install."""

    kueue: Release
    appwrapper: Release


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What jobs are submitted to.

    teams: by name. ready: depend on these to submit an AppWrapper.
    """

    teams: Mapping[str, Team] = field(default_factory=dict)
    ready: Sequence[pulumi.Resource] = ()


def releases(settings: Settings, mirror: Mirror) -> Releases:
    """Read upstream's files; raises ArtefactError when they cannot be had."""
    queueing = settings.queueing
    return Releases(
        kueue=mirror.release(catalogue.find(catalogue.KUEUE, queueing.kueue_version)),
        appwrapper=mirror.release(catalogue.find(catalogue.APPWRAPPER, queueing.appwrapper_version)),
    )


def install(
    settings: Settings, mirror: Mirror, files: Releases, cluster: Cluster, on: On, after: Sequence[pulumi.Resource]
) -> Batch:
    """Register the layers from the priority classes to the teams and the sample job, once `after` stands."""
    cohort = settings.queueing.cohort

    # Scheduling
    priorities = Priorities("priorities", PrioritiesArgs(), on(*after))

    # Queueing
    system = Namespace("system", NamespaceArgs(name=names.SYSTEM_NAMESPACE), on(*after))
    wrappers = AppWrappers("appwrapper", AppWrappersArgs(release=files.appwrapper), on(system))
    kueue = Kueue("kueue", KueueArgs(release=files.kueue), on(system, *wrappers.definitions))

    # Tenancy
    flavor = DefaultFlavor("flavor", DefaultFlavorArgs(tolerations=cluster.placement.gpus.tolerations), on(kueue))
    slack = SlackQueueArgs(quota=slack_quota(settings.queueing, cluster.pool), cohort=cohort, flavor=flavor.name)
    SlackQueue("slack", slack, on(kueue))
    watcher = SlackControllerArgs(queue=names.SLACK_QUEUE, image=mirror.image(catalogue.PYTHON.reference))
    SlackController("slack-controller", watcher, on(system, kueue))
    editor = EditorRole("editor", on(*after))
    quotas = team_quotas(settings.teams, settings.queueing, cluster.pool)
    teams = {
        team.name: Team(
            team.name,
            TeamArgs(
                name=team.name,
                users=team.users,
                quota=quotas[team.name],
                borrowing_limit=team.borrowing_limit.amounts(),
                lending_limit=team.lending_limit.amounts(),
                cohort=cohort,
                flavor=flavor.name,
                role=editor.name,
            ),
            on(kueue),
        )
        for team in settings.teams
    }
    batch = Batch(teams=teams, ready=[kueue, wrappers, priorities])
    _sample(settings, mirror, batch, on)
    return batch


def _sample(settings: Settings, mirror: Mirror, batch: Batch, on: On) -> None:
    gang = settings.samples.gang
    if gang is None or not gang.enabled or gang.team is None:
        return
    team = batch.teams[gang.team]
    job = GangArgs(
        namespace=team.namespace,
        user=gang.user,
        pods=gang.pods,
        requests=gang.requests(),
        seconds=gang.seconds,
        priority_class=gang.priority_class,
        image=mirror.image(catalogue.BUSYBOX.reference),
    )
    Gang(gang.name, job, on(*batch.ready, team))
