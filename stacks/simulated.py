"""Target `simulated`: the platform on a cluster whose GPU nodes are played by KWOK. Reads from the ground up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components import catalogue, names
from components.kubernetes.cluster import Capabilities, Cluster, connect
from components.nodes.simulated import SimulatedNodes, SimulatedNodesArgs
from components.queueing.appwrapper import AppWrappers, AppWrappersArgs
from components.queueing.kueue import Kueue, KueueArgs
from components.queueing.operators import SystemNamespace
from components.scheduling.priorities import Priorities, PrioritiesArgs
from components.tenancy.editor import EditorRole
from components.tenancy.flavor import DefaultFlavor, DefaultFlavorArgs
from components.tenancy.slack import SlackController, SlackControllerArgs, SlackQueue, SlackQueueArgs
from components.tenancy.team import Team, TeamArgs
from components.workloads.gang import Gang, GangArgs
from stacks.load import Stack
from stacks.outputs import outputs
from stacks.settings import slack_quota


def deploy(stack: Stack) -> Mapping[str, Any]:
    """Register the platform and return the stack's outputs; raises ArtefactError before the first resource."""
    settings, mirror = stack.settings, stack.mirror
    cohort = settings.queueing.cohort
    kueue_release = mirror.release(catalogue.find(catalogue.KUEUE, settings.queueing.kueue_version))
    appwrapper_release = mirror.release(catalogue.find(catalogue.APPWRAPPER, settings.queueing.appwrapper_version))

    cluster = Cluster(
        provider=connect("cluster", kubeconfig=stack.kubeconfig.contents, identifier=stack.kubeconfig.cluster),
        capabilities=Capabilities(gpu_taint=True),
        pool=settings.nodes.pool(),
    )

    def on(*needs: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(providers=[cluster.provider], depends_on=list(needs))

    # Nodes
    nodes = SimulatedNodes("nodes", SimulatedNodesArgs(pool=cluster.pool), on())

    # Scheduling
    priorities = Priorities("priorities", PrioritiesArgs(), on(*nodes.nodes))

    # Queueing
    system = SystemNamespace("system", on(*nodes.nodes))
    wrappers = AppWrappers("appwrapper", AppWrappersArgs(release=appwrapper_release), on(system.namespace))
    kueue = Kueue("kueue", KueueArgs(release=kueue_release), on(system.namespace, *wrappers.definitions))

    # Tenancy
    flavor = DefaultFlavor("flavor", DefaultFlavorArgs(gpu_taint=cluster.capabilities.gpu_taint), on(*kueue.ready))
    slack = SlackQueueArgs(quota=slack_quota(settings.queueing, cluster.pool), cohort=cohort, flavor=flavor.name)
    SlackQueue("slack", slack, on(*kueue.ready))
    watcher = SlackControllerArgs(queue=names.SLACK_QUEUE, image=mirror.image(catalogue.PYTHON.reference))
    SlackController("slack-controller", watcher, on(system.namespace, *kueue.ready))
    editor = EditorRole("editor", on(*nodes.nodes))
    teams = {
        team.name: Team(
            team.name,
            TeamArgs(
                name=team.name,
                users=team.users,
                quota=team.quota.amounts(),
                borrowing_limit=team.borrowing_limit.amounts(),
                lending_limit=team.lending_limit.amounts(),
                cohort=cohort,
                flavor=flavor.name,
                role=editor.name,
            ),
            on(*kueue.ready),
        )
        for team in settings.teams
    }

    # Workloads
    gang = settings.samples.gang
    if gang is not None and gang.enabled and gang.team is not None:
        team = teams[gang.team]
        job = GangArgs(
            namespace=team.namespace,
            user=gang.user,
            pods=gang.pods,
            requests=gang.requests(),
            seconds=gang.seconds,
            priority_class=gang.priority_class,
            image=mirror.image(catalogue.BUSYBOX.reference),
        )
        Gang(gang.name, job, on(*kueue.ready, *wrappers.ready, *priorities.classes, team.local_queue))

    return outputs(settings)
