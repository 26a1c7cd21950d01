"""What a process in a pod may do, as Pod Security's level `restricted` wants it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final


class PodSecurity(StrEnum):
    """What decides which pods may be privileged: labels of their namespace, or SecurityContextConstraints (OpenShift).

    Source: kubernetes.io, concepts/security/pod-security-admission; openshift/api, security/v1.
    """

    STANDARDS = "pod-security-standards"
    SCC = "security-context-constraints"


NOBODY: Final[Mapping[str, Any]] = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Security context of a pod whose programs own no file."""


def nobody(pod_security: PodSecurity) -> Mapping[str, Any]:
    """Return NOBODY, where SecurityContextConstraints decide without a user: each namespace has a range of its own.

    OpenShift fills one of that range in, and refuses every other (its constraint `restricted-v2`).
    """
    if pod_security is PodSecurity.STANDARDS:
        return dict(NOBODY)
    return {name: value for name, value in NOBODY.items() if name != "runAsUser"}


UNPRIVILEGED: Final[Mapping[str, Any]] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""Security context of a container that needs no right on its node."""

READ_ONLY: Final[Mapping[str, Any]] = {**UNPRIVILEGED, "readOnlyRootFilesystem": True}
"""The same of one that writes to volumes alone."""

PINNED_MEMORY: Final = "IPC_LOCK"
"""The capability that lets a process pin memory for network devices. It is beyond Pod Security's level `baseline`."""
