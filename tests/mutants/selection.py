"""Select and order the tests for a change: the most similar ones first.

Reads only texts, so that a run starts at once. First come the files that import the changed module by its name or read
its file. Then come those that share the most words with the lines around the change. A word counts more if fewer test
files have it.
"""

import math
import re
from collections import Counter
from pathlib import Path

from tests.mutants.changes import Change

FOLDERS = ("unit", "emulator")
"""Of tests: what `make unit` runs."""
NEAR = 12
"""Lines before and after a change that tell what it is about."""


class Selection:
    """Orders the files of tests that need no cluster for a change. root: the checkout."""

    def __init__(self, root: Path) -> None:
        files = sorted(file for folder in FOLDERS for file in (root / "tests" / folder).rglob("test_*.py"))
        self._texts = {str(file.relative_to(root)): file.read_text() for file in files}
        self._words = {
            str(file.relative_to(root)): words("\n".join(text.read_text() for text in (file, *_beside(file))))
            for file in files
        }
        self._known_by = Counter(word for found in self._words.values() for word in found)

    def of(self, change: Change, source: bytes) -> list[str]:
        """Return all files of tests, the ones that most likely notice a change first. source: the module as it is."""
        lines = source.decode().splitlines()
        near = words("\n".join((change.file, *lines[max(0, change.line - 1 - NEAR) : change.line + NEAR])))
        return sorted(
            self._texts, key=lambda test: (not self._names(test, change.file), -self._shared(test, near), test)
        )

    def _shared(self, test: str, near: set[str]) -> float:
        return sum(math.log(len(self._words) / self._known_by[word]) for word in near & self._words[test])

    def _names(self, test: str, file: str) -> bool:
        own = module(file)
        parent, _, name = own.rpartition(".")
        text = self._texts[test]
        return (
            f"{own} import" in text
            or re.search(rf"^ *from {re.escape(parent)} import .*\b{name}\b", text, re.MULTILINE) is not None
            or f'"{Path(file).name}"' in text
        )


def _beside(file: Path) -> list[Path]:
    """Return the texts that a file of tests compares with, in a folder of its name."""
    folder = file.parent / file.stem.removeprefix("test_")
    return [beside for beside in sorted(folder.glob("*")) if beside.suffix in (".txt", ".yaml")]


def words(text: str) -> set[str]:
    """Return the words of a text, each once and in the singular: `GpuPools` and `gpu_pool` have two in common."""
    return {word.lower().removesuffix("s") for word in re.findall(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}", text)}


def module(file: str) -> str:
    """Return the module name of a file."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
