"""Teams that share the cluster: flavor, slack queue and its controller, role, a queue for each team."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pulumi

from components import catalogue, names
from components.job_kinds import TRAIN_JOB
from components.kubernetes.cluster import Cluster
from components.kubernetes.node_pool import NodePool
from components.observability.prometheus import Monitoring, SlackMonitor
from components.scheduling.packing import Packing
from components.scheduling.topology import Topology, TopologyArgs
from components.tenancy.bounds import APPWRAPPERS, POD_GROUPS
from components.tenancy.editor import EditorRole, EditorRoleArgs
from components.tenancy.flavor import Flavor, FlavorArgs, resource_flavor
from components.tenancy.quota import FlavorQuota
from components.tenancy.slack import SlackController, SlackControllerArgs, SlackQueue, SlackQueueArgs
from components.tenancy.team import Team, TeamArgs
from stacks.config.inputs import StackInputs
from stacks.layers import boundary
from stacks.layers.network import network
from stacks.layers.queueing import Queueing
from stacks.settings.tenancy import TeamSettings


@dataclass(frozen=True, kw_only=True)
class Tenancy:
    """The teams by name. flavor: of the first node pool, None without queues."""

    teams: Mapping[str, Team] = field(default_factory=dict)
    flavor: pulumi.Output[str] | None = None


def install(
    inputs: StackInputs[Any], cluster: Cluster, queueing: Queueing | None, metrics: Monitoring | None
) -> Tenancy:
    """Register the queues and what belongs to them; return the teams."""
    settings, resolved = inputs.settings, inputs.resolved
    if queueing is None or not settings.tenancy.enabled:
        return Tenancy()
    options, cohort = cluster.options(*queueing.kueue), settings.queueing.cohort
    topology, levels = None, settings.scheduling.topology.levels
    if settings.scheduling.packing is Packing.TOPOLOGY:
        topology = Topology("topology", TopologyArgs(levels=levels), options).name
    taken = resolved.running_kueue.flavors if resolved.running_kueue is not None else ()
    wanted = [_flavor(cluster, pool, topology, levels, taken) for pool in cluster.pools]
    flavors = [
        Flavor("flavor" if index == 0 else f"flavor-{args.name}", args, options) for index, args in enumerate(wanted)
    ]
    covered = settings.queueing.covered
    slack = SlackQueueArgs(
        flavors=[
            FlavorQuota(flavor=flavor.name, quota=division.slack)
            for flavor, division in zip(flavors, resolved.divisions, strict=True)
        ],
        cohort=cohort,
        covered=covered,
        gpu_resource=cluster.gpu_resource,
        kueue_api=cluster.kueue_api,
    )
    SlackQueue("slack", slack, options)
    watched = cluster.options(queueing.namespace, *queueing.ready)
    SlackController("slack-controller", _slack_controller(inputs, cluster, wanted), watched)
    if metrics is not None:
        SlackMonitor("slack-monitor", cluster.options(metrics, queueing.namespace))
    rights = EditorRoleArgs(
        reads_secrets=settings.tenancy.read_secrets,
        enters_pods=settings.tenancy.exec,
        unwrapped_ray=settings.tenancy.unwrapped_ray,
        has_projects=inputs.target.has_projects,
    )
    editor = EditorRole("editor", rights, cluster.options())
    bounded = cluster.options(*queueing.ready, *boundary.install(inputs, cluster))
    teams = {
        team.name: Team(team.name, _team(inputs, cluster, team, flavors, editor), bounded) for team in settings.teams
    }
    return Tenancy(teams=teams, flavor=flavors[0].name)


def _flavor(
    cluster: Cluster, pool: NodePool, topology: pulumi.Input[str] | None, levels: Sequence[str], taken: Sequence[str]
) -> FlavorArgs:
    return FlavorArgs(
        name=f"mlbatch-{pool.name}" if pool.name in taken else pool.name,
        nodes=pool.nodes.node_selector,
        tolerations=pool.nodes.tolerations,
        topology=topology,
        levels=levels,
        kueue_api=cluster.kueue_api,
    )


def _slack_controller(inputs: StackInputs[Any], cluster: Cluster, flavors: Sequence[FlavorArgs]) -> SlackControllerArgs:
    settings = inputs.settings
    return SlackControllerArgs(
        queue=names.SLACK_QUEUE,
        teams=[names.cluster_queue(team.name) for team in settings.teams],
        image=inputs.mirror.image(catalogue.PYTHON.reference),
        health_seconds=settings.recovery.health_seconds,
        gpu_resource=cluster.gpu_resource,
        pools=[
            replace(pool, name=resource_flavor(flavor)["metadata"]["name"])
            for pool, flavor in zip(cluster.pools, flavors, strict=True)
        ],
        nodes=cluster.placement.system,
        pod_security=cluster.pod_security,
        kueue_api=cluster.kueue_api,
    )


def _team(
    inputs: StackInputs[Any], cluster: Cluster, team: TeamSettings, flavors: Sequence[Flavor], editor: EditorRole
) -> TeamArgs:
    settings, resolved = inputs.settings, inputs.resolved
    gangs = [POD_GROUPS] if settings.scheduling.packing.has_pod_groups else []
    trained = [TRAIN_JOB.resource] if settings.queueing.trainer.enabled and resolved.installs_operators else []
    return TeamArgs(
        name=team.name,
        users=team.users,
        groups=team.groups,
        flavors=[
            FlavorQuota(
                flavor=flavor.name,
                quota=division.quotas[team.name],
                borrowing_limit=division.borrowing_limits[team.name],
                lending_limit=division.lending_limits[team.name],
            )
            for flavor, division in zip(flavors, resolved.divisions, strict=True)
        ],
        cohort=settings.queueing.cohort,
        covered=settings.queueing.covered,
        unlimited=resolved.running_kueue.unlimited if resolved.running_kueue is not None else (),
        user_fair_sharing=team.user_fair_sharing,
        stop_policy=settings.queueing.stop_policy,
        open_to_all=settings.queueing.open_to_all,
        gpu_resource=cluster.gpu_resource,
        kueue_api=cluster.kueue_api,
        role=editor.name,
        labels=boundary.namespace_labels(inputs, cluster),
        bounds=replace(team.bounds(), counts_train_jobs=not cluster.has_admission_policies),
        defined=[APPWRAPPERS, *gangs, *trained],
        network=network(inputs, team.network),
        unenforced=resolved.unenforced,
        protect=settings.tenancy.protect,
    )
