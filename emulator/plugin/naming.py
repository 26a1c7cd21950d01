"""Names that the engine has made up for resources whose inputs give none."""

from __future__ import annotations

from dataclasses import dataclass

PROPOSE, ENFORCE, DISABLE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Naming:
    """How to make up a name.

    resource_name: of the resource in the program. seed: makes the made-up name repeatable. proposed, mode: what the
    project's autonaming configuration says (PROPOSE, ENFORCE, DISABLE), empty and None without one.
    """

    resource_name: str
    seed: bytes = b""
    proposed: str = ""
    mode: int | None = None
