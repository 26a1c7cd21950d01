"""Act in the local OpenStack without the engine, like other members of the project and the cloud's operators.

open      open a security group to more addresses
detach    detach a volume from its server
delete    delete a server, as if its host failed
quota     set quotas of the project: cores=22 ram=152000 gigabytes=100 floatingip=0
move      give the engine's machine another address, like a laptop in another network; `move --off` ends it
full      fill the hosts with servers of another project; `full --off` ends it
fault     make the next calls of a service fail
clear     remove the planned faults
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from openstack.exceptions import SDKException, raise_from_response

from emulator.openstack import faults, seed
from emulator.openstack.deployment import Deployment
from emulator.openstack.facts import facts
from emulator.openstack.faults import Fault, Faults
from emulator.openstack.folder import SERVICES, Folder
from emulator.paths import Paths

_WAIT_SECONDS = 60
_OTHERS = "0c5c0000-0000-4000-8000-000000000001"
"""The project that fills the hosts."""

_QUOTAS: Mapping[str, tuple[str, ...]] = {
    "compute": ("instances", "cores", "ram", "key_pairs", "server_groups"),
    "network": ("floatingip", "network", "port", "router", "security_group", "security_group_rule"),
    "volume": ("gigabytes", "volumes", "snapshots"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    paths = Paths.of(state=options.state) if options.state else Paths.of().of_stack(options.stack)
    folder = Deployment(paths).folder
    try:
        if not folder.ports_file.exists():
            raise ValueError(f"stack {options.stack} has no local OpenStack. Run `make up STACK={options.stack}`")
        options.command(folder, options)
    except (SDKException, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m emulator.openstack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--stack", default="cpouta", help="stack of the local environment")
    common.add_argument("--state", type=Path, help="state folder of the environment, instead of the stack's")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, function: Any) -> argparse.ArgumentParser:
        found = commands.add_parser(name, parents=[common])
        found.set_defaults(command=function)
        return found

    opened = command("open", _open)
    opened.add_argument("--group", required=True, help="name or id of a security group")
    opened.add_argument("--cidr", default="0.0.0.0/0")
    opened.add_argument("--port", type=int, default=22)
    command("detach", _detach).add_argument("--volume", required=True, help="name or id")
    command("delete", _delete).add_argument("--server", required=True, help="name or id")
    names = ", ".join(name for known in _QUOTAS.values() for name in known)
    command("quota", _quota).add_argument("quotas", nargs="+", metavar="name=limit", help=f"{names}; -1 means no limit")
    moved = command("move", _move).add_mutually_exclusive_group(required=True)
    moved.add_argument("--to", metavar="ADDRESS")
    moved.add_argument("--off", action="store_true")
    command("full", _full).add_argument("--off", action="store_true")
    fault = command("fault", _fault)
    fault.add_argument("--on", required=True, choices=SERVICES)
    fault.add_argument("--call", default="*", help="pattern of method and path, e.g. 'POST */servers'; default all")
    kinds = "; ".join(f"{kind}: {text}" for kind, text in faults.KINDS.items())
    fault.add_argument("--kind", required=True, choices=sorted(faults.KINDS), help=kinds)
    fault.add_argument("--times", type=int, default=1)
    command("clear", _clear)
    return parser


def _open(folder: Folder, options: argparse.Namespace) -> None:
    cloud = seed.administrator(folder)
    group = cloud.network.find_security_group(options.group, ignore_missing=False)
    cloud.network.create_security_group_rule(
        security_group_id=group.id,
        direction="ingress",
        ether_type="IPv4",
        protocol="tcp",
        port_range_min=options.port,
        port_range_max=options.port,
        remote_ip_prefix=options.cidr,
    )
    print(f"{group.name} admits {options.cidr} to port {options.port}")


def _detach(folder: Folder, options: argparse.Namespace) -> None:
    cloud = seed.administrator(folder)
    volume = cloud.block_storage.find_volume(options.volume, ignore_missing=False, all_projects=True)
    for attachment in volume.attachments:
        cloud.compute.delete_volume_attachment(attachment["server_id"], volume.id)
    cloud.block_storage.wait_for_status(volume, "available", interval=1, wait=_WAIT_SECONDS)
    print(f"{options.volume} is detached")


def _delete(folder: Folder, options: argparse.Namespace) -> None:
    cloud = seed.administrator(folder)
    server = cloud.compute.find_server(options.server, ignore_missing=False, all_projects=True)
    cloud.compute.delete_server(server.id)
    cloud.compute.wait_for_delete(server, interval=1, wait=_WAIT_SECONDS)
    print(f"{options.server} is deleted")


def _quota(folder: Folder, options: argparse.Namespace) -> None:
    limits = dict(_limit(text) for text in options.quotas)
    cloud = seed.administrator(folder)
    project = seed.project_id(cloud)
    setters: dict[str, Callable[..., object]] = {
        "compute": cloud.compute.update_quota_set,
        "network": cloud.network.update_quota,
        "volume": cloud.block_storage.update_quota_set,
    }
    for service, names in _QUOTAS.items():
        wanted = {name: limits[name] for name in names if name in limits}
        if wanted:
            setters[service](project, **wanted)
    print(f"quotas of {facts()['project']}: {', '.join(options.quotas)}")


def _limit(text: str) -> tuple[str, int]:
    name, _, limit = text.partition("=")
    known = [each for names in _QUOTAS.values() for each in names]
    if name not in known or not limit.removeprefix("-").isdigit():
        raise ValueError(f"{text!r} is not a quota. Give <name>=<number> with one of the names {', '.join(known)}")
    return name, int(limit)


def _move(folder: Folder, options: argparse.Namespace) -> None:
    """Change the source address of connections to guests; the guests' gateway reads it."""
    if options.off:
        folder.caller_file.unlink(missing_ok=True)
        print("callers have any address that a rule admits")
        return
    folder.caller_file.write_text(str(ip_address(options.to)))
    print(f"callers now have the address {options.to}; connections from other addresses break")


def _full(folder: Folder, options: argparse.Namespace) -> None:
    """Allocate all free memory to a server of another project in Placement, which the scheduler reads."""
    cloud = seed.administrator(folder)
    others = f"/allocations/{_OTHERS}"
    cloud.placement.delete(others)
    if options.off:
        print("the hosts have free memory again")
        return
    free = {}
    for provider in cloud.placement.resource_providers():
        memory = cloud.placement.get_resource_provider_inventory("MEMORY_MB", provider)
        used = cloud.placement.get(f"/resource_providers/{provider.id}/usages").json()["usages"]["MEMORY_MB"]
        left = int(memory.total * memory.allocation_ratio) - memory.reserved - used
        if left > 0:
            free[provider.id] = {"resources": {"MEMORY_MB": left}}
    owner = {"project_id": _OTHERS, "user_id": _OTHERS, "consumer_generation": None}
    answer = cloud.placement.put(others, json={"allocations": free, **owner}, microversion="1.28")
    raise_from_response(answer)
    print("no host has free memory for another server")


def _fault(folder: Folder, options: argparse.Namespace) -> None:
    if options.times < 1:
        raise ValueError(f"--times: {options.times} is less than 1. Give 1 or more")
    Faults(folder.faults_file).plan(Fault(options.on, options.call, options.kind, options.times))
    print(f"planned for the next {options.times} calls {options.call!r} of {options.on}: {options.kind}")


def _clear(folder: Folder, options: argparse.Namespace) -> None:
    Faults(folder.faults_file).clear()
    print("all planned faults are removed")


if __name__ == "__main__":
    sys.exit(main())
