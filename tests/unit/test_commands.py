"""`mlbatch`: help, formats and exit codes of each subcommand. No document names a command that does not exist."""

import inspect
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer.main
from typer.testing import CliRunner

from ask.answer import Answer, Verdict
from attack.attacks import Attack
from attack.member import NAMESPACE, Outcome
from cli import app as command
from cli import settings
from cli.app import app, main
from reference.files import files
from stacks.job_manifests import JOBS, LOAD
from tests.unit.test_docs import current, text_of
from tests.unit.test_packages import modules

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "commands.md").read_text()
MEMBERS = ("submit", "run", "why", "logs", "cancel")
COMMANDS = (*MEMBERS, "status", "repair", "usage", "ask", "jobs", "drift", "review", "attack", "settings")
FOLDERS = (
    "ask",
    "attack",
    "components",
    "drift",
    "emulator",
    "member",
    "reference",
    "repair",
    "review",
    "runner",
    "stacks",
)
"""Modules that the command line may use, and their dependencies."""
SHARED = {
    "team": (*MEMBERS, "ask", "jobs"),
    "kubeconfig": (*MEMBERS, "status", "repair", "usage", "ask", "drift", "attack"),
    "context": (*MEMBERS, "status", "repair", "usage", "ask", "drift", "attack"),
    "stack": ("jobs", "drift", "review"),
    "file": ("status", "usage", "review"),
    "output": ("why", "status", "repair", "usage", "ask", "settings"),
}
"""Common options, by the subcommands that have them."""
ABSENT = ["--kubeconfig", "/nonexistent/kubeconfig"]
FAILS: dict[str, list[str]] = {
    "submit": ["/nonexistent/job.yaml", "--team", "blue", *ABSENT],
    "run": ["--image", "i", "--team", "blue", *ABSENT, "--", "true"],
    "why": ["--team", "blue", *ABSENT],
    "logs": ["train", "--team", "blue", *ABSENT],
    "cancel": ["train", "--team", "blue", *ABSENT],
    "status": ABSENT,
    "repair": ["list", *ABSENT],
    "usage": ABSENT,
    "ask": ["/nonexistent/job.yaml", "--team", "blue", *ABSENT],
    "jobs": ["nccl", "--stack", "nowhere"],
    "drift": ["--stack", "nowhere", *ABSENT],
    "review": ["--base", "nowhere"],
    "attack": ABSENT,
}
"""Arguments of subcommands that fail."""


def test_every_subcommand_is_in_the_help_and_in_the_page() -> None:
    shown = CliRunner().invoke(app, ["--help"])
    assert shown.exit_code == 0
    assert tuple(re.findall(r"^  (\w+)  ", shown.stdout.partition("Commands:")[2], re.MULTILINE)) == COMMANDS
    assert tuple(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_a_subcommand_explains_itself_and_each_option(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "-h"])
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"Usage: {app_name()} {name} ")
    group: Any = typer.main.get_command(app)
    given = group.commands[name]
    assert given.help
    assert [each.name for each in given.params if not each.help] == []


def app_name() -> str:
    """Return the runner's name for the command."""
    return str(CliRunner().get_default_prog_name(typer.main.get_command(app)))


@pytest.mark.parametrize(("option", "names"), SHARED.items())
def test_common_options_are_where_the_page_says(option: str, names: tuple[str, ...]) -> None:
    found = {name: inspect.signature(getattr(command, name)).parameters for name in COMMANDS}
    assert tuple(name for name in COMMANDS if option in found[name]) == names
    assert f"| `--{option}` |" in PAGE


