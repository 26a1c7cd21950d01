"""Texts to train on: of files, or made up; the same for the same step and process, so that nothing is kept of them."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from components.workloads.training.model import VOCABULARY

_STRIDES = 16


class Texts:
    """What each process trains on in each step.

    folder: whose files are read as bytes; None for sequences of numbers in even strides, which a model can learn.
    length: of a text, in bytes, each of which lies in one file. Raises ValueError where no file is long enough.
    """

    def __init__(self, folder: Path | None, length: int) -> None:
        self.length = length
        self.files = [] if folder is None else _files(folder, length)
        self.made_up = folder is None
        if folder is not None and not self.files:
            raise ValueError(f"no file in {folder} has {length + 1} bytes, as many as a text and what follows it")
        self.ends = torch.tensor([len(file) - length for file in self.files]).cumsum(0)

    def batch(self, step: int, rank: int, size: int) -> Tensor:
        """Return texts of shape (size, length + 1): what a model reads, and one byte more to tell it what was next."""
        chance = torch.Generator().manual_seed((step << 20) + rank)
        if self.made_up:
            starts = torch.randint(VOCABULARY, (size, 1), generator=chance)
            strides = torch.randint(1, _STRIDES, (size, 1), generator=chance)
            return (starts + strides * torch.arange(self.length + 1)) % VOCABULARY
        places = torch.randint(int(self.ends[-1]), (size,), generator=chance)
        return torch.stack([self._text(int(place)) for place in places]).long()

    def _text(self, place: int) -> Tensor:
        """Return the text that begins at a place of all files together."""
        number = int(torch.searchsorted(self.ends, place, right=True))
        start = place - (int(self.ends[number - 1]) if number else 0)
        return self.files[number][start : start + self.length + 1]


def _files(folder: Path, length: int) -> list[Tensor]:
    """Return the bytes of the files that are long enough, which are read from the volume when they are used."""
    files = [(path, path.stat().st_size) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [torch.from_file(str(path), size=size, dtype=torch.uint8) for path, size in files if size > length]
