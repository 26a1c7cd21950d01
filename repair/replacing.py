"""The commands that repair or replace a node's machine, from replacing.yaml. They are printed and never run."""

import re
from dataclasses import dataclass
from string import Template
from typing import Final

from components.health.repair_state import Json
from components.tables import Table


@dataclass(frozen=True, kw_only=True)
class Replacing:
    """The commands of one provider. provider: a regular expression for the node's providerID."""

    provider: str
    text: str


class _Table(Table):
    replacing: tuple[Replacing, ...]


_WAYS: Final = _Table.load(__name__).replacing


def commands(node: Json) -> str:
    """Return the commands for a node's machine."""
    provider = node.get("spec", {}).get("providerID") or "unknown"
    way, match = next((way, match) for way in _WAYS if (match := re.fullmatch(way.provider, provider)))
    pool = node["metadata"].get("labels", {}).get("agentpool", '"$POOL"')
    values = {"node": node["metadata"]["name"], "pool": pool, "provider": provider}
    return Template(way.text).substitute(values | match.groupdict())
