"""What a component says of itself to those that stand on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pulumi


class Layer(pulumi.ComponentResource):
    """A component that others stand on."""

    ready: Sequence[pulumi.Resource]
    """What has to exist before others can use what the component stands for."""


def needed(needs: Iterable[pulumi.Resource]) -> list[pulumi.Resource]:
    """Return what to depend on for these needs: of a layer what it calls ready, and every other resource itself."""
    found: list[pulumi.Resource] = []
    for need in needs:
        found += needed(need.ready) if isinstance(need, Layer) else [need]
    return found
