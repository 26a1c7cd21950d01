"""Where resources are created in Azure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

SUBNET: Final = "nodes"
"""Name of the subnet of the nodes."""


@dataclass(frozen=True, kw_only=True)
class ResourceScope:
    """resource_group: its name. location: the region. tags: of every resource; Azure does not hand them down."""

    resource_group: str
    location: str
    tags: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a resource that say so."""
        return {"resource_group_name": self.resource_group, "location": self.location, "tags": dict(self.tags)}
