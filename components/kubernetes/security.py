"""Security contexts that meet Pod Security's level `restricted`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final


class PodSecurity(StrEnum):
    """The mechanism that decides which pods may be privileged.

    It is either the labels of their namespace, or SecurityContextConstraints (OpenShift). Sources: kubernetes.io,
    concepts/security/pod-security-admission; openshift/api, security/v1.
    """

    STANDARDS = "pod-security-standards"
    SCC = "security-context-constraints"


NOBODY: Final[Mapping[str, Any]] = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Security context of a pod whose programs own no files."""


def nobody(pod_security: PodSecurity) -> Mapping[str, Any]:
    """Return the context of an unprivileged user. With SecurityContextConstraints, return it without a user.

    OpenShift sets a user from the namespace's range and rejects all others (its constraint `restricted-v2`).
    """
    if pod_security is PodSecurity.STANDARDS:
        return dict(NOBODY)
    return {name: value for name, value in NOBODY.items() if name != "runAsUser"}


UNPRIVILEGED: Final[Mapping[str, Any]] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""Security context of a container without rights on its node."""

READ_ONLY: Final[Mapping[str, Any]] = {**UNPRIVILEGED, "readOnlyRootFilesystem": True}
"""The same for a container that writes only to volumes."""

PINNED_MEMORY: Final = "IPC_LOCK"
"""Capability to pin memory for network devices. Pod Security's level `baseline` forbids it."""
