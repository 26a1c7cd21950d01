"""What tests of the local kubelet share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.cluster.relay import PROGRAM, Relay
from emulator.paths import Paths
from emulator.toolchain import RELAY, Need, Toolchain


@pytest.fixture(scope="session")
def relay_program() -> Path:
    """The relay, built as `make build` builds it, and kept where that keeps it."""
    tools, need = Toolchain(Paths.of()), Need(RELAY, RELAY.named(PROGRAM))
    if not tools._built(need).exists():
        tools._check_go([RELAY])
        tools._build(need)
    return tools._built(need)


@pytest.fixture
def relay(relay_program: Path) -> Iterator[Relay]:
    """A relay that runs."""
    found = Relay(relay_program)
    yield found
    found.close()