def test_formats_are_those_of_the_page() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| (`.*?`) \| ", PAGE, re.MULTILINE))
    offered = {name: get_type_hints(getattr(command, name))["output"] for name in SHARED["output"]}
    assert {name: ", ".join(f"`{each}`" for each in get_args(formats)) for name, formats in offered.items()} == rows


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_use_is_2(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--nonsense"]) == 2
    shown = capsys.readouterr()
    assert "--nonsense" in shown.err
    assert shown.out == ""


def test_no_subcommand_or_an_unknown_one_is_2() -> None:
    assert main([]) == 2
    assert main(["nonsense"]) == 2


@pytest.mark.parametrize(("name", "arguments"), FAILS.items(), ids=FAILS)
def test_what_could_not_be_done_is_2_with_one_line(
    name: str, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert main([name, *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert len(shown.err.splitlines()) == 1
    assert shown.out == ""


def test_a_defect_is_2_and_never_taken_for_a_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("reference.files.schema", lambda: 1 / 0)
    assert main(["settings"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verdict", "code"), [("admitted", 0), ("preempts", 0), ("waits", 1), ("never", 1), ("refused", 1)]
)
def test_ask_ends_by_its_verdict(
    verdict: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = Answer(verdict=Verdict(verdict), job="blue/job", queue="default-queue")
    monkeypatch.setattr("cli.ask.read", lambda *_: None)
    monkeypatch.setattr("cli.ask.read_cluster", lambda *_: None)
    monkeypatch.setattr("cli.ask.ask", lambda *_: answer)
    (tmp_path / "job.yaml").touch()
    arguments = ["ask", str(tmp_path / "job.yaml"), "--team", "blue"]
    assert main(arguments) == code
    assert capsys.readouterr().out == f"{answer.text()}\n"
    assert main([*arguments, "--output", "json"]) == code
    assert capsys.readouterr().out == f"{answer.json()}\n"


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "arguments", "said"),
    [
        ("cli.attack.tried", ["attack"], f"interrupted; delete the namespace {NAMESPACE} where it is left\n"),
        ("cli.drift.export", ["drift", "--stack", "mysite"], "interrupted\n"),
        ("cli.ask.Replica", ["ask", "--stop"], "interrupted\n"),
        ("cli.review.revisions", ["review"], "interrupted; no files were left behind\n"),
    ],
)
def test_an_interruption_is_130(
    place: str, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(place, interrupt)
    assert main(arguments) == 130
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(("through", "code"), [(None, 0), ("a pod", 1)])
def test_attack_tells_what_goes_through(through: str | None, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    attack: Any = Attack
    monkeypatch.setattr("cli.attack.tried", lambda *_: [(attack, Outcome(through=through))])
    assert main(["attack"]) == code


def test_attacks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", "--list"]) == 0
    assert "host network: root on a node" in capsys.readouterr().out


@pytest.mark.parametrize(("output", "name"), [("text", "docs/settings.md"), ("json", "settings.schema.json")])
def test_settings_are_printed(output: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "--output", output]) == 0
    assert capsys.readouterr().out == (ROOT / name).read_text()


def test_settings_are_checked_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "--files", "check"]) == 0
    (tmp_path / "docs").mkdir()
    for name in files():
        (tmp_path / name).write_text("old")
    assert settings.run("text", "check", tmp_path) == 1
    assert capsys.readouterr().out.splitlines() == [f"{name} is not current. Run `make settings`." for name in files()]
    assert settings.run("text", "write", tmp_path) == 0
    assert settings.run("text", "check", tmp_path) == 0


def test_every_job_can_be_named() -> None:
    assert get_args(command.Job) == (*JOBS, LOAD)


def test_it_runs_from_any_folder_and_by_a_link(tmp_path: Path) -> None:
    link = tmp_path / "mlbatch"
    link.symlink_to(ROOT / "mlbatch")
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "__init__.py").write_text("1 / 0")
    for file in (ROOT / "mlbatch", link):
        done = subprocess.run([file, "--help"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Usage: mlbatch ")


def test_without_packages_it_says_how_to_install_them(tmp_path: Path) -> None:
    copy = tmp_path / "mlbatch"
    shutil.copy(ROOT / "mlbatch", copy)
    done = subprocess.run([copy, "--help"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path.resolve()}/.venv is missing" in done.stderr
    (tmp_path / ".venv").symlink_to(sys.prefix)
    done = subprocess.run([copy, "--help"], cwd="/", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: No module named 'cli'. Install the packages again, as in README.md.\n"


def test_the_shell_completes_subcommands_and_formats() -> None:
    for words, index, expected in (("mlbatch st", 1, "status\n"), ("mlbatch status --output h", 3, "html\n")):
        variables = {"_MLBATCH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(index)}
        done = subprocess.run(
            [ROOT / "mlbatch"], env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, text=True
        )
        assert done.stdout == expected, done.stderr


def test_help_loads_nothing_that_is_slow() -> None:
    program = "import sys, cli.app; cli.app.main(['drift', '--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert loaded.isdisjoint({*FOLDERS, "kubernetes", "pulumi", "rich", "yaml"})


def test_only_the_command_line_knows_typer() -> None:
    """Programs of `components` run in pods, whose images do not have `typer`."""
    assert "typer" in modules(["cli"])
    assert "typer" not in modules(["__main__.py", *FOLDERS])


SAYS = [
    *current(),
    ROOT / "Makefile",
    *ROOT.glob("Pulumi*.yaml"),
    *(ROOT / ".github").rglob("*.yml"),
    *[file for folder in ("cli", *FOLDERS, "lab", "tests") for file in (ROOT / folder).rglob("*.py")],
]
"""Every text that may name a command."""


@cache
def runs(module: str) -> bool:
    """Return whether `python -m` can run a module of this checkout, or the module belongs to another package."""
    if not (ROOT / module.partition(".")[0]).is_dir():
        return True
    found = find_spec(module)
    return found is not None and (
        found.submodule_search_locations is None or find_spec(f"{module}.__main__") is not None
    )


def gone(text: str) -> list[str]:
    """Return the modules that a text runs with `python -m`, and that do not run."""
    return [name for name in re.findall(r"python3? -m ([a-z_]+(?:\.[a-z_]+)*)", text) if not runs(name)]


def test_no_text_names_a_module_that_does_not_run() -> None:
    named = {str(file.relative_to(ROOT)): gone(text_of(file)) for file in SAYS if file != Path(__file__)}
    assert {name: modules for name, modules in named.items() if modules} == {}


def test_a_module_that_does_not_run_is_found() -> None:
    assert gone("python -m ask x, python3 -m drift.nothing, python -m emulator up, python -m pytest, ") == [
        "ask",
        "drift.nothing",
    ]


def test_documents_name_subcommands_that_exist() -> None:
    named = [name for page in current() for name in re.findall(r"(?:\./|`)mlbatch ([a-z]+)", text_of(page))]
    assert {*named} <= {*COMMANDS}
