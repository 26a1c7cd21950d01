"""The run that changes the program: which changes it makes, and which tests it runs for each."""

import textwrap
from collections.abc import Collection, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.mutants import areas, trial
from tests.mutants.__main__ import (
    BREAKS_OFF,
    NEVER_ENDS,
    ROOT,
    Trials,
    difference,
    equivalents,
    imports_what_is_not_installed,
    modules,
    report,
    sample,
)
from tests.mutants.changes import Change, changes, changes_meaning
from tests.mutants.selection import Selection
from tests.mutants.trial import Limits


def made(text: str) -> dict[str, set[str]]:
    """Return the changed texts of a module, by kind of change."""
    source = textwrap.dedent(text).encode()
    found: dict[str, set[str]] = {}
    for change in changes("module.py", source):
        if changes_meaning(change, source):
            found.setdefault(change.kind, set()).add(change.applied(source).decode().strip())
    return found


def sources_of(*named: str) -> dict[str, bytes]:
    return {file: (ROOT / file).read_bytes() for file in modules(named)}


@pytest.mark.parametrize(
    ("text", "kind", "changed"),
    [
        ('x = "run --bind-to none"', "option", {'x = "run  none"'}),
        ('x = "ucx"', "text", {'x = "ucxx"'}),
        ('x = "v1"', "text", {'x = "v2"'}),
        ("x = f'{a}-b'", "text", {"x = f'{a}-bx'"}),
        ('super().__init__("mlbatch:tenancy:Team", x)', "type token", {'super().__init__("mlbatch:tenancy:Teamx", x)'}),
        ("x = f(a, protect=True)", "keyword", {"x = f(a)"}),
        ("x = f(protect=True, b=c)", "keyword", {"x = f(b=c)", "x = f(protect=True)"}),
        ("x = True", "boolean", {"x = False"}),
        ("x = 8", "number", {"x = 9", "x = 7"}),
        ("x = [a, b]", "list item", {"x = [b]", "x = [a]"}),
        ("x = {**a, b: c}", "dictionary entry", {"x = {b: c}", "x = {**a}"}),
        ("x = {a: b}", "emptied", {"x = {}"}),
        ("x = a <= b", "comparison", {"x = a < b"}),
        ("x = a not in b", "comparison", {"x = a in b"}),
        ("x = a and b", "logic", {"x = a or b"}),
        ("x = a if b else c", "branch", {"x = (a)", "x = (c)"}),
        ("if a:\n    b()", "statement", {"if a:\n    pass"}),
        ('x = """\n# why\nfirst\nsecond\n"""', "line", {'x = """\n# why\nfirst\n"""', 'x = """\n# why\nsecond\n"""'}),
    ],
)  # fmt: skip
def test_each_kind_of_change_is_made(text: str, kind: str, changed: set[str]) -> None:
    assert made(text)[kind] == changed


@pytest.mark.parametrize(
    "text",
    [
        '"""What it is for."""',
        "import a",
        'x: Literal["a", "b"]',
        "def f(x: dict[str, int]) -> list[int]: ...",
        'raise ValueError("this cannot be")',
        "@dataclass(frozen=True)\nclass A: ...",
        "class A:\n    min: int",
        "def f():\n    return None",
        'e = ConfigError(where, f"it is {a}", f"give {a}", expected=f"{a} or more")',
        'reject(f"it is {a}", "give it", expected="more")',
        'x = "a sentence that somebody reads"',
    ],
)
def test_what_only_people_read_is_left_alone(text: str) -> None:
    found = made(text)
    assert found.keys() <= {"statement", "keyword"}, "but that it is said at all"


def test_false_is_not_returned_as_none_which_is_as_good() -> None:
    assert made("def f():\n    return False").keys() == {"boolean"}


