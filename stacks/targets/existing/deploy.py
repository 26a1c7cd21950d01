"""Target `existing`: the cluster as the settings and the API server describe it, and the platform on it."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pulumi

from components.kubernetes.cluster import Cluster, StorageClasses
from components.kubernetes.placement import Placement
from components.kubernetes.provider import kubernetes_provider
from stacks import platform
from stacks.config.inputs import StackInputs
from stacks.layers.releases import Releases
from stacks.layers.site import Namespaces, SiteLayers
from stacks.targets.existing.settings import ExistingSettings

E = TypeVar("E", bound=ExistingSettings)


class ExistingLayers(SiteLayers):
    """Claims that are there already, under their own names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)

    def volumes(self, namespaces: Namespaces) -> Mapping[str, pulumi.Input[str]]:
        """Return the claims that the settings name, without registering resources."""
        return {name: name for name in self._names}


def deploy(inputs: StackInputs[ExistingSettings], releases: Releases) -> Mapping[str, Any]:
    """Register the platform; return the stack's outputs."""
    return platform.install(inputs, releases, cluster_of(inputs), ExistingLayers(list(inputs.resolved.volumes)))


def cluster_of(inputs: StackInputs[E]) -> Cluster:
    """Return the cluster that the kubeconfig names, as the settings and the API server describe it."""
    named, resolved, settings = inputs.require_cluster(), inputs.resolved, inputs.settings.cluster
    classes = settings.storage_classes
    return Cluster(
        provider=kubernetes_provider(
            "cluster",
            kubeconfig=named.kubeconfig.contents,
            identifier=named.facts.identifier,
            limits=inputs.settings.kubernetes.client.limits,
        ),
        pools=resolved.pools,
        placement=Placement(system=settings.system.nodes, gpus=resolved.gpu_nodes),
        fabric=resolved.fabric,
        gpu_resource=resolved.gpu_resource,
        storage=StorageClasses(block=classes.block, files=classes.files, logs=classes.logs),
        registry=settings.registry,
        has_admission_policies=resolved.has_admission_policies,
        default_priority=named.facts.default_priority,
        kueue_api=resolved.kueue_api,
        load_balancer=settings.internal_load_balancer or None,
        pod_security=inputs.target.pod_security,
    )
