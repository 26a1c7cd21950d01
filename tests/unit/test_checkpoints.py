"""Checkpoints of a training whose process is killed while it writes them. `make training` reads them with PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

MODULE = "components.workloads.training.checkpoints"


@pytest.fixture
def torch() -> Iterator[SimpleNamespace]:
    """What the program uses of PyTorch, which the tests' environment has not."""
    with pytest.MonkeyPatch.context() as patch:
        found = SimpleNamespace(save=whole, load=None)
        patch.setitem(sys.modules, "torch", found)
        patch.delitem(sys.modules, MODULE, raising=False)
        yield found
    sys.modules.pop(MODULE, None)


def whole(state: object, file: IO[bytes]) -> None:
    file.write(b"weights")


def killed(state: object, file: IO[bytes]) -> None:
    file.write(b"wei")
    raise KeyboardInterrupt


def test_what_is_left_of_a_checkpoint_that_was_never_whole_fills_no_volume(
    torch: SimpleNamespace, tmp_path: Path
) -> None:
    """Preemptions come at any step, so that each would leave a file of its own."""
    checkpoints: Any = import_module(MODULE).Checkpoints(tmp_path)
    checkpoints.save(100, {})
    torch.save = killed
    for step in (131, 152):
        with pytest.raises(KeyboardInterrupt):
            checkpoints.save(step, {})
        assert names(tmp_path) == ["step-00000100.pt", f"step-{step:08d}.partial"]
    torch.save = whole
    for step in (200, 300):
        checkpoints.save(step, {})
    assert names(tmp_path) == ["step-00000200.pt", "step-00000300.pt"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
