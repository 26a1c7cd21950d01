"""Runs tests on copies of the checkout, each run in a fork of a process that has every package of others loaded.

What the tests change or leave behind stays in a copy; the checkout itself is only read. The process that forks has one
thread and has run no test: a lock that another thread holds, or an event loop that was used, would come along and
never be let go.
"""

import compileall
import contextlib
import faulthandler
import gc
import importlib
import math
import multiprocessing
import os
import py_compile
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
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
    for name in (*modules, "hypothesis", "jsonschema", "kubernetes"):
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue  # it runs in a container, whose image has what it imports
        for value in list(vars(module).values()):
            if isinstance(value, ModuleType):
                # The parts of Azure's SDK are loaded when something of them is first asked for.
                getattr(value, "__all__", None)
    if threading.active_count() > 1:
        raise RuntimeError(f"importing started threads, and such a process cannot be forked: {threading.enumerate()}")


class _FirstFailure:
    """Remembers which test failed first; where a file cannot be imported, the file."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._look(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._look(report)

    def _look(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid


def tests(chosen: Sequence[Sequence[str]], seconds: float) -> tuple[int, str]:
    """Run tests until one fails or the time is used up. Return pytest's exit code and the test that failed.

    chosen: files, or single tests of one, in groups that run together. seconds: CPU time of this process. After it, no
    further group starts.
    """
    first = _FirstFailure()
    for group in chosen:
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *group], plugins=[first]))
        if code or sum(os.times()[:4]) > seconds:
            return code, first.test
    return 0, ""


@dataclass(frozen=True)
class Ended(Generic[Job]):
    """A run that ended, and its copy, which stays unused until the next one is requested.

    passed: whether every test passed. None if the run was ended at a limit. failed: the first test that failed, empty
    if the run ended otherwise, for example because its process ended. seconds: its duration.
    """

    job: Job
    copy: Path
    passed: bool | None
    failed: str
    seconds: float


@dataclass(frozen=True)
class Limits:
    """Limits of a run, in seconds: elapsed time, CPU time, and time without work."""

    clock: float
    work: float = math.inf
    idle: float = math.inf


@dataclass
class _Running(Generic[Job]):
    job: Job
    process: BaseProcess
    copy: Path
    began: float
    worked: float = 0
    at: float = 0

    def is_over(self, limits: Limits, now: float) -> bool:
        """Whether it ended, or has to be ended. now: by the clock."""
        if self.process.exitcode is not None:
            return True
        if (work := _work(self.process)) > self.worked:
            self.worked, self.at = work, now
        return now - self.began > limits.clock or work > limits.work or now - self.at > limits.idle


def each(
    jobs: Iterable[Job],
    copies: Sequence[Path],
    run: Callable[[Job, Path], tuple[int, str]],
    limits: Limits,
    log: Path,
) -> Iterator[Ended[Job]]:
    """Run each job in a separate process and copy, as many at a time as there are copies.

    run: gets the job and its copy, which is the working folder. log: the folder for the output of the runs.
    """
    fork = multiprocessing.get_context("fork")
    log.mkdir(parents=True, exist_ok=True)
    free, running, to_come = list(copies), list[_Running[Job]](), iter(jobs)
    while True:
        for job in islice(to_come, len(free)):
            copy = free.pop()
            _failed(copy).unlink(missing_ok=True)
            process = fork.Process(target=_inside, args=(run, job, copy, log / f"{copy.name}.log"))
            process.start()
            began = time.monotonic()
            running.append(_Running(job, process, copy, began, at=began))
        if not running:
            return
        wait([item.process.sentinel for item in running], timeout=1)
        for item in list(running):
            now = time.monotonic()
            if not item.is_over(limits, now):
                continue
            code = item.process.exitcode
            _end(item.process)
            running.remove(item)
            free.append(item.copy)
            failed = _failed(item.copy).read_text() if _failed(item.copy).exists() else ""
            passed = None if code is None else code == 0
            yield Ended(item.job, item.copy, passed, failed, now - item.began)


def _work(process: BaseProcess) -> float:
    """Return the seconds of work of a process and of those that it started and that ended."""
    try:
        times = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:15]
    except FileNotFoundError:
        return 0
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def _failed(copy: Path) -> Path:
    return copy.with_suffix(".failed")


def _inside(run: Callable[[Job, Path], tuple[int, str]], job: Job, copy: Path, log: Path) -> None:
    os.setsid()
    with log.open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    faulthandler.register(signal.SIGUSR1)
    os.chdir(copy)
    sys.path[0] = str(copy)
    for name in list(sys.modules):
        if (copy / name.partition(".")[0]).is_dir():
            del sys.modules[name]
    # The program's modules are compiled by their hashes; the tests, which pytest compiles, stay as they are.
    sys.dont_write_bytecode = False
    # What all runs share is not theirs to collect.
    gc.freeze()
    sys.stdout.flush()
    code, failed = run(job, copy)
    _failed(copy).write_text(failed)
    sys.stdout.flush()
    # Without the end of the parent's interpreter, whose threads are not here.
    os._exit(code)


def _end(process: BaseProcess) -> None:
    """End a run and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid or 0, 9)
    process.join()
