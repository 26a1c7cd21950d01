"""The platform on a cluster, whichever it is: its table of contents, from the ground up."""

from collections.abc import Mapping
from typing import Any

from components.kubernetes.cluster import Cluster
from stacks.config.inputs import StackInputs
from stacks.layers import gpu_nodes, health, mlops, monitoring, queueing, scheduling, tenancy, workloads
from stacks.layers.releases import Releases
from stacks.layers.site import SiteLayers
from stacks.outputs import outputs


def install(
    inputs: StackInputs[Any], releases: Releases, cluster: Cluster, site: SiteLayers | None = None
) -> Mapping[str, Any]:
    """Register every layer that the settings switch on, and return the stack's outputs.

    site: what only this kind of cluster has.
    """
    site = site or SiteLayers()
    site.has_repairs = inputs.settings.recovery.repair.enabled and inputs.settings.queueing.enabled
    metrics = monitoring.install(
        inputs, releases, cluster, site
    )  # first, because the operators below ask for its kinds
    gpus = gpu_nodes.install(inputs, cluster, site, metrics)
    schedulers = scheduling.install(inputs, releases, cluster)
    queues = queueing.install(inputs, releases, cluster, site, metrics, schedulers)
    tenants = tenancy.install(inputs, cluster, queues, metrics)
    namespaces = workloads.namespaces(inputs, cluster, tenants.teams)
    volumes = site.volumes(namespaces)
    health.install(inputs, cluster, site, gpus, metrics, queues)
    lab = workloads.install(inputs, cluster, namespaces, volumes, gpus, schedulers, queues)
    platform = mlops.install(inputs, releases, cluster)
    site.applications(queues.ready if queues is not None else (), tenants.flavor)
    return outputs(
        inputs.settings,
        inputs.resolved,
        metrics.access if metrics is not None else None,
        platform.logins if platform is not None else None,
        lab,
    )
