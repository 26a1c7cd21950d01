"""The nodes in repair, as the repair controller and `mlbatch repair` record them.

components/health/repair_state.py describes the states.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

REPAIR: Final = "mlbatch/repair"
"""The annotation."""
HOST: Final = "hyperv/PhysicalHostName"
"""Label with the name of a node's physical machine, on Azure."""


@dataclass(frozen=True, kw_only=True)
class Repair:
    """A repair of a node. since: in UTC. case: the provider's, "" if none is known. host: "" if unknown."""

    node: str
    state: str
    reason: str
    since: str
    host: str
    case: str
    detail: str


def repairs(nodes: Iterable[Mapping[str, Any]]) -> list[Repair]:
    """Return the repairs of nodes, by the name of the node."""
    found = []
    for node in sorted(nodes, key=lambda each: str(each["metadata"].get("name"))):
        metadata = node["metadata"]
        text = (metadata.get("annotations") or {}).get(REPAIR)
        try:
            repair = json.loads(text or "null")
        except ValueError:
            repair = {"state": "unreadable", "detail": text}
        if isinstance(repair, dict):
            known = {key: str(repair.get(key, "")) for key in ("state", "reason", "since", "case", "detail")}
            host = (metadata.get("labels") or {}).get(HOST, "")
            found.append(Repair(node=str(metadata["name"]), host=host, **known))
    return found