def test_a_change_knows_its_line_and_its_function() -> None:
    source = b"X = 1\n\nclass A:\n    def f(self, y=2):\n        return 3\n"
    found = {change.text: (change.line, change.function) for change in changes("module.py", source)}
    assert found["0"] == (1, "")
    assert found["1"] == (4, ""), "a default is worked out where the function is made"
    assert found["4"] == (5, "A.f")


def test_a_seed_makes_the_same_choice_again_and_takes_a_line_once() -> None:
    sources = sources_of("components/tenancy", "README.md")
    assert "components/tenancy/team.py" in sources
    chosen = sample(sources, seed=3, count=30)
    assert chosen == sample(sources, seed=3, count=30) == sample(sources, seed=3, count=50)[:30]
    assert chosen != sample(sources, seed=4, count=30)
    assert len({(change.file, change.line) for change in chosen}) == 30
    assert len({change.kind for change in chosen}) > 8


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("import torchless.nn", True),
        ("from torchless import nn", True),
        ("import json, torchless", True),
        ("from components import catalogue\nimport json", False),
        ("from . import near", False),
        ("def later():\n    import torchless", False),
    ],
)
def test_what_no_unit_test_can_import_is_left_to_the_tests_that_can(text: str, left: bool) -> None:
    assert imports_what_is_not_installed(text.encode()) is left


def test_the_tests_most_like_a_change_come_first(tmp_path: Path) -> None:
    source = "\n".join(["rare = apples", *[""] * 20, "class GpuPool:", "    taint = True"]).encode()
    change = Change("components/nodes/pool.py", 23, 0, 0, "", "boolean")
    for name, text in (
        ("a/test_alphabet.py", "pool"),
        ("test_far.py", "apples"),
        ("test_snapshots.py", "read()"),
        ("snapshots/stack.txt", "taint: {gpu: pool}"),
        ("test_names_it.py", "from components.nodes import other, pool\n"),
        ("test_reads_it.py", 'text = folder / "pool.py"\n'),
        ("test_taints.py", "gpu_pools"),
    ):
        (tmp_path / "tests" / "unit" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "tests" / "unit" / name).write_text(text)
    chosen = [Path(test).stem for test in Selection(tmp_path).of(change, source)]
    assert set(chosen[:2]) == {"test_names_it", "test_reads_it"}
    assert chosen[2:] == ["test_snapshots", "test_taints", "test_alphabet", "test_far"]


