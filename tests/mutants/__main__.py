"""Change the program's behaviour, one place at a time, and tell which changes no unit test notices.

A seed decides which of all possible changes are tried. Each is put into a copy of the checkout, and the unit tests that
run the changed function are run there until one fails. Prints the changes that none noticed, and the part that was
noticed.
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.mutants import selection, trial
from tests.mutants.areas import AREAS, OTHER, area
from tests.mutants.changes import Change, changes, changes_meaning
from tests.mutants.selection import PROGRAM, Measured, Selection

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".local" / "mutants"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
SLOWER = 8
"""A run that takes so many times what the same tests took unchanged, and a minute, is stuck: that is noticed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Try changes, and end with an error where fewer than asked for are noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="how many changes to try")
    parser.add_argument("--base", default="main", help="the branch whose difference from this checkout is looked at")
    parser.add_argument("--files", nargs="*", help="modules or folders instead, such as components/tenancy")
    parser.add_argument("--at-least", type=float, default=0, help="the part that has to be noticed, in percent")
    parser.add_argument("--seconds", type=float, default=60, help="of tests for one change")
    parser.add_argument("--parallel", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    files = modules(options.files or changed(options.base))
    if not files:
        sys.exit(f"no module of {', '.join(PROGRAM)} differs from {options.base}: name some with FILES=")
    sources = {file: (ROOT / file).read_bytes() for file in files}
    tried = sample(sources, options.seed, options.count)
    with tempfile.TemporaryDirectory(prefix="mlbatch-mutants-") as folder:
        copies = [trial.copied(ROOT, Path(folder) / str(number)) for number in range(options.parallel)]
        trial.preload(map(selection.module, modules(PROGRAM)))
        measured = measure(copies)
        survivors = run(tried, sources, copies, Selection(ROOT, measured), measured, options.seconds)
    score = report(tried, survivors, sources)
    if score < options.at_least:
        sys.exit(f"fewer than {options.at_least:g} % were noticed")


def changed(base: str) -> list[str]:
    """Return the files in which this checkout differs from where it left another branch."""
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


def sample(sources: Mapping[str, bytes], seed: int, count: int) -> list[Change]:
    """Return changes of modules of as many kinds as there are, no two of them in one line."""
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
    return sorted(chosen.values())


def measure(copies: Sequence[Path]) -> dict[str, Measured]:
    """Return what each file of unit tests runs, measured anew where its text is another than the last time."""
    kept = STATE / "measured.json"
    known = selection.load(kept)
    files = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests" / "unit").rglob("test_*.py"))
    measured = {
        test: known[test] for test in files if test in known and known[test].digest == selection.digest(ROOT / test)
    }
    missing = [test for test in files if test not in measured]
    if missing:
        print(f"measuring what {len(missing)} files of tests run", flush=True)

    def look(test: str, copy: Path) -> int:
        selection.save(copy / "measured" / f"{test}.json", {test: selection.measure(test, trial.tests)})
        return 0

    for number, (test, copy, _) in enumerate(trial.each(missing, copies, look, lambda _: 900, STATE / "logs"), 1):
        measured |= selection.load(copy / "measured" / f"{test}.json")
        if test in measured:
            print(f"  {number}/{len(missing)} {test} {measured[test].seconds:.0f} s", flush=True)
        selection.save(kept, measured)
    for test in files:
        if test not in measured or not measured[test].passes:
            print(f"{test} does not pass as it is, and is left out", flush=True)
    return measured


def run(
    tried: Sequence[Change],
    sources: Mapping[str, bytes],
    copies: Sequence[Path],
    chosen: Selection,
    measured: Mapping[str, Measured],
    seconds: float,
) -> list[Change]:
    """Return the changes that no test noticed."""
    selected = {change: chosen.of(change, seconds) for change in tried}

    def change_and_test(change: Change, copy: Path) -> int:
        (copy / change.file).write_bytes(change.applied(sources[change.file]))
        return trial.tests(selected[change])

    def limit(change: Change) -> float:
        return 60 + SLOWER * sum(measured[test].seconds for test in selected[change])

    survivors = [change for change in tried if not selected[change]]
    began = time.monotonic()
    to_try = [change for change in tried if selected[change]]
    for number, (change, copy, code) in enumerate(
        trial.each(to_try, copies, change_and_test, limit, STATE / "logs"), 1
    ):
        (copy / change.file).write_bytes(sources[change.file])
        if code == 0:
            survivors.append(change)
        outcome = {0: "SURVIVED", None: "stuck"}.get(code, "noticed")
        place = f"{change.file}:{change.line} {change.kind}"
        print(
            f"{number}/{len(to_try)} {time.monotonic() - began:.0f} s {outcome} {place}",
            flush=True,
        )
    return sorted(survivors)


def difference(change: Change, source: bytes) -> str:
    """Return a change as a diff of its lines."""
    before, after = source.decode().splitlines(), change.applied(source).decode().splitlines()
    lines = difflib.unified_diff(before, after, n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def equivalents() -> Iterator[tuple[str, str, str]]:
    """Yield file, diff and reason of the changes that are known to change nothing that anybody could notice."""
    for entry in tomllib.loads(EQUIVALENT.read_text()).get("change", []):
        yield entry["file"], entry["diff"].strip("\n"), entry["reason"]


def report(tried: Sequence[Change], survivors: Sequence[Change], sources: Mapping[str, bytes]) -> float:
    """Print the survivors and the score by area, and return that of all."""
    same = {(file, diff): reason for file, diff, reason in equivalents()}
    diffs = {change: difference(change, sources[change.file]) for change in survivors}
    known = [change for change in survivors if (change.file, diffs[change]) in same]
    unnoticed = [change for change in survivors if change not in known]
    for change in unnoticed:
        print(f"\n{change.file}:{change.line} ({change.kind})\n{diffs[change]}")
    for change in known:
        print(f"\n{change.file}:{change.line} is equivalent: {same[change.file, diffs[change]]}")
    counted = Counter(area(change.file) for change in tried if change not in known)
    missed = Counter(area(change.file) for change in unnoticed)
    print()
    for name in [*AREAS, OTHER]:
        if counted[name]:
            noticed = counted[name] - missed[name]
            print(f"{name:22}{noticed:4} of {counted[name]:3} noticed, {100 * noticed / counted[name]:.0f} %")
    score = 100 * (1 - len(unnoticed) / max(1, counted.total()))
    print(f"{'all':22}{counted.total() - len(unnoticed):4} of {counted.total():3} noticed, {score:.1f} %")
    return score


if __name__ == "__main__":
    main()
