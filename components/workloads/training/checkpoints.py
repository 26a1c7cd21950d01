"""Checkpoints of a training in a folder that all of its pods see: each is there as a whole or not at all."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

KEPT = 2
"""How many there are at least, so that one that cannot be read costs no more than the steps between two."""


class Checkpoints:
    """The checkpoints in a folder, by the number of steps that they have behind them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, state: Mapping[str, Any]) -> None:
        """Write the state after so many steps, and remove what is older than the last ones.

        It gets its name when all of it is on the disk: who is killed before has written nothing, and what is left of it
        makes room for the next one.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob("step-*.partial"):
            left.unlink(missing_ok=True)
        partial = self.folder / f"step-{step:08d}.partial"
        with partial.open("wb") as file:
            torch.save(dict(state), file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.folder / f"step-{step:08d}.pt")
        for old in self.found()[KEPT:]:
            old.unlink(missing_ok=True)

    def newest(self) -> Mapping[str, Any] | None:
        """Return the state of the newest one that can be read, None where there is none."""
        for path in self.found():
            try:
                state: Mapping[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
                print(f"{path.name} cannot be read, the one before is taken: {error}", flush=True)
            else:
                return state
        return None

    def found(self) -> list[Path]:
        """Return the files, the newest first."""
        return sorted(self.folder.glob("step-*.pt"), reverse=True)
