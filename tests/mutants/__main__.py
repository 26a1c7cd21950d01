"""Change the program's behaviour, one place at a time, and tell which changes no unit test notices.

A seed decides which of all possible changes are tried. Each is put into a copy of the checkout, and the unit tests are
run there, the ones most like it first, until one fails or their time is used up. Prints the changes that none noticed,
and the part that was noticed.

Only what a change is the cause of counts. A test that failed has to pass without the change, in the same run. A trial
that does not end is made again alone, and counts as noticed where the same tests end without the change.
"""

import argparse
import ast
import difflib
import importlib.util
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from tests.mutants import trial
from tests.mutants.areas import AREAS, OTHER, area
from tests.mutants.changes import PROGRAM, Change, changes, changes_meaning
from tests.mutants.selection import Selection, module
from tests.mutants.trial import Job, Limits

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".local" / "mutants"
NEVER_ENDS, BREAKS_OFF = "the tests never end", "the tests break off"
"""Text instead of the name of a failed test."""
PLENTY = Limits(clock=1800)
"""For runs without a change, on a machine with other work."""
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
SLOWER, IDLE = 10, 120
"""A run ends if it takes this many times the time of its tests without the change, or is idle for this many seconds."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Try changes, and end with an error if too few are noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="how many changes to try")
    parser.add_argument("--base", default="main", help="the branch whose difference from this checkout is looked at")
    parser.add_argument("--files", nargs="*", help="modules or folders instead, such as components/tenancy")
    parser.add_argument("--at-least", type=float, default=0, help="the part that has to be noticed, in percent")
    parser.add_argument("--seconds", type=float, default=60, help="of work for the tests of one change")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no further change is tried")
    parser.add_argument("--parallel", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    files = modules(options.files or changed(options.base))
    if not files:
        sys.exit(f"no module of {', '.join(PROGRAM)} differs from {options.base}: name some with FILES=")
    texts = {file: (ROOT / file).read_bytes() for file in files}
    elsewhere = [file for file, source in texts.items() if imports_what_is_not_installed(source)]
    if elsewhere:
        print(f"left to `make training`, which has their packages: {', '.join(elsewhere)}", flush=True)
    sources = {file: source for file, source in texts.items() if file not in elsewhere}
    tried = sample(sources, options.seed, options.count)
    with tempfile.TemporaryDirectory(prefix="mlbatch-mutants-") as folder:
        copies = [trial.copied(ROOT, Path(folder) / str(number)) for number in range(options.parallel)]
        trial.preload(map(module, modules(PROGRAM)))
        selection = Selection(ROOT)
        chosen = {change: selection.of(change, sources[change.file]) for change in tried}
        noticed = Trials(sources, copies, chosen, options.seconds).run(60 * options.minutes)
    score = report(noticed, sources)
    if score < options.at_least:
        sys.exit(f"fewer than {options.at_least:g} % were noticed")


def changed(base: str) -> list[str]:
    """Return the files of this checkout that differ from the last common commit with another branch."""
    fork = subprocess.run(["git", "merge-base", base, "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = ["git", "diff", "--name-only", "--diff-filter=d", fork.stdout.strip()]
    return subprocess.run(names, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def modules(named: Iterable[str]) -> list[str]:
    """Return the program's modules among files and folders."""
    found = {
        file for name in named for file in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*.py"))
    }
    names = sorted(str(file.relative_to(ROOT)) for file in found if file.suffix == ".py")
    return [name for name in names if name.split("/")[0] in PROGRAM]


def imports_what_is_not_installed(source: bytes) -> bool:
    """Return whether a module, as it is imported, needs a package that is not there: no unit test can run it."""
    imported = {
        name.partition(".")[0]
        for node in ast.parse(source).body
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }  # fmt: skip
    return any(importlib.util.find_spec(name) is None for name in imported if name)


def sample(sources: Mapping[str, bytes], seed: int, count: int) -> list[Change]:
    """Return changes of modules of as many kinds as there are, no two of them in one line.

    A smaller count returns the first ones of a larger.
    """
    decide = random.Random(seed)  # noqa: S311 - so that a run can be repeated
    by_kind: dict[str, list[Change]] = defaultdict(list)
    for file, source in sources.items():
        for change in changes(file, source):
            by_kind[change.kind].append(change)
    for of_kind in by_kind.values():
        decide.shuffle(of_kind)
    chosen: dict[tuple[str, int], Change] = {}
    while by_kind and len(chosen) < count:
        kind = decide.choice(sorted(by_kind))
        change = by_kind[kind].pop()
        if not by_kind[kind]:
            del by_kind[kind]
        if (change.file, change.line) not in chosen and changes_meaning(change, sources[change.file]):
            chosen[change.file, change.line] = change
    return list(chosen.values())


