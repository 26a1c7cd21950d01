"""Runs tests on copies of the checkout, each run in a fork of a process that has every package of others loaded.

What the tests change or leave behind stays in a copy; the checkout itself is only read.
"""

from __future__ import annotations

import compileall
import contextlib
import importlib
import multiprocessing
import os
import py_compile
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Generic, TypeVar

import pytest

Job = TypeVar("Job")


def copied(root: Path, target: Path) -> Path:
    """Copy what Git would commit, and compile it so that each run notices for itself which module has another text."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in listed.rstrip("\0").split("\0"):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)
    compileall.compile_dir(target, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    return target


def preload(modules: Iterable[str]) -> None:
    """Import the program and what its tests import, so that no run has to import the packages of others.

    A run forgets the program's own modules and imports those of its copy.
    """
    for name in (*modules, "jsonschema", "kubernetes"):
        importlib.import_module(name)


def tests(files: Sequence[str]) -> int:
    """Run files of tests until one fails, and return pytest's exit code."""
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files]))


@dataclass
class _Running(Generic[Job]):
    job: Job
    process: BaseProcess
    copy: Path
    until: float


def each(
    jobs: Iterable[Job],
    copies: Sequence[Path],
    run: Callable[[Job, Path], int],
    limit: Callable[[Job], float],
    log: Path,
) -> Iterator[tuple[Job, Path, int | None]]:
    """Run each job in a process and a copy of its own, as many at a time as there are copies.

    run: gets the job and its copy, which is the working folder. limit: seconds that a job may take. Yields each job
    with its copy, which nobody uses until the next one is asked for, and its exit code, None where it took longer.
    log: the folder for what the runs print.
    """
    fork = multiprocessing.get_context("fork")
    log.mkdir(parents=True, exist_ok=True)
    free, running, to_come = list(copies), list[_Running[Job]](), iter(jobs)
    while True:
        for job in islice(to_come, len(free)):
            copy = free.pop()
            process = fork.Process(target=_inside, args=(run, job, copy, log / f"{copy.name}.log"))
            process.start()
            running.append(_Running(job, process, copy, time.monotonic() + limit(job)))
        if not running:
            return
        wait([item.process.sentinel for item in running], timeout=1)
        for item in list(running):
            if item.process.exitcode is None and time.monotonic() < item.until:
                continue
            code = item.process.exitcode
            _end(item.process)
            running.remove(item)
            free.append(item.copy)
            yield item.job, item.copy, code


def _inside(run: Callable[[Job, Path], int], job: Job, copy: Path, log: Path) -> None:
    os.setsid()
    with log.open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.chdir(copy)
    sys.path[0] = str(copy)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for name in [name for name in sys.modules if name.partition(".")[0] in ("components", "stacks", "runner", "tests")]:
        del sys.modules[name]
    sys.stdout.flush()
    code = run(job, copy)
    sys.stdout.flush()
    # Without the end of the parent's interpreter, whose threads are not here.
    os._exit(code)


def _end(process: BaseProcess) -> None:
    """End a run and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid or 0, 9)
    process.join()
