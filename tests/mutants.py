"""Change functions of the program with mutmut, one change at a time, and print the changes that no unit test notices.

mutmut copies the checkout to `.local/mutants`. It runs the tests once to learn which test calls which function. Then it
runs, for each change, the tests that call the changed function. It does not change constants, fields of classes, and
decorated functions.

pytest loads this module as a plugin there, for two reasons. Tests share results of fixtures and cached functions, so
that only the first test calls the program: the plugin attributes these calls to each test that uses the result. Some
tests fail in a copy, or read the program's text: the plugin leaves them out.
"""

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mutmut.state import state

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / ".local" / "mutants"
PROGRAM = ("components", "stacks", "ask", "cli", "drift", "member", "reference", "repair", "review", "runner")
FAILING = Path("failing-tests")
"""Names of the tests that fail without a change in mutmut's copy."""
CALLS: dict[Hashable, set[str]] = {}
"""Functions of the program that are called for a result that tests share."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run mutmut and print the survivors."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--base", default="main", help="a branch: files that differ from it are changed")
    parser.add_argument("--files", nargs="+", help="modules or folders to change instead, such as ask/room.py")
    parser.add_argument("--tests", nargs="+", default=["tests/unit"], help="files of tests to run")
    options = parser.parse_args(arguments)
    differing = ("diff", "--name-only", "--diff-filter=d", "--merge-base", options.base)
    named = git("ls-files", *options.files) if options.files else git(*differing)
    files = [file for file in named if file.endswith(".py") and file.split("/")[0] in PROGRAM]
    if not files:
        sys.exit(f"no module of {', '.join(PROGRAM)} differs from {options.base}. Name modules with FILES=")
    prepare(files, options.tests)
    with (COPY / "log").open("w") as log:
        code = subprocess.run(["mutmut", "run", "*"], cwd=COPY, stdout=log, stderr=log, env=environment()).returncode
    if code:
        sys.exit(f"mutmut failed: see {COPY / 'log'}")
    results = [line.strip().split(": ") for line in mutmut("results", "--all", "true").splitlines()]
    for name, status in results:
        if status not in ("killed", "timeout"):
            print(mutmut("show", name))
    noticed = sum(status in ("killed", "timeout") for _, status in results)
    print(f"{noticed} of {len(results)} changes noticed")


def git(*arguments: str) -> list[str]:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def environment() -> dict[str, str]:
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def mutmut(*arguments: str) -> str:
    command = ["mutmut", *arguments]
    return subprocess.run(command, cwd=COPY, capture_output=True, text=True, check=True, env=environment()).stdout


def prepare(files: Sequence[str], tests: Sequence[str]) -> None:
    """Link the checkout into the folder where mutmut makes its copy, and configure mutmut there."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    names = sorted({name.split("/")[0] for name in git("ls-files")} - {"pyproject.toml"})
    for name in names:
        (COPY / name).symlink_to(ROOT / name)
    chosen = {"source_paths": files, "also_copy": names, "pytest_add_cli_args_test_selection": tests}
    lines = ["[tool.mutmut]", *(f"{key} = {json.dumps(value)}" for key, value in chosen.items())]
    text = (ROOT / "pyproject.toml").read_text()
    (COPY / "pyproject.toml").write_text(text.replace("[tool.mutmut]", "\n".join(lines)))


def is_mode(*modes: str) -> bool:
    """Return whether mutmut is in one of these modes: `stats`, `fail`, or empty for a run without a change."""
    return os.environ.get("MUTANT_UNDER_TEST") in modes


@contextmanager
def recorded(key: Hashable) -> Iterator[None]:
    """Remember the functions of the program that are called, under a key."""
    called = state()._stats
    outer = set(called)
    called.clear()
    try:
        yield
    finally:
        CALLS[key] = set(called)
        called.update(outer)


def recording_cache(function: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the results of a function and attribute its calls of the program to each test that uses a result."""
    cached = functools.lru_cache(maxsize=None)(function)
    if function.__module__.split(".")[0] not in (*PROGRAM, "tests"):
        return cached

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        key = (function, arguments, *keywords.items())
        if key not in CALLS:
            with recorded(key):
                cached(*arguments, **keywords)
        state()._stats.update(CALLS[key])
        return cached(*arguments, **keywords)

    return called


if is_mode("stats"):
    functools.cache = recording_cache


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, Any, Any]:
    with recorded(fixturedef):
        result = yield
    return result


def pytest_runtest_call(item: pytest.Function) -> None:
    for fixtures in item._fixtureinfo.name2fixturedefs.values():
        for fixture in fixtures:
            state()._stats.update(CALLS.get(fixture, set()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and is_mode("stats", ""):
        with FAILING.open("a") as file:
            file.write(f"{item.nodeid}\n")
        report.outcome = "passed"
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    failing = FAILING.read_text().splitlines() if FAILING.exists() else []
    items[:] = [item for item in items if item.nodeid not in failing]


if __name__ == "__main__":
    main()
