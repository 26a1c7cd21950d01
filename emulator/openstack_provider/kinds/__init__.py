"""The kinds of resources that are served, by token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emulator.openstack_provider.kinds import instances, keypairs, ports, security, volumes
from emulator.openstack_provider.kinds.base import Kind

KINDS: Final[Mapping[str, Kind]] = {
    kind.token: kind
    for kind in (
        keypairs.Keypair(),
        instances.Instance(),
        volumes.VolumeAttach(),
        volumes.Volume(),
        ports.Port(),
        ports.FloatingIp(),
        ports.FloatingIpAssociate(),
        security.SecGroup(),
        security.SecGroupRule(),
        security.AddressGroup(),
    )
}
