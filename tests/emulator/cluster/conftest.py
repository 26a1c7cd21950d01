"""Fixtures for tests of the local kubelet."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.cluster.relay import PROGRAM, Relay
from emulator.paths import Paths
from emulator.toolchain import RELAY, Toolchain


@pytest.fixture(scope="session")
def relay_program() -> Path:
    """Return the relay, built by `make build` or in the same place."""
    tools = Toolchain(Paths.of())
    tools.build(RELAY.need())
    return tools.folder(RELAY) / PROGRAM


@pytest.fixture
def relay(relay_program: Path) -> Iterator[Relay]:
    """Yield a running relay."""
    found = Relay(relay_program)
    yield found
    found.close()
