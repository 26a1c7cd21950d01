"""Which packets a security group lets through to a guest of the local OpenStack."""

from __future__ import annotations

from typing import Any

import pytest
from openstack.network.v2.security_group_rule import SecurityGroupRule

from emulator.openstack_guest.gateway import lets_in

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
    assert lets_in(SecurityGroupRule(**{**SSH, **change}), 22) is expected
