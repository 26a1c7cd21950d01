"""The emulated subscription in words: for `make status`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emulator.azure.services.base import POOL
from emulator.azure.services.resources import REGISTRATION
from emulator.azure.store import Record, State, Store
from emulator.cluster.layout import Layout
from emulator.paths import Paths


def describe(paths: Paths) -> str:
    """Return the tables of resources and planned faults, empty when there is nothing."""
    return tables(Store(Layout(paths).azure).read())


def tables(state: State) -> str:
    """Return the tables of a state's resources and planned faults, empty when there is nothing."""
    resources = sorted((_group(each), each.type, each.name, condition(each)) for each in state.resources.values())
    faults = [(each.on, each.kind, each.times) for each in state.faults]
    found = (
        _table("Azure (emulated)", ["RESOURCE GROUP", "TYPE", "NAME", "STATE"], resources),
        _table("Planned faults", ["ON", "KIND", "TIMES"], faults),
    )
    return "\n\n".join(each for each in found if each)


def condition(record: Record) -> str:
    """Return a resource's state, with the operation that runs on it and the nodes of a pool."""
    if record.type == REGISTRATION:
        return str(record.properties["properties"]["state"])
    shown = str(record.properties.get("provisioningState", "Succeeded"))
    if record.type == POOL:
        nodes, size = len(record.hidden.get("instances", [])), record.properties["vmSize"]
        shown += f", {nodes} of {record.properties['count']} nodes of {size}"
    return f"{shown} ({record.operation.kind})" if record.operation else shown


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in the manner of the environment's other reports, empty without rows."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    if len(cells) == 1:
        return ""
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _group(record: Record) -> str:
    parts = record.id.split("/")
    return parts[4] if len(parts) > 4 and parts[3].lower() == "resourcegroups" else "-"
