"""Serve the emulated Azure, or change it without the engine.

scale     change the count of an agent pool
fault     make the next matching calls fail
clear     remove the planned faults and let stuck operations continue
upgrade   install a new node image in a pool, as `az aks nodepool upgrade --node-image-only` does
maintain  open the weekly maintenance window: AKS does what the cluster's node OS channel says
remove    delete the machine of a node, as `az aks nodepool delete-machines` does
register  make a resource provider use its registered features, as `az provider register` does
serve     serve the engine's provider protocol (the local environment does that)
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulator.azure import faults, nodes
from emulator.azure.local_cluster import LocalCluster, subscription
from emulator.azure.services import resources
from emulator.azure.services.agent_pools import settle_instances
from emulator.azure.services.base import CLUSTER, POOL, at
from emulator.paths import Paths
from emulator.plugin.errors import ProviderError
from runner.files import UMASK


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    os.umask(UMASK)
    paths = Paths.of(state=options.state) if options.state else Paths.of().of_stack(options.stack)
    try:
        return int(options.command(paths, options) or 0)
    except (ProviderError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m emulator.azure", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--stack", default="aks", help="stack of the local environment")
    common.add_argument("--state", type=Path, help="state folder of the environment, instead of the stack's")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, function: Any) -> argparse.ArgumentParser:
        found = commands.add_parser(name, parents=[common])
        found.set_defaults(command=function)
        return found

    command("serve", _serve).add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    scale = command("scale", _scale)
    scale.add_argument("--pool", required=True, help="name or id of an agent pool")
    scale.add_argument("--count", type=int, required=True)
    fault = command("fault", _fault)
    fault.add_argument("--on", required=True, help="pattern of a type, an id or a name, e.g. '*agentPools' or ndv5")
    kinds = "; ".join(f"{kind}: {text}" for kind, text in faults.KINDS.items())
    fault.add_argument("--kind", required=True, choices=sorted(faults.KINDS), help=kinds)
    fault.add_argument("--times", type=int, default=1)
    command("clear", _clear)
    command("upgrade", _upgrade).add_argument("--pool", required=True, help="name of an agent pool")
    command("maintain", _maintain)
    command("remove", _remove).add_argument("--node", required=True, help="name of a node")
    command("register", _register).add_argument("--namespace", default="Microsoft.ContainerService")
    return parser


def _serve(paths: Paths, options: argparse.Namespace) -> int:
    # Imported here because the SDK's runtime is slow to import and the other commands do not need it.
    from emulator.azure.lifecycle import Lifecycle
    from emulator.azure.server import Azure
    from emulator.plugin.server import serve

    LocalCluster(paths).install_kubelogin()
    return serve(Azure(Lifecycle(subscription(paths))), options.port)


def _scale(paths: Paths, options: argparse.Namespace) -> None:
    if options.count < 0:
        raise ValueError(f"--count: {options.count} is negative. Give 0 or more")
    with subscription(paths).edit() as state:
        pools = state.of_type(POOL)
        found = [each for each in pools if options.pool in (each.name, each.id)]
        if len(found) != 1:
            raise ValueError(f"{len(found)} pools are named {options.pool!r} in {[each.id for each in pools]}")
        found[0].properties["count"] = options.count
        settle_instances(found[0])
    print(f"{options.pool} has {options.count} nodes")


def _fault(paths: Paths, options: argparse.Namespace) -> None:
    with subscription(paths).edit() as state:
        faults.add(state, options.on, options.kind, options.times)


def _clear(paths: Paths, options: argparse.Namespace) -> None:
    with subscription(paths).edit() as state:
        faults.clear(state)


def _upgrade(paths: Paths, options: argparse.Namespace) -> None:
    subscription(paths).upgrade_images(options.pool)
    print(f"{options.pool} has a new node image")


def _maintain(paths: Paths, options: argparse.Namespace) -> None:
    arm = subscription(paths)
    channels = [at(each.properties, "autoUpgradeProfile.nodeOSUpgradeChannel") for each in arm.state().of_type(CLUSTER)]
    if not {*channels} & {"NodeImage", "SecurityPatch"}:
        print(f"AKS changes no node: the node OS channel is {', '.join(channels) or 'missing'}")
        return
    arm.upgrade_images()
    print("all pools have a new node image")


def _remove(paths: Paths, options: argparse.Namespace) -> None:
    arm = subscription(paths)
    with arm.edit() as state:
        found = next((each for each in nodes.desired(arm.facts, state) if each.name == options.node), None)
        if found is None:
            raise ValueError(f"--node: no pool has the node {options.node}")
        pool = next(each for each in state.of_type(POOL) if each.name == found.labels["agentpool"])
        pool.hidden["instances"].remove(int(found.provider_id.rpartition("/")[2]))
        pool.properties["count"] -= 1
    print(f"the machine of {options.node} is deleted")


def _register(paths: Paths, options: argparse.Namespace) -> None:
    with subscription(paths).edit() as state:
        found = resources.propagate(state, options.namespace)
    print(f"{options.namespace} now uses {', '.join(found) or 'no feature'}")


if __name__ == "__main__":
    sys.exit(main())
