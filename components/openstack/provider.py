"""The provider of all OpenStack resources."""

from typing import Final

import pulumi
import pulumi_openstack as openstack

AUTH_URL: Final = "https://pouta.csc.fi:5001/v3"
"""cPouta's Keystone (CSC's user guide, cloud/pouta/install-client.md)."""
RETRIES: Final = 5
"""Repetitions of a request that no service answers, or that a service rejects with 429 Too Many Requests.

Only a request without a body is sent again, so it creates no second resource (gophercloud/utils, client/client.go).
"""


def openstack_provider(
    name: str, *, auth_url: str | None = None, opts: pulumi.ResourceOptions | None = None
) -> openstack.Provider:
    """Return the provider of one project, with the credentials of the OS_* variables or clouds.yaml.

    auth_url: of Keystone, if the environment has none. The provider signs in at its first request. A preview of a new
    stack therefore needs no credentials.
    """
    return openstack.Provider(name, auth_url=auth_url, max_retries=RETRIES, opts=opts)
