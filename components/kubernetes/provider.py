"""The one provider of every object of a cluster."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes


@dataclass(frozen=True, kw_only=True)
class ClientLimits:
    """How fast the engine may ask an API server: requests a second, and how many at once after a pause.

    The provider's own 50 and 120 (pulumi-kubernetes, `KubeClientSettings`) are what an update of many teams waits for:
    a preview of 603 objects without a change took 32.7 s with them, and 18.3 s without. What protects the server is its
    own priority and fairness, which serves everybody else beside the engine (kubernetes.io,
    concepts/cluster-administration/flow-control); the numbers are those of Kueue's client.
    """

    qps: int = 1000
    burst: int = 2000


def kubernetes_provider(
    name: str,
    *,
    kubeconfig: pulumi.Input[str],
    identifier: pulumi.Input[str],
    limits: ClientLimits,
    opts: pulumi.ResourceOptions | None = None,
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
        kube_client_settings=kubernetes.KubeClientSettingsArgs(qps=limits.qps, burst=limits.burst),
        enable_server_side_apply=True,
        enable_patch_force=True,
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
        opts=opts,
    )
