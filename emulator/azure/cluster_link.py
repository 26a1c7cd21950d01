"""What the emulated Azure needs of the cluster that its managed cluster is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from emulator.azure.errors import ArmError
from emulator.azure.nodes import Node
from emulator.cluster.credentials import Account


class ClusterLink(Protocol):
    """The cluster behind the one managed cluster. Raises ProviderError where it cannot be reached."""

    def require_free(self) -> None:
        """Raise ArmError when the cluster already holds what somebody else put there."""

    def follow(self, nodes: Sequence[Node]) -> None:
        """Make the cluster's nodes those given."""

    def empty(self) -> None:
        """Remove everything that users have put into the cluster."""

    def credentials(self) -> Account:
        """Return the administrator's account."""


def taken(what: str) -> ArmError:
    """Return the error for a local cluster that is in use already."""
    return ArmError(
        "LocalClusterInUse",
        f"The emulated managed cluster is the local cluster, and that holds {what} already.",
        status=409,
        hint="Destroy the stack that put it there (make destroy STACK=<name>), or start anew with make clean.",
    )
