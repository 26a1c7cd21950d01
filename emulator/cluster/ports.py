"""The TCP ports of one local cluster, chosen at the first start and kept."""

import hashlib
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from emulator.openstack.folder import SERVICES
from runner.files import write_private

# Below the kernel's ephemeral range (from 32768 by default, ip-sysctl.rst), so that no outgoing connection takes a kept
# port, and below the ports of tunnels to VMs (components/openstack/access/kubeconfig.py), which are the same
# everywhere.
_LOWEST = 10000
_HIGHEST = 19999


@dataclass(frozen=True)
class Ports:
    """The ports on 127.0.0.1, one for each listener."""

    api: int
    controller_manager: int
    scheduler: int
    kwok: int
    azure: int
    keystone: int
    placement: int
    glance: int
    neutron: int
    cinder: int
    nova: int

    @property
    def openstack(self) -> dict[str, int]:
        """The port of each OpenStack service."""
        return {service: getattr(self, service) for service in SERVICES}


NAMES = tuple(field.name for field in fields(Ports))


def is_free(port: int) -> bool:
    """Tell whether a server could listen on 127.0.0.1:port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Like the servers: a port with connections only in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def choose(seed: str, kept: Mapping[str, int], free: Callable[[int], bool] = is_free) -> Ports:
    """Return a port for each listener: the kept one if it is free, else the next free one.

    The search starts at a port derived from `seed` (the state folder). So two checkouts rarely conflict, and an emptied
    environment gets the same ports again. Raises RuntimeError if no port in 10000..19999 is free.
    """
    chosen = {name: kept[name] for name in NAMES if isinstance(kept.get(name), int) and free(kept[name])}
    span = _HIGHEST - _LOWEST + 1
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big") % span
    candidates = (_LOWEST + (start + step) % span for step in range(span))
    for name in NAMES:
        if name in chosen:
            continue
        port = next((port for port in candidates if port not in chosen.values() and free(port)), None)
        if port is None:
            raise RuntimeError(f"no free TCP port on 127.0.0.1 between {_LOWEST} and {_HIGHEST}. Stop other servers")
        chosen[name] = port
    return Ports(**chosen)


def load(path: Path) -> dict[str, int]:
    """Return the ports that `save` wrote, none if the file is missing or damaged."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: port for name, port in found.items() if name in NAMES and isinstance(port, int)}


def save(path: Path, ports: Ports) -> None:
    """Save the ports for the next start."""
    write_private(path, json.dumps(asdict(ports), indent=2) + "\n")
