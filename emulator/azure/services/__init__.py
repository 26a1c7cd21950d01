"""The resource types that the emulated Azure has."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from emulator.azure.errors import NotEmulatedError
from emulator.azure.services.authorization import RoleAssignment
from emulator.azure.services.base import Kind
from emulator.azure.services.compute import ProximityPlacementGroup
from emulator.azure.services.containerservice import AgentPool, ManagedCluster
from emulator.azure.services.identity import FederatedIdentityCredential, UserAssignedIdentity
from emulator.azure.services.network import NetworkSecurityGroup, Subnet, VirtualNetwork
from emulator.azure.services.registry import Registry
from emulator.azure.services.resources import Deployment, FeatureRegistration, ResourceGroup
from emulator.azure.services.storage import BlobContainer, ManagementPolicy, StorageAccount

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.token: kind
        for kind in (
            FeatureRegistration(),
            Deployment(),
            ResourceGroup(),
            VirtualNetwork(),
            Subnet(),
            NetworkSecurityGroup(),
            UserAssignedIdentity(),
            FederatedIdentityCredential(),
            RoleAssignment(),
            Registry(),
            ProximityPlacementGroup(),
            ManagedCluster(),
            AgentPool(),
            StorageAccount(),
            BlobContainer(),
            ManagementPolicy(),
        )
    }
)
"""By the SDK's token."""


def kind_of(token: str) -> Kind:
    """Return the resource type of a token. Raises NotEmulatedError."""
    found = KINDS.get(token)
    if found is None:
        raise NotEmulatedError(token, ", ".join(KINDS))
    return found
