"""Serve the emulated Azure, or change it behind the engine's back.

show      what there is
scale     change the count of an agent pool
set       change one property of a resource
delete    delete a resource
fault     let the next matching calls fail
faults    list the planned faults, or drop them
serve     serve the engine's provider protocol (the local environment does that)
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulator.azure import faults, overview
from emulator.azure.local_cluster import LocalCluster, subscription
from emulator.azure.services import KINDS
from emulator.azure.services.agent_pools import settle_instances
from emulator.azure.services.base import POOL
from emulator.azure.store import Record, State
from emulator.paths import Paths
from emulator.plugin.errors import ProviderError

_GRACE_SECONDS = 5.0


class UsageError(Exception):
    """What was asked for does not exist; the message names what does."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    paths = Paths.of(state=options.state) if options.state else Paths.of().of_stack(options.stack)
    try:
        return int(options.command(paths, options))
    except (UsageError, ProviderError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m emulator.azure", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--stack", default="aks", help="whose local environment")
    common.add_argument("--state", type=Path, help="the environment's state folder, in place of the stack's")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, function: Any) -> argparse.ArgumentParser:
        found = commands.add_parser(name, parents=[common])
        found.set_defaults(command=function)
        return found

    command("serve", _serve).add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    command("show", _show)
    scale = command("scale", _scale)
    scale.add_argument("--pool", required=True, help="name or id of an agent pool")
    scale.add_argument("--count", type=int, required=True)
    change = command("set", _set)
    change.add_argument("--resource", required=True, help="name or id")
    change.add_argument("--path", required=True, help="of the property, e.g. properties.nodeLabels or tags.owner")
    change.add_argument("--value", required=True, help="as JSON; null takes the property away")
    command("delete", _delete).add_argument("--resource", required=True, help="name or id")
    fault = command("fault", _fault)
    fault.add_argument("--on", required=True, help="pattern of a type, an id or a name, e.g. '*agentPools' or ndv5")
    kinds = "; ".join(f"{kind}: {text}" for kind, text in faults.KINDS.items())
    fault.add_argument("--kind", required=True, choices=sorted(faults.KINDS), help=kinds)
    fault.add_argument("--times", type=int, default=1)
    command("faults", _faults).add_argument("--clear", action="store_true", help="drop them; registrations go on")
    return parser


def _serve(paths: Paths, options: argparse.Namespace) -> int:
    # Only here: these import the SDK's runtime, which the other commands need not wait for.
    from emulator.azure.lifecycle import Lifecycle
    from emulator.azure.server import start

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    LocalCluster(paths).install_kubelogin()
    try:
        server, port = start(Lifecycle(subscription(paths)), options.port)
    except OSError as error:
        print(f"{error}. Choose another port, or stop what listens there.", file=sys.stderr)
        return 1
    if options.port == 0:
        print(port, flush=True)
    ended.wait()
    server.stop(_GRACE_SECONDS).wait()
    return 0


def _show(paths: Paths, options: argparse.Namespace) -> int:
    print(overview.tables(subscription(paths).state()) or "The emulated Azure has no resources.")
    return 0


def _scale(paths: Paths, options: argparse.Namespace) -> int:
    if options.count < 0:
        raise UsageError(f"--count is {options.count}; 0 or more is allowed")
    with subscription(paths).edit() as state:
        pool = _find(state, options.pool, POOL)
        pool.properties["count"] = options.count
        settle_instances(pool)
    print(f"{pool.name} has {options.count} nodes")
    return 0


def _set(paths: Paths, options: argparse.Namespace) -> int:
    try:
        value = json.loads(options.value)
    except json.JSONDecodeError as error:
        raise UsageError(f"--value is no JSON ({error}); a text needs quotes of its own: --value '\"text\"'") from None
    with subscription(paths).edit() as state:
        record = _find(state, options.resource)
        change(record, options.path, value)
        if record.type == POOL:
            settle_instances(record)
    print(f"{record.id}: {options.path} is {json.dumps(value)}")
    return 0


def change(record: Record, path: str, value: Any) -> None:
    """Change one property of a resource, `null` takes it away; the prefix `properties.` of the REST API may stand.

    Raises UsageError when there is no object on the way.
    """
    parts = path.split(".")
    if parts[0] == "properties" and not isinstance(record.properties.get("properties"), dict):
        parts = parts[1:]
    inner = record.properties
    for part in parts[:-1]:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{part} of {path} is no object")
    if value is None:
        inner.pop(parts[-1], None)
    else:
        inner[parts[-1]] = value


def _delete(paths: Paths, options: argparse.Namespace) -> int:
    arm = subscription(paths)
    record = _find(arm.state(), options.resource)
    arm.delete(KINDS[record.token], record.id)
    arm.wait(record.id)
    print(f"{record.id} is deleted")
    return 0


def _fault(paths: Paths, options: argparse.Namespace) -> int:
    with subscription(paths).edit() as state:
        faults.add(state, options.on, options.kind, options.times)
    return 0


def _faults(paths: Paths, options: argparse.Namespace) -> int:
    arm = subscription(paths)
    if options.clear:
        with arm.edit() as state:
            faults.clear(state)
    print(overview.faults(arm.state()))
    return 0


def _find(state: State, wanted: str, kind: str = "") -> Record:
    """Return the resource of an id or a name. Raises UsageError when there is none, or more than one."""
    exact = state.get(wanted)
    if exact is not None:
        return exact
    records = [each for each in state.resources.values() if not kind or each.type == kind]
    found = [each for each in records if each.name.lower() == wanted.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{wanted!r} names several resources: {', '.join(each.id for each in found)}; give an id")
    raise UsageError(f"there is no {kind or 'resource'} {wanted!r}; there are {_listed(records)}")


def _listed(records: Sequence[Record]) -> str:
    return ", ".join(sorted(each.name for each in records)) or "none"


if __name__ == "__main__":
    sys.exit(main())
