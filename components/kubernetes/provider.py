"""The provider of all objects of a cluster."""

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes


@dataclass(frozen=True, kw_only=True)
class ClientLimits:
    """The engine's limits for an API server: requests a second, and requests in a burst.

    With the provider's defaults of 50 and 120 (pulumi-kubernetes, `KubeClientSettings`), updates with many teams wait
    for them. A preview of 603 objects without a change took 32.7 s with them, and 18.3 s without them. The API server
    protects itself and other clients by priority and fairness (kubernetes.io,
    concepts/cluster-administration/flow-control).
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

    kubeconfig: the file's contents, secret in the state.
    identifier: identifies the cluster independent of its address. Without it, a new address would replace all objects.

    ConfigMaps and Secrets are changed in place, because controllers find them by name. Updates overwrite declared
    fields that others have changed. Otherwise, with server-side apply, one `kubectl edit` of such a field would make
    all later updates fail. This does not affect other writers, because the program never declares their fields (see
    `ownership`). The provider does not take over objects that others have created.
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
