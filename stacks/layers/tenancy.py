"""Teams that share the cluster: flavor, slack queue and its controller, role, a queue for each team."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components import catalogue, names
from components.kubernetes.cluster import Cluster
from components.tenancy.editor import EditorRole
from components.tenancy.flavor import DefaultFlavor, DefaultFlavorArgs
from components.tenancy.slack import SlackController, SlackControllerArgs, SlackQueue, SlackQueueArgs
from components.tenancy.team import Team, TeamArgs
from stacks.inputs import StackInputs
from stacks.layers.queueing import Queueing


def install(inputs: StackInputs[Any], cluster: Cluster, queueing: Queueing | None) -> Mapping[str, Team]:
    """Register the queues and what belongs to them; return the teams by name."""
    settings, resolved = inputs.settings, inputs.resolved
    if queueing is None or not settings.tenancy.enabled:
        return {}
    options, cohort = cluster.options(queueing.kueue), settings.queueing.cohort
    flavor = DefaultFlavor("flavor", DefaultFlavorArgs(tolerations=cluster.placement.gpus.tolerations), options)
    SlackQueue("slack", SlackQueueArgs(quota=resolved.slack, cohort=cohort, flavor=flavor.name), options)
    controller = SlackControllerArgs(
        queue=names.SLACK_QUEUE,
        image=inputs.mirror.image(catalogue.PYTHON.reference),
        gpu_resource=cluster.gpu_resource,
        nodes=cluster.placement.system,
    )
    SlackController("slack-controller", controller, cluster.options(queueing.namespace, queueing.kueue))
    editor = EditorRole("editor", cluster.options())
    return {
        team.name: Team(
            team.name,
            TeamArgs(
                name=team.name,
                users=team.users,
                quota=resolved.quotas[team.name],
                borrowing_limit=team.borrowing_limit.amounts(),
                lending_limit=team.lending_limit.amounts(),
                cohort=cohort,
                flavor=flavor.name,
                role=editor.name,
            ),
            options,
        )
        for team in settings.teams
    }
