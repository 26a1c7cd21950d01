"""What a process in a pod may do, as Pod Security's level `restricted` wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NOBODY: Final[Mapping[str, Any]] = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Security context of a pod whose programs own no file."""

UNPRIVILEGED: Final[Mapping[str, Any]] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""Security context of a container that needs no right on its node."""

READ_ONLY: Final[Mapping[str, Any]] = {**UNPRIVILEGED, "readOnlyRootFilesystem": True}
"""The same of one that writes to volumes alone."""

PINNED_MEMORY: Final = "IPC_LOCK"
"""The capability that lets a process pin memory for network devices. It is beyond Pod Security's level `baseline`."""
