"""The one provider of every OpenStack resource."""

from __future__ import annotations

from typing import Final

import pulumi
import pulumi_openstack as openstack

AUTH_URL: Final = "https://pouta.csc.fi:5001/v3"
"""cPouta's Keystone (CSC's user guide, cloud/pouta/install-client.md)."""


def openstack_provider(
    name: str, *, auth_url: str | None = None, opts: pulumi.ResourceOptions | None = None
) -> openstack.Provider:
    """Return the provider of one project, signed in as the OS_* variables or clouds.yaml say.

    auth_url: of Keystone, where nothing else says it. The provider signs in when it is first asked for something, so
    that a stack that does not exist yet can be previewed without credentials.
    """
    return openstack.Provider(name, auth_url=auth_url, opts=opts)