class Trials:
    """Tries changes, each with the tests chosen for it, and tells for each by what it was noticed.

    sources: the modules as they are. copies: of the checkout. chosen: files of tests by change. seconds: of work, after
    which no further file of tests is begun for a change.
    """

    def __init__(
        self,
        sources: Mapping[str, bytes],
        copies: Sequence[Path],
        chosen: Mapping[Change, Sequence[str]],
        seconds: float,
    ) -> None:
        self._sources, self._copies, self._chosen, self._seconds = sources, copies, chosen, seconds
        self._broken: set[str] = set()

    def run(self, seconds: float = math.inf) -> dict[Change, str]:
        """Return for each change the first test that failed, or the text instead of it. Empty if all passed.

        seconds: elapsed time after the start. Later, no further change is tried.
        """
        noticed: dict[Change, str] = {}
        doubtful: list[Change] = []
        began = time.monotonic()
        in_time = takewhile(lambda _: time.monotonic() < began + seconds, self._chosen)
        limits = replace(PLENTY, work=SLOWER * self._seconds, idle=IDLE)
        for number, ended in enumerate(self._each(in_time, self._changed, limits), 1):
            change = ended.job
            self._restore(change, ended.copy)
            noticed[change] = ended.failed
            if not ended.passed and not ended.failed:
                doubtful.append(change)
            outcome = "SURVIVED" if ended.passed else ended.failed or "to be tried again alone"
            place = f"{change.file}:{change.line} {change.kind}"
            print(f"{number}/{len(self._chosen)} {time.monotonic() - began:.0f} s {place}: {outcome}", flush=True)
            if ended.passed:
                print(difference(change, self._sources[change.file]), flush=True)
        self._find_broken(test for test in noticed.values() if test)
        doubtful += [change for change, test in noticed.items() if file_of(test) in self._broken]
        for change in doubtful:
            noticed[change] = self._alone(change)
            print(f"{change.file}:{change.line} {change.kind}, alone: {noticed[change] or 'SURVIVED'}", flush=True)
        return noticed

    def _each(
        self,
        jobs: Iterable[Job],
        run: Callable[[Job, Path], tuple[int, str]],
        limits: Limits = PLENTY,
        copies: Sequence[Path] | None = None,
    ) -> Iterator[trial.Ended[Job]]:
        return trial.each(jobs, copies or self._copies, run, limits, STATE / "logs")

    def _tests(self, change: Change) -> list[str]:
        return [test for test in self._chosen[change] if test not in self._broken]

    def _changed(self, change: Change, copy: Path) -> tuple[int, str]:
        (copy / change.file).write_bytes(change.applied(self._sources[change.file]))
        return self._unchanged(change, copy)

    def _unchanged(self, change: Change, copy: Path) -> tuple[int, str]:
        return trial.tests([[test] for test in self._tests(change)], self._seconds)

    def _restore(self, change: Change, copy: Path) -> None:
        (copy / change.file).write_bytes(self._sources[change.file])

    def _find_broken(self, tests: Iterable[str]) -> None:
        """Run tests, or files of tests, without a change. A file with a failure here has not noticed a change."""
        by_file: dict[str, set[str]] = defaultdict(set)
        for test in tests:
            by_file[file_of(test)].add(test)
        for ended in self._each(sorted(by_file), lambda file, copy: trial.tests([sorted(by_file[file])], 0)):
            if not ended.passed:
                self._broken.add(ended.job)
                print(f"{ended.failed or ended.job} fails without any change too, and its file is left out", flush=True)

    def _alone(self, change: Change) -> str:
        """Try a change alone, with ten times the time that its tests take without it at this moment."""
        copies = self._copies[:1]
        [plain] = self._each([change], self._unchanged, copies=copies)
        if not plain.passed:
            self._find_broken(self._tests(change))
            [plain] = self._each([change], self._unchanged, copies=copies)
        if not self._tests(change) or not plain.passed:
            return ""
        [ended] = self._each([change], self._changed, Limits(clock=60 + SLOWER * plain.seconds), copies)
        self._restore(change, ended.copy)
        if ended.passed is None:
            return NEVER_ENDS
        return "" if ended.passed else ended.failed or BREAKS_OFF


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def difference(change: Change, source: bytes) -> str:
    """Return a change as a diff of its lines."""
    before, after = source.decode().splitlines(), change.applied(source).decode().splitlines()
    lines = difflib.unified_diff(before, after, n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def equivalents() -> Iterator[tuple[str, str, str]]:
    """Yield file, diff and reason of the changes that are known to have no effect."""
    for entry in tomllib.loads(EQUIVALENT.read_text()).get("change", []):
        yield entry["file"], entry["diff"].strip("\n"), entry["reason"]


def report(noticed: Mapping[Change, str], sources: Mapping[str, bytes]) -> float:
    """Print the survivors and the score by area. Return the total score.

    noticed: for each change that was tried, the test that noticed it. Empty if no test did.
    """
    same = {(file, diff): reason for file, diff, reason in equivalents()}
    diffs = {change: difference(change, sources[change.file]) for change in sorted(noticed) if not noticed[change]}
    known = [change for change, diff in diffs.items() if (change.file, diff) in same]
    unnoticed = [change for change in diffs if change not in known]
    endless = [change for change, test in noticed.items() if test == NEVER_ENDS]
    for change in unnoticed:
        print(f"\n{change.file}:{change.line} ({change.kind})\n{diffs[change]}")
    for change in known:
        print(f"\n{change.file}:{change.line} is equivalent: {same[change.file, diffs[change]]}")
    for change in endless:
        print(f"\n{change.file}:{change.line} never ends ({change.kind})\n{difference(change, sources[change.file])}")
    counted = Counter(area(change.file) for change in noticed if change not in known)
    missed = Counter(area(change.file) for change in unnoticed)
    print()
    for name in [*AREAS, OTHER]:
        if counted[name]:
            found = counted[name] - missed[name]
            print(f"{name:22}{found:4} of {counted[name]:3} noticed, {100 * found / counted[name]:.0f} %")
    score = 100 * (1 - len(unnoticed) / max(1, counted.total()))
    print(f"{'all':22}{counted.total() - len(unnoticed):4} of {counted.total():3} noticed, {score:.1f} %")
    if endless:
        print(f"{len(endless)} of them since the tests never end with the change, and do without it")
    return score


if __name__ == "__main__":
    main()
