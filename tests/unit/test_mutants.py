"""The run that changes the program: which changes it makes, and which tests it runs for each."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.mutants import areas
from tests.mutants.__main__ import ROOT, difference, equivalents, modules, report, sample
from tests.mutants.changes import Change, changes, changes_meaning
from tests.mutants.selection import Measured, Selection, executed


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
        'e = ConfigError(message="it is wrong", expected=f"{a} or more", hint="give it")',
        'x = "a sentence that somebody reads"',
    ],
)
def test_what_only_people_read_is_left_alone(text: str) -> None:
    assert made(text).keys() <= {"statement", "keyword"}, "but that it is said at all"


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
    assert chosen == sample(sources, seed=3, count=30)
    assert chosen != sample(sources, seed=4, count=30)
    assert len({(change.file, change.line) for change in chosen}) == 30
    assert len({change.kind for change in chosen}) > 8


def test_the_tests_of_a_change_are_those_that_run_its_function(tmp_path: Path) -> None:
    for name, text in (
        ("components/a.py", "X = 1\n\ndef f():\n    return X\n"),
        ("components/b.py", "from components.a import X\n\ndef g():\n    return X\n"),
        ("stacks/__init__.py", ""),
        ("runner/__init__.py", ""),
        ("test_slow.py", ""),
        ("test_near.py", "from components.a import f\n"),
        ("test_far.py", ""),
        ("test_fails.py", ""),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def ran(seconds: float, passes: bool = True, **functions: list[str]) -> Measured:
        return Measured("", seconds, passes, {f"components/{key}.py": value for key, value in functions.items()})

    measured = {
        "test_slow.py": ran(50, a=["f"]),
        "test_near.py": ran(20, a=["f"]),
        "test_far.py": ran(10, b=["g"]),
        "test_fails.py": ran(1, passes=False, a=["f"]),
    }
    chosen = Selection(tmp_path, measured)
    inside = Change("components/a.py", 4, 0, 0, "", "text", "f")
    assert chosen.of(inside, seconds=100) == ["test_near.py", "test_slow.py"]
    assert chosen.of(inside, seconds=60) == ["test_near.py"]
    at_import = Change("components/a.py", 1, 0, 0, "", "number", "")
    assert chosen.of(at_import, seconds=100) == ["test_near.py", "test_far.py", "test_slow.py"]


def test_a_function_is_run_when_a_line_of_its_body_is(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n")
    assert executed(file, [1, 2, 5, 6]) == ["A.g"]


def test_survivors_are_printed_and_count_against_their_area(capsys: pytest.CaptureFixture[str]) -> None:
    sources = sources_of("components/tenancy/team.py", "components/workloads/nccl.py")
    tried = sample(sources, seed=1, count=20)
    first = tried[0]
    assert report(tried, [first], sources) == 95.0
    printed = capsys.readouterr().out
    assert f"{first.file}:{first.line}" in printed
    assert difference(first, sources[first.file]) in printed
    assert report(tried, [], sources) == 100.0


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
