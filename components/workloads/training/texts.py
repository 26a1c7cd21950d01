"""Texts to train on: of files, or made up; the same for the same step and process, so that nothing is kept of them."""

from __future__ import annotations

import random
from bisect import bisect_right
from itertools import accumulate
from mmap import ACCESS_READ, mmap
from pathlib import Path

VOCABULARY = 256
"""Each byte is a token, so that any text is data as it is."""
_STRIDES = 16


class Texts:
    """What each process trains on in each step.

    folder: whose files are read as bytes; None for sequences of numbers in even strides, which a model can learn.
    length: of a text, in bytes, each of which lies in one file. Raises ValueError where no file is long enough.
    """

    def __init__(self, folder: Path | None, length: int) -> None:
        self._length = length
        self._files = None if folder is None else _files(folder, length)
        if self._files == []:
            raise ValueError(f"no file in {folder} has {length + 1} bytes, as many as a text and what follows it")
        self._ends = list(accumulate(len(file) - length for file in self._files or ()))

    def batch(self, step: int, rank: int, size: int) -> list[bytes]:
        """Return size texts of length + 1: what a model reads, and one byte more to tell it what was next."""
        chance = random.Random(f"{step} {rank}")  # noqa: S311 - it trains, and hides nothing
        return [self._text(chance) for _ in range(size)]

    def _text(self, chance: random.Random) -> bytes:
        """Return a text: made up, or from any place of all files together."""
        if self._files is None:
            start, stride = chance.randrange(VOCABULARY), chance.randrange(1, _STRIDES)
            return bytes((start + stride * index) % VOCABULARY for index in range(self._length + 1))
        place = chance.randrange(self._ends[-1])
        number = bisect_right(self._ends, place)
        start = place - (self._ends[number - 1] if number else 0)
        return self._files[number][start : start + self._length + 1]


def _files(folder: Path, length: int) -> list[mmap]:
    """Return the files that are long enough, which are read from the volume when they are used."""
    return [_mapped(path) for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size > length]


def _mapped(path: Path) -> mmap:
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)
