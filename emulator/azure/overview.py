"""The emulated subscription in words: for `make status` and `python -m emulator.azure show`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emulator.azure.services.base import POOL
from emulator.azure.services.resources import REGISTRATION
from emulator.azure.store import Record, State, Store
from emulator.cluster.layout import Layout
from emulator.paths import Paths


def describe(paths: Paths) -> str:
    """Return the tables of resources and pools, empty when there is nothing."""
    return tables(Store(Layout(paths).azure).read())


def tables(state: State) -> str:
    """Return the tables of a state's resources, pools and planned faults, empty when there is nothing."""
    resources = [each for each in state.resources.values() if each.type != POOL]
    pools = state.of_type(POOL)
    parts = []
    if resources:
        rows = sorted((_group(each), each.type, each.name, condition(each)) for each in resources)
        parts.append(table("Azure (emulated)", ["RESOURCE GROUP", "TYPE", "NAME", "STATE"], rows))
    if pools:
        parts.append(
            table(
                "Agent pools (emulated)",
                ["CLUSTER", "POOL", "MODE", "SIZE", "COUNT", "NODES", "STATE"],
                [
                    (
                        each.id.split("/")[-3],
                        each.name,
                        each.properties["mode"],
                        each.properties["vmSize"],
                        each.properties["count"],
                        len(each.hidden.get("instances", [])),
                        condition(each),
                    )
                    for each in pools
                ],
            )
        )
    if state.faults:
        parts.append(faults(state))
    return "\n\n".join(parts)


def faults(state: State) -> str:
    """Return the table of planned faults."""
    rows = [(each.on, each.kind, each.times) for each in state.faults]
    return table("Planned faults", ["ON", "KIND", "TIMES"], rows)


def condition(record: Record) -> str:
    """Return a resource's state, with the operation that runs on it."""
    if record.type == REGISTRATION:
        return str(record.properties["properties"]["state"])
    shown = str(record.properties.get("provisioningState", "Succeeded"))
    return f"{shown} ({record.operation.kind})" if record.operation else shown


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in the manner of the environment's other reports."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    if len(cells) == 1:
        return f"{title}\n  none"
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _group(record: Record) -> str:
    parts = record.id.split("/")
    return parts[4] if len(parts) > 4 and parts[3].lower() == "resourcegroups" else "-"
