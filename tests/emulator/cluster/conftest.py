"""What tests of the local kubelet share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.cluster.relay import Relay

_SOURCE = Path(__file__).resolve().parents[3] / "emulator" / "tools" / "relay"


@pytest.fixture(scope="session")
def relay_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The relay, built."""
    program = tmp_path_factory.mktemp("relay") / "relay"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    subprocess.run(["go", "build", "-o", str(program), "./relay"], cwd=_SOURCE, env=environment, check=True)
    return program


@pytest.fixture
def relay(relay_program: Path) -> Iterator[Relay]:
    """A relay that runs."""
    found = Relay(relay_program)
    yield found
    found.close()
