"""What tests of the local kubelet share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.cluster.relay import PROGRAM, Relay
from emulator.paths import Paths
from emulator.toolchain import RELAY, Toolchain


@pytest.fixture(scope="session")
def relay_program() -> Path:
    """The relay, built as `make build` builds it, and kept where that keeps it."""
    tools = Toolchain(Paths.of())
    tools.build(RELAY.need())
    return tools.folder(RELAY) / PROGRAM


@pytest.fixture
def relay(relay_program: Path) -> Iterator[Relay]:
    """A relay that runs."""
    found = Relay(relay_program)
    yield found
    found.close()
