"""How commands end that start a cluster of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable

from emulator.cluster import ClusterError
from emulator.toolchain import ToolchainError


def ended(command: Callable[[], int]) -> int:
    """Run a command; return its exit code, also where its cluster does not start or somebody interrupts it."""
    try:
        return command()
    except (ClusterError, ToolchainError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; its cluster has ended", file=sys.stderr)
        return 130
