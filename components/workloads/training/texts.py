"""Texts to train on, from files or generated. The step and the process alone determine them."""

from __future__ import annotations

import random
from bisect import bisect_right
from itertools import accumulate
from mmap import ACCESS_READ, mmap
from pathlib import Path

VOCABULARY = 256
"""Each byte is a token, so any text is data."""
_STRIDES = 16


class Texts:
    """The texts of each step and process.

    folder: its files are read as bytes. None generates sequences with a constant difference, which a model can learn.
    length: bytes of a text. A text never spans two files. Raises ValueError if no file is long enough.
    """

    def __init__(self, folder: Path | None, length: int) -> None:
        self._length = length
        self._files = None if folder is None else _files(folder, length)
        if self._files == []:
            raise ValueError(f"no file in {folder} has {length + 1} bytes, the length of a text and its next byte")
        self._ends = list(accumulate(len(file) - length for file in self._files or ()))

    def batch(self, step: int, rank: int, size: int) -> list[bytes]:
        """Return texts of length + 1 bytes: the model's input, and the byte that follows it."""
        chance = random.Random(f"{step} {rank}")  # noqa: S311 - not for cryptography
        return [self._text(chance) for _ in range(size)]

    def _text(self, chance: random.Random) -> bytes:
        """Return a generated text, or one from a random place in all files."""
        if self._files is None:
            start, stride = chance.randrange(VOCABULARY), chance.randrange(1, _STRIDES)
            return bytes((start + stride * index) % VOCABULARY for index in range(self._length + 1))
        place = chance.randrange(self._ends[-1])
        number = bisect_right(self._ends, place)
        start = place - (self._ends[number - 1] if number else 0)
        return self._files[number][start : start + self._length + 1]


def _files(folder: Path, length: int) -> list[mmap]:
    """Return the files that are long enough, as memory maps."""
    return [_mapped(path) for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size > length]


def _mapped(path: Path) -> mmap:
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)
