"""The one provider of every object of a cluster."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as kubernetes


def kubernetes_provider(
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