class InOneProcess:
    """In place of the tests, what the changed text itself says that it does; in place of processes, calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_unchanged: Collection[str] = ()) -> None:
        self.fail_unchanged = fail_unchanged
        monkeypatch.setattr(trial, "each", self.each)
        monkeypatch.setattr(trial, "tests", self.tests)

    def each(self, jobs, copies, run, limits, log):
        for job in jobs:
            self.copy, self.copies = copies[0], len(copies)
            try:
                code, failed = run(job, self.copy)
                yield trial.Ended(job, self.copy, code == 0, failed, 1.0)
            except TimeoutError:
                yield trial.Ended(job, self.copy, None, "", limits.clock)

    def tests(self, chosen, seconds):
        text = (self.copy / "components" / "a.py").read_text()
        for file in dict.fromkeys(test.partition("::")[0] for group in chosen for test in group):
            if file in self.fail_unchanged:
                return 1, f"{file}::test_of_something_else"
            if "endless" in text or ("slow" in text and self.copies > 1):
                raise TimeoutError
            if "exits" in text:
                return 3, ""
            if "wrong" in text:
                return 1, f"{file}::test_it"
        return 0, ""


@pytest.mark.parametrize(
    ("text", "broken", "noticed"),
    [
        ("fine", [], ""),
        ("wrong", [], "tests/b.py::test_it"),
        ("wrong", ["tests/b.py"], "tests/c.py::test_it"),
        ("fine", ["tests/b.py"], ""),
        ("wrong", ["tests/b.py", "tests/c.py"], ""),
        ("slow", [], ""),
        ("slow and wrong", [], "tests/b.py::test_it"),
        ("endless", [], NEVER_ENDS),
        ("endless", ["tests/b.py", "tests/c.py"], ""),
        ("exits", [], BREAKS_OFF),
    ],
)
def test_only_what_the_change_is_the_cause_of_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, broken: Sequence[str], noticed: str
) -> None:
    InOneProcess(monkeypatch, broken)
    copies = [tmp_path / "1", tmp_path / "2"]
    for copy in copies:
        (copy / "components").mkdir(parents=True)
        (copy / "components" / "a.py").write_text("x")
    change = Change("components/a.py", 1, 0, 1, text, "text")
    files = ["tests/b.py", "tests/c.py"]
    trials = Trials({"components/a.py": b"x"}, copies, {change: files}, seconds=60)
    assert trials.run() == {change: noticed}
    assert {(copy / "components" / "a.py").read_text() for copy in copies} == {"x"}


def test_the_first_changes_are_tried_while_there_is_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    InOneProcess(monkeypatch)
    clock = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    (tmp_path / "components").mkdir()
    changes = [Change("components/a.py", line, 0, 1, "wrong", "text") for line in range(10)]
    trials = Trials({"components/a.py": b"x"}, [tmp_path], {change: ["tests/b.py"] for change in changes}, seconds=60)
    assert [*trials.run(seconds=7)] == changes[:3]


def test_survivors_are_printed_and_count_against_their_area(capsys: pytest.CaptureFixture[str]) -> None:
    sources = sources_of("components/tenancy/team.py", "components/workloads/nccl.py")
    tried = sample(sources, seed=1, count=20)
    first = tried[0]
    noticed = dict.fromkeys(tried, "tests/unit/test_team.py::test_it") | {tried[1]: NEVER_ENDS}
    assert report(noticed | {first: ""}, sources) == 95.0
    printed = capsys.readouterr().out
    assert f"{tried[1].file}:{tried[1].line} never ends" in printed
    assert f"{first.file}:{first.line}" in printed
    assert difference(first, sources[first.file]) in printed
    assert report(noticed, sources) == 100.0


def test_every_area_is_a_part_of_the_program() -> None:
    files = modules(["components", "stacks"])
    for begins in areas.AREAS.values():
        for begin in begins:
            assert any(file.startswith(begin) for file in files), begin
    assert areas.area("components/tenancy/pod_policy.py") == "security"
    assert areas.area("components/tenancy/team.py") == "queueing and tenancy"


def test_what_is_called_equivalent_still_stands_in_the_program() -> None:
    for file, diff, reason in equivalents():
        assert reason
        removed = [line[1:] for line in diff.splitlines() if line.startswith("-")]
        assert all(line in (ROOT / file).read_text().splitlines() for line in removed), f"{file}: {diff}"


@pytest.mark.parametrize(
    ("limits", "work", "now", "is_over"),
    [
        (Limits(clock=1800, work=600, idle=120), 1, 130, False),
        (Limits(clock=1800, work=600, idle=120), 1, 150, True),
        (Limits(clock=1800, work=600, idle=120), 601, 30, True),
        (Limits(clock=1800, work=600, idle=120), 599, 140, False),
        (Limits(clock=1800), 0, 1799, False),
        (Limits(clock=1800), 0, 1801, True),
    ],
)
def test_a_run_is_ended_by_its_own_work_whatever_else_the_machine_does(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, work: float, now: float, is_over: bool
) -> None:
    running = trial._Running("job", SimpleNamespace(exitcode=None), Path(), began=0)
    monkeypatch.setattr(trial, "_work", lambda process: 0.5)
    assert not running.is_over(limits, 20)
    monkeypatch.setattr(trial, "_work", lambda process: work)
    assert running.is_over(limits, 25) is (work > limits.work)
    assert running.is_over(limits, now) is is_over
    running.process.exitcode = 0
    assert running.is_over(limits, now)
