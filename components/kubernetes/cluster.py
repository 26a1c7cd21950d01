"""The contract between a target and the layers above it: what a cluster is to them."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes

from components.nodes.shapes import NodePool


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """Facts about a cluster that layers act on, whatever its brand.

    gpu_taint: its GPU nodes carry `nvidia.com/gpu=present:NoSchedule`, so that jobs need the matching toleration.
    """

    gpu_taint: bool


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster that layers can be installed on.

    provider: the one provider of every Kubernetes object; layers never use an ambient one.
    pool: its GPU nodes, from which quotas and gangs are judged.
    """

    provider: kubernetes.Provider
    capabilities: Capabilities
    pool: NodePool


def connect(
    name: str, *, kubeconfig: pulumi.Input[str], identifier: str, opts: pulumi.ResourceOptions | None = None
) -> kubernetes.Provider:
    """Return the provider of one cluster.

    kubeconfig: the file's contents; kept secret in the state.
    identifier: names the cluster whatever its address is. Without it, a changed address would plan the replacement of
        every object.

    ConfigMaps and Secrets are changed in place, because controllers find them by name. Updates take declared fields
    back from whoever changed them: with server-side apply alone, one `kubectl edit` of such a field would make every
    later update fail. This overrides nobody who may write: fields of others are never declared (see `ownership`), and
    an object that somebody else has created is not taken over.
    """
    return kubernetes.Provider(
        name,
        kubeconfig=pulumi.Output.secret(kubeconfig),
        cluster_identifier=identifier,
        enable_server_side_apply=True,
        enable_patch_force=True,
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
        opts=opts,
    )
