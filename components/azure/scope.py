"""Where Azure resources are created."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

SUBNET: Final = "nodes"
"""Name of the subnet of the nodes."""


@dataclass(frozen=True, kw_only=True)
class ResourceScope:
    """The resource group, region and tags of resources.

    location: the region.
    tags: of every resource, because Azure resources do not inherit tags.
    """

    resource_group: str
    location: str
    tags: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Return them as arguments of a resource."""
        return {"resource_group_name": self.resource_group, "location": self.location, "tags": dict(self.tags)}
