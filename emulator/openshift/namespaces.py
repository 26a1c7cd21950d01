"""The range of users and groups and the SELinux categories that OpenShift gives to each namespace.

SecurityContextConstraints with `MustRunAs` read their values from these annotations, and reject pods without them.
Source: openshift/cluster-policy-controller, pkg/security/controller/namespace_scc_allocation_controller.go, with the
ranges of its default configuration: 10000 users from 1000000000 on and five SELinux labels for each namespace.
"""

import math
from collections.abc import Iterable
from typing import Final

from emulator.cluster.api import Object

UID_RANGE: Final = "openshift.io/sa.scc.uid-range"
GROUPS: Final = "openshift.io/sa.scc.supplemental-groups"
MCS: Final = "openshift.io/sa.scc.mcs"

_FIRST_UID: Final = 1_000_000_000
_BLOCK: Final = 10_000
_BLOCKS: Final = 100_000
_LABELS: Final = 5


def allotted(block: int) -> dict[str, str]:
    """Return the annotations of the namespace with this block, counted from 0."""
    users = f"{_FIRST_UID + block * _BLOCK}/{_BLOCK}"
    return {MCS: _label(block * _LABELS), GROUPS: users, UID_RANGE: users}


def next_block(namespaces: Iterable[Object]) -> int:
    """Return the first free block."""
    taken = {_block(namespace) for namespace in namespaces}
    return next(block for block in range(_BLOCKS) if block not in taken)


def lacks(namespace: Object) -> bool:
    """Tell whether a namespace has no block yet and is not being deleted."""
    annotations = namespace["metadata"].get("annotations") or {}
    return UID_RANGE not in annotations and "deletionTimestamp" not in namespace["metadata"]


def _block(namespace: Object) -> int | None:
    first = (namespace["metadata"].get("annotations") or {}).get(UID_RANGE, "").partition("/")[0]
    return (int(first) - _FIRST_UID) // _BLOCK if first.isdecimal() else None


def _label(index: int) -> str:
    """Return the SELinux label at an index in the list of all pairs of categories: c1,c0, c2,c0, c2,c1, c3,c0 ...

    Example: 1000660000 has s0:c26,c5 (openshift/library-go, pkg/security/mcs/label.go).
    """
    larger = (1 + math.isqrt(1 + 8 * index)) // 2
    return f"s0:c{larger},c{index - larger * (larger - 1) // 2}"
