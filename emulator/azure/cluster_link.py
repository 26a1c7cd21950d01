"""What the emulated Azure needs of the cluster that its managed cluster is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from emulator.azure.errors import ArmError
from emulator.azure.nodes import Node


class ClusterLink(Protocol):
    """The cluster behind the one managed cluster. Raises ProviderError where it cannot be reached."""

    def require_free(self) -> None:
        """Raise ArmError when the cluster already holds what somebody else put there."""

    def follow(self, nodes: Sequence[Node]) -> None:
        """Make the cluster's nodes those given."""

    def empty(self) -> None:
        """Remove everything that users have put into the cluster."""

    def credentials(self) -> tuple[str, str, str]:
        """Return the API server's address, its authority as PEM, and an administrator's token."""


class NoCluster:
    """A link to nothing, for a model that is looked at by itself. Remembers what it was told."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.emptied = 0
        self.taken = ""

    def require_free(self) -> None:
        """Raise ArmError as told by `taken`."""
        if self.taken:
            raise taken(self.taken)

    def follow(self, nodes: Sequence[Node]) -> None:
        """Remember the nodes."""
        self.nodes = list(nodes)

    def empty(self) -> None:
        """Count, and forget the nodes."""
        self.emptied += 1
        self.nodes = []

    def credentials(self) -> tuple[str, str, str]:
        """Return made-up credentials."""
        return "https://127.0.0.1:6443", "-----BEGIN CERTIFICATE-----\n", "administrator-token"


def taken(what: str) -> ArmError:
    """Return the error for a local cluster that is in use already."""
    return ArmError(
        "LocalClusterInUse",
        f"The emulated managed cluster is the local cluster, and that holds {what} already.",
        status=409,
        hint="Destroy the stack that put it there (make destroy STACK=<name>), or start anew with make clean.",
    )
