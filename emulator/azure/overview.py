"""The emulated subscription as text, for `make status`."""

from emulator.azure.services.base import POOL
from emulator.azure.services.resources import REGISTRATION
from emulator.azure.store import Record, State, Store
from emulator.cluster.layout import Layout
from emulator.paths import Paths
from runner.report import table


def describe(paths: Paths) -> str:
    """Return the tables of resources and planned faults, empty without any."""
    return tables(Store(Layout(paths).azure).read())


def tables(state: State) -> str:
    """Return the tables of a state's resources and planned faults, empty without any."""
    resources = sorted((_group(each), each.type, each.name, condition(each)) for each in state.resources.values())
    faults = [(each.on, each.kind, each.times) for each in state.faults]
    found = [table("Azure (emulated)", ["RESOURCE GROUP", "TYPE", "NAME", "STATE"], resources)] if resources else []
    found += [table("Planned faults", ["ON", "KIND", "TIMES"], faults)] if faults else []
    return "\n\n".join(found)


def condition(record: Record) -> str:
    """Return the state of a resource, with its running operation and the nodes of a pool."""
    if record.type == REGISTRATION:
        return str(record.properties["properties"]["state"])
    shown = str(record.properties.get("provisioningState", "Succeeded"))
    if record.type == POOL:
        nodes, size = len(record.hidden.get("instances", [])), record.properties["vmSize"]
        shown += f", {nodes} of {record.properties['count']} nodes of {size}"
    return f"{shown} ({record.operation.kind})" if record.operation else shown


def _group(record: Record) -> str:
    parts = record.id.split("/")
    return parts[4] if len(parts) > 4 and parts[3].lower() == "resourcegroups" else "-"
