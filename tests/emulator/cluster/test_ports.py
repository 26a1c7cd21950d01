"""Ports are kept, and changed only if another process uses one."""

import socket
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from components.openstack.access.host import Host
from components.openstack.access.kubeconfig import local_port
from emulator.cluster import ports


def test_ports_are_distinct_and_the_same_for_the_same_folder() -> None:
    first = ports.choose("/a", {}, free=lambda port: True)
    assert len(set(asdict(first).values())) == len(ports.NAMES)
    assert first == ports.choose("/a", {}, free=lambda port: True)
    assert first != ports.choose("/b", {}, free=lambda port: True)


def test_no_port_is_that_of_a_tunnel_to_a_vm() -> None:
    """A listener on a tunnel's port would be mistaken for another user's tunnel."""
    host = Host(address="203.0.113.7", user="ubuntu", private_key_file="key", public_key="ssh-ed25519 A", vm="0")
    tunnels = {local_port(replace(host, vm=str(number))) for number in range(1000)}
    chosen = {port for folder in range(100) for port in asdict(ports.choose(f"/{folder}", {}, free=bool)).values()}
    assert max(chosen) < min(tunnels)


def test_only_a_taken_port_changes() -> None:
    kept = asdict(ports.choose("/a", {}, free=lambda port: True))
    chosen = asdict(ports.choose("/a", kept, free=lambda port: port != kept["api"]))
    assert chosen.pop("api") not in kept.values()
    assert kept.items() >= chosen.items()


def test_a_listening_port_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        assert not ports.is_free(number)
    assert ports.is_free(number)


def test_no_free_port_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no free TCP port"):
        ports.choose("/a", {}, free=lambda port: False)


def test_saved_ports_come_back_and_damage_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    assert ports.load(path) == {}
    chosen = ports.choose("/a", {}, free=lambda port: True)
    ports.save(path, chosen)
    assert ports.load(path) == asdict(chosen)
    path.write_text('{"api": "x", "other": 1')
    assert ports.load(path) == {}
