"""Checkpoints of a training in a folder that all its pods mount. A checkpoint is whole or does not exist."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

KEPT = 2
"""Number of checkpoints that are kept. If the newest one cannot be read, the one before it is used."""


class Checkpoints:
    """The checkpoints in a folder, named after their step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, state: Mapping[str, Any]) -> None:
        """Write the state after a step, and delete older checkpoints.

        A file gets its final name when it is on the disk. The next call deletes the partial file of a killed process.
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
        """Return the state of the newest readable checkpoint, or None."""
        for path in self.found():
            try:
                state: Mapping[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
                print(f"{path.name} cannot be read, so the one before it is used: {error}", flush=True)
            else:
                return state
        return None

    def found(self) -> list[Path]:
        """Return the files, the newest first."""
        return sorted(self.folder.glob("step-*.pt"), reverse=True)
