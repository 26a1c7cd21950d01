"""The resource types of the emulated Azure."""

from collections.abc import Mapping
from types import MappingProxyType

from emulator.azure.errors import NotEmulatedError
from emulator.azure.services.agent_pools import AGENT_POOL, PoolDeployment
from emulator.azure.services.authorization import RoleAssignment
from emulator.azure.services.base import Kind
from emulator.azure.services.clusters import ManagedCluster
from emulator.azure.services.compute import ProximityPlacementGroup
from emulator.azure.services.identity import FederatedIdentityCredential, UserAssignedIdentity
from emulator.azure.services.maintenance import MaintenanceConfiguration
from emulator.azure.services.monitor import DiagnosticSetting, Workspace
from emulator.azure.services.network import NetworkSecurityGroup, Subnet, VirtualNetwork
from emulator.azure.services.registry import Registry
from emulator.azure.services.resources import FEATURE, Deployment, ResourceGroup
from emulator.azure.services.storage import BlobContainer, StorageAccount

_KINDS: tuple[Kind, ...] = (
    FEATURE,
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
    AGENT_POOL,
    PoolDeployment(),
    MaintenanceConfiguration(),
    StorageAccount(),
    BlobContainer(),
    Workspace(),
    DiagnosticSetting(),
)

KINDS: Mapping[str, Kind] = MappingProxyType({kind.token: kind for kind in _KINDS})
"""Resource types by the SDK's token."""


def kind_of(token: str) -> Kind:
    """Return the resource type of a token. Raises NotEmulatedError."""
    found = KINDS.get(token)
    if found is None:
        raise NotEmulatedError(token, ", ".join(KINDS))
    return found
