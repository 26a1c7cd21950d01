"""A stack's outputs, for users and for reports."""

from collections.abc import Iterable, Mapping
from typing import Any

import pulumi

from components import names
from components.kubernetes.node_pool import NodePool
from components.kubernetes.quantity import ZERO
from components.tenancy.quota import Quota, offered
from stacks.derived.resolution import Resolved
from stacks.settings import PlatformSettings


def outputs(
    settings: PlatformSettings,
    resolved: Resolved,
    grafana: Mapping[str, Any] | None,
    mlops: pulumi.Output[Mapping[str, Any]] | None,
    jupyterlab: Mapping[str, Any] | None,
) -> Mapping[str, Any]:
    """Return the outputs, all of them known before the update but for a password that is made.

    nodes: count, instance type and GPUs, or shares of them, in all; of more pools than one by their names. queues:
    nominal quota by queue and resource, canonical, over all pools.
    teams: namespace, queues, users and groups by team. unenforced: promises to them that are not enforced.
    sample: namespace and name of the sample job, or None. grafana: how it is reached, or None. mlops: who signs in to
    the MLOps platform's user interfaces, a secret, or None. jupyterlab: how it is reached, only where it is enabled.
    """
    gang = settings.samples.gang
    quotas = {names.SLACK_QUEUE: _sum(each.slack for each in resolved.divisions)} if settings.queueing.enabled else {}
    quotas |= {
        names.cluster_queue(team.name): _sum(each.quotas[team.name] for each in resolved.divisions)
        for team in settings.teams
    }
    return {
        "target": settings.target,
        "nodes": _nodes(resolved.pool)
        if len(resolved.pools) == 1
        else {pool.name: _nodes(pool) for pool in resolved.pools},
        "queues": {
            queue: {
                offered(resource, resolved.gpu_resource): str(quota[resource]) for resource in settings.queueing.covered
            }
            for queue, quota in quotas.items()
        },
        "teams": {
            team.name: {
                "namespace": team.name,
                "clusterQueue": names.cluster_queue(team.name),
                "localQueue": names.LOCAL_QUEUE,
                "users": list(team.users),
                "groups": list(team.groups),
            }
            for team in settings.teams
        },
        "unenforced": list(resolved.unenforced),
        "sample": {"namespace": gang.team, "name": gang.name} if gang is not None and gang.enabled else None,
        "grafana": grafana,
        "mlops": mlops,
        **({"jupyterlab": jupyterlab} if jupyterlab is not None else {}),
    }


def _nodes(pool: NodePool) -> Mapping[str, Any]:
    return {
        "count": pool.count,
        "instanceType": pool.shape.instance_type,
        "gpus": str(pool.resources[names.GPU]),
    }


def _sum(quotas: Iterable[Quota]) -> Quota:
    total = dict.fromkeys(names.RESOURCES, ZERO)
    for quota in quotas:
        total = {resource: amount + quota[resource] for resource, amount in total.items()}
    return total
