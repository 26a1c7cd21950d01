"""Which tests matter to a change: those whose file runs the changed function, the closest ones first.

Measured once for each file of tests, in a process of its own, and kept under `.local/`: a file is measured again when
its text changes. What runs at import, such as a constant, matters to the tests that run functions of its module or of
a module that imports it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import coverage

from tests.mutants.changes import Change

PROGRAM = ("components", "stacks", "runner")


@dataclass(frozen=True)
class Measured:
    """What one file of tests runs.

    digest: of its text. passes: whether it does as it is. functions: names by module.
    """

    digest: str
    seconds: float
    passes: bool
    functions: Mapping[str, Sequence[str]]


def digest(file: Path) -> str:
    """Return what tells one text of a file from another."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def measure(test: str, run: Callable[[Sequence[str]], int]) -> Measured:
    """Run a file of tests in this process, whose folder is the checkout, and return what it ran."""
    measuring = coverage.Coverage(data_file=None, source=list(PROGRAM), config_file=False)
    began = time.monotonic()
    measuring.start()
    code = run([test])
    measuring.stop()
    seconds = time.monotonic() - began
    data = measuring.get_data()
    root = Path.cwd()
    functions = {
        str(Path(file).relative_to(root)): executed(Path(file), data.lines(file) or ())
        for file in data.measured_files()
    }
    return Measured(digest(Path(test)), seconds, code == 0, {file: names for file, names in functions.items() if names})


def executed(file: Path, lines: Iterable[int]) -> list[str]:
    """Return the functions of a module of which a line was run."""
    ran = set(lines)
    return sorted(
        name for name, first, last in _functions(ast.parse(file.read_text()), "") if ran & set(range(first, last + 1))
    )


def _functions(node: ast.AST, scope: str) -> Iterable[tuple[str, int, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{scope}{child.name}", child.body[0].lineno, child.end_lineno or child.lineno
            yield from _functions(child, f"{scope}{child.name}.<locals>.")
        else:
            yield from _functions(child, f"{scope}{child.name}." if isinstance(child, ast.ClassDef) else scope)


def load(file: Path) -> dict[str, Measured]:
    """Return what was measured before, by file of tests."""
    if not file.exists():
        return {}
    return {test: Measured(**measured) for test, measured in json.loads(file.read_text()).items()}


def save(file: Path, measured: Mapping[str, Measured]) -> None:
    """Keep what was measured."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({test: asdict(what) for test, what in sorted(measured.items())}))


class Selection:
    """Chooses the tests of a change."""

    def __init__(self, root: Path, measured: Mapping[str, Measured]) -> None:
        self._measured = {test: what for test, what in measured.items() if what.passes}
        self._texts = {test: (root / test).read_text() for test in self._measured}
        modules = [file.relative_to(root) for folder in PROGRAM for file in (root / folder).rglob("*.py")]
        imports = {str(file): _imports(ast.parse((root / file).read_text())) for file in modules}
        self._users = {
            str(file): [user for user, names in imports.items() if module(str(file)) in names] for file in modules
        }

    def of(self, change: Change, seconds: float) -> list[str]:
        """Return the files of tests for a change, those that name its module first, then the quick ones.

        seconds: what they may take together; the first is taken whatever it takes.
        """
        users = [change.file, *([] if change.function else self._users[change.file])]
        runs = [
            test
            for test, what in self._measured.items()
            if any(
                change.function in what.functions.get(user, ()) if change.function else user in what.functions
                for user in users
            )
            or self._names(test, change.file)
        ]
        ranked = sorted(runs, key=lambda test: (not self._names(test, change.file), self._measured[test].seconds))
        chosen, used = [], 0.0
        for test in ranked:
            used += self._measured[test].seconds
            if not chosen or used <= seconds:
                chosen.append(test)
        return chosen

    def _names(self, test: str, file: str) -> bool:
        own = module(file)
        parent, _, name = own.rpartition(".")
        text = self._texts[test]
        return f"{own} import" in text or f"from {parent} import {name}\n" in text or f'"{Path(file).name}"' in text


def module(file: str) -> str:
    """Return the name by which a file is imported."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found
