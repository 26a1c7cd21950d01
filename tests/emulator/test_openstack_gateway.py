"""Packets that a security group admits to a guest of the local OpenStack."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from openstack.network.v2.security_group_rule import SecurityGroupRule

from emulator.openstack.__main__ import main
from emulator.openstack.deployment import Deployment
from emulator.openstack_guest import gateway
from emulator.openstack_guest.gateway import Gateway, Running, lets_in
from emulator.paths import Paths

SSH = {"ether_type": "IPv4", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"port_range_min": None, "port_range_max": None}, True),
        ({"protocol": None, "port_range_min": None, "port_range_max": None}, True),
        ({"protocol": "udp"}, False),
        ({"port_range_min": 80, "port_range_max": 443}, False),
        ({"ether_type": "IPv6"}, False),
        ({"remote_group_id": "own"}, False),
    ],
)
def test_a_rule_lets_ssh_in(change: dict[str, Any], expected: bool) -> None:
    assert lets_in(SecurityGroupRule(**{**SSH, **change}), 22, None) is expected


@pytest.mark.parametrize(
    ("source", "expected"), [(None, True), ("0.0.0.0/0", True), ("198.51.100.0/24", True), ("198.51.100.8/32", False)]
)
def test_rules_for_an_address_admit_its_caller(source: str | None, expected: bool) -> None:
    assert lets_in(SecurityGroupRule(**SSH, remote_ip_prefix=source), 22, "198.51.100.7") is expected


def test_open_connections_break_when_the_caller_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Connected:
        dropped = 0

        def drop(self) -> None:
            self.dropped += 1

    monkeypatch.setattr(gateway, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(Gateway, "_is_active", lambda self, identifier: True)
    paths = Paths.of(state=tmp_path)
    ports = Deployment(paths).folder.ports_file
    ports.parent.mkdir(parents=True)
    ports.write_text("{}")
    guest: Any = Connected()
    looking = Gateway(paths)
    looking._guests["server"] = Running(guest, guest)

    async def look() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(looking.look(), 1)

    async def move() -> None:
        await asyncio.sleep(0.3)
        assert guest.dropped == 0
        assert main(["move", "--to", "198.51.100.9", "--state", str(tmp_path)]) == 0

    async def both() -> None:
        await asyncio.gather(look(), move())

    asyncio.run(both())
    assert guest.dropped == 1
    assert main(["move", "--to", "my house", "--state", str(tmp_path)]) == 1
    assert Deployment(paths).folder.caller() == "198.51.100.9"
    assert main(["move", "--off", "--state", str(tmp_path)]) == 0
    assert Deployment(paths).folder.caller() is None
