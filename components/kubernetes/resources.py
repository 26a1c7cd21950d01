"""The resources of a container."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Resources:
    """A container's requests and limits, as canonical quantities."""

    cpu_request: str
    memory_request: str
    cpu_limit: str
    memory_limit: str

    def body(self) -> Mapping[str, Mapping[str, str]]:
        """Return the container's `resources`."""
        return {
            "requests": {"cpu": self.cpu_request, "memory": self.memory_request},
            "limits": {"cpu": self.cpu_limit, "memory": self.memory_limit},
        }
