"""Pulumi components for multi-tenant machine learning on Kubernetes.

The names in `__all__` follow Semantic Versioning. Modules below `components` may change in every release.
"""

from collections.abc import Mapping

from components import catalogue
from components.artifacts import Mirror, Release
from components.kubernetes.controller import ControllerPods
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.network import Network
from components.kubernetes.node_pool import GPU_TOLERATION, NodePool, NodeShape
from components.kubernetes.placement import NodeGroup
from components.kubernetes.quantity import Quantity
from components.layer import Layer, needed
from components.queueing.appwrapper import AppWrappers, AppWrappersArgs
from components.queueing.fault_tolerance import FaultTolerance
from components.queueing.kueue import FairSharing, Kueue, KueueArgs, PodsReady
from components.tenancy.bounds import Bounds
from components.tenancy.editor import EditorRole, EditorRoleArgs
from components.tenancy.flavor import Flavor, FlavorArgs
from components.tenancy.quota import FlavorQuota, StopPolicy
from components.tenancy.slack import SlackController, SlackControllerArgs, SlackQueue, SlackQueueArgs
from components.tenancy.team import Team, TeamArgs

__all__ = (
    "GPU_TOLERATION",
    "AppWrappers",
    "AppWrappersArgs",
    "Bounds",
    "ControllerPods",
    "EditorRole",
    "EditorRoleArgs",
    "FairSharing",
    "FaultTolerance",
    "Flavor",
    "FlavorArgs",
    "FlavorQuota",
    "Kueue",
    "KueueArgs",
    "Layer",
    "Mirror",
    "Namespace",
    "NamespaceArgs",
    "Network",
    "NodeGroup",
    "NodePool",
    "NodeShape",
    "PodsReady",
    "Quantity",
    "Release",
    "SlackController",
    "SlackControllerArgs",
    "SlackQueue",
    "SlackQueueArgs",
    "StopPolicy",
    "Team",
    "TeamArgs",
    "amounts",
    "needed",
    "release",
)


def release(name: str, version: str | None = None, mirror: Mirror | None = None) -> Release:
    """Return the release of an operator, such as `kueue` or `appwrapper`, which is read from a mirror or upstream.

    version: one of the catalogue, the newest by default.
    Raises KeyError if the catalogue does not have it, and ArtifactError if its files cannot be read.
    """
    return (mirror or Mirror()).release(catalogue.find(name, version or catalogue.versions(name)[0]))


def amounts(found: Mapping[str, str | int]) -> dict[str, Quantity]:
    """Return amounts of resources. Raises ValueError for one that Kubernetes cannot store exactly."""
    return {resource: Quantity.parse(amount) for resource, amount in found.items()}
