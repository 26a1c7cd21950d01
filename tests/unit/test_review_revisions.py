"""The two revisions are checked out, previewed and cleaned up; the exit code tells whether both could be previewed."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from emulator.paths import Paths
from review import __main__ as command
from review import revisions
from review.revisions import ReviewError
from tests.unit.test_review import pool, printed

STACK = "config:\n  mlbatch:target: simulated\n  mlbatch:kubernetes: {kubeconfig: ~/.kube/config, context: real}\n"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Return the folders of a repository: its branch `main` has the stacks dev and old, what is on disk dev and new."""
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    (root / ".gitignore").write_text(".local/\n.venv/\n")
    for name in ("dev", "old"):
        (root / f"Pulumi.{name}.yaml").write_text(STACK)
    (root / "Pulumi.yaml").write_text("name: mlbatch\n")
    (root / "uv.lock").write_text("pulumi==1\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "base")
    (root / "Pulumi.old.yaml").unlink()
    (root / "Pulumi.new.yaml").write_text(STACK)
    (root / ".venv").mkdir()
    found = Paths(root=root, state=root / ".local", cache=tmp_path / "cache")
    found.bin.mkdir(parents=True)
    (found.bin / "pulumi").symlink_to(tmp_path / "built" / "pulumi")
    return found


class FakeEngine:
    """Prints the plan of a pool whose size is what the stack's file says, as the real engine would."""

    def __init__(self, checkout: Paths, stack: str, kubeconfig: Path, providers: object) -> None:
        self._file = checkout.state / "config" / f"Pulumi.{stack}.yaml"
        self._root = checkout.root
        self._tracked = checkout.root / f"Pulumi.{stack}.yaml"

    def prepare(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(self._tracked.read_text())

    def capture(self, name: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        assert (name, arguments) == ("preview", ["--json", "--refresh=false", "--non-interactive"])
        configuration = yaml.safe_load(self._file.read_text())["config"]
        assert configuration["mlbatch:kubernetes"] == {}
        if "mlbatch:wrong" in configuration:
            error = {"severity": "error", "message": f"error: {self._root}/x is wrong"}
            return subprocess.CompletedProcess([], 255, printed(diagnostics=[error]), "")
        return subprocess.CompletedProcess([], 0, printed(pool(count=configuration.get("mlbatch:count", 1))), "")


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch, paths: Paths) -> None:
    """Put a fake in place of the cluster, the engine, the tools and the mirror."""

    @contextlib.contextmanager
    def local(paths: Paths) -> Iterator[Paths]:
        yield paths

    class Status:
        providers = {"kubernetes": 1}  # noqa: RUF012 - a constant of the fake

    class Tools:
        def __init__(self, paths: Paths) -> None: ...

        def missing(self, cluster: bool) -> list[str]:
            return []

        def install(self, cluster: bool, progress: object) -> None: ...

    monkeypatch.setattr(revisions, "_local_cluster", local)
    monkeypatch.setattr(revisions, "Engine", FakeEngine)
    monkeypatch.setattr(revisions, "_fill_mirror", lambda checkout: None)
    monkeypatch.setattr(revisions.cluster, "status", lambda paths: Status)
    monkeypatch.setattr(command, "Toolchain", Tools)
    monkeypatch.setattr(command.Paths, "of", lambda: paths)


def worktrees(paths: Paths) -> int:
    return len(git(paths.root, "worktree", "list").splitlines())


def test_the_base_is_checked_out_beside_the_state_and_removed_again(paths: Paths) -> None:
    with revisions.revisions(paths, "main") as (base, head):
        assert base.stacks() == ("dev", "old")
        assert head.stacks() == ("dev", "new")
        assert head.checkout.root == paths.root
        assert base.checkout.root.is_relative_to(paths.state)
        assert (base.checkout.root / ".venv").resolve() == paths.root / ".venv"
        assert base.checkout.state != head.checkout.state != paths.state
        assert base.name.startswith("main (")
        assert head.name.endswith("with changes not committed")
        assert worktrees(paths) == 2
    assert worktrees(paths) == 1
    assert not base.checkout.root.exists()


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, ValueError])
def test_the_checkout_is_removed_however_it_ends(paths: Paths, ending: type[BaseException]) -> None:
    with pytest.raises(ending), revisions.revisions(paths, "main"):
        raise ending
    assert worktrees(paths) == 1


def test_what_a_killed_review_left_is_taken_away(paths: Paths) -> None:
    left = paths.state / "review" / "base" / "checkout"
    left.parent.mkdir(parents=True)
    git(paths.root, "worktree", "add", "--detach", str(left), "main")
    with revisions.revisions(paths, "main") as (base, _):
        assert base.stacks() == ("dev", "old")
    assert worktrees(paths) == 1


def test_what_others_added_to_the_base_is_no_change(paths: Paths) -> None:
    git(paths.root, "stash", "--quiet", "--include-untracked")
    git(paths.root, "switch", "--quiet", "--create", "work")
    git(paths.root, "switch", "--quiet", "main")
    (paths.root / "Pulumi.later.yaml").write_text(STACK)
    git(paths.root, "add", "--all")
    git(paths.root, "commit", "--quiet", "--message", "later")
    git(paths.root, "switch", "--quiet", "work")
    with revisions.revisions(paths, "main") as (base, head):
        assert base.stacks() == head.stacks() == ("dev", "old")


def test_a_second_review_is_kept_out(paths: Paths) -> None:
    with (
        revisions.revisions(paths, "main"),
        pytest.raises(ReviewError, match="another review is at work"),
        revisions.revisions(paths, "main"),
    ):
        pass


def test_an_unknown_revision_is_named(paths: Paths) -> None:
    with pytest.raises(ReviewError, match="git knows no revision 'nowhere'"), revisions.revisions(paths, "nowhere"):
        pass
    assert worktrees(paths) == 1


def test_tools_are_shared_and_links_are_not(paths: Paths) -> None:
    with revisions.revisions(paths, "main") as (base, _):
        link = base.checkout.bin / "pulumi"
        assert link.readlink() == (paths.bin / "pulumi").readlink()
        link.unlink()
    assert (paths.bin / "pulumi").is_symlink()


@pytest.mark.usefixtures("fakes")
def test_all_stacks_of_both_are_shown(paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--base", "main"]) == 0
    text = capsys.readouterr().out
    assert "| `dev` | no change |" in text
    assert "| `new` (new) | 1 |" in text
    assert "| `old` (removed) | 0 | 0 | 0 | **1** |" in text
    assert "uv.lock" not in text


@pytest.mark.usefixtures("fakes")
def test_settings_that_one_revision_cannot_preview_are_shown_and_told_by_the_exit_code(
    paths: Paths, tmp_path: Path
) -> None:
    (paths.root / "Pulumi.dev.yaml").write_text(f"{STACK}  mlbatch:wrong: true\n")
    assert command.main(["--base", "main", "--stack", "dev", "--output", str(tmp_path / "review.md")]) == 2
    text = (tmp_path / "review.md").read_text()
    assert "**The head revision cannot be previewed:**\n\n```text\n<checkout>/x is wrong\n```" in text
    assert "`old`" not in text


@pytest.mark.usefixtures("fakes")
def test_other_packages_are_said(paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    (paths.root / "uv.lock").write_text("pulumi==2\n")
    command.main(["--base", "main"])
    assert "- `uv.lock` differs" in capsys.readouterr().out


@pytest.mark.usefixtures("fakes")
def test_a_stack_that_neither_has_is_refused(paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--base", "main", "--stack", "prod"]) == 1
    assert "neither revision has a stack prod; there are: dev, new, old" in capsys.readouterr().err
    assert worktrees(paths) == 1


CONTENTS: tuple[Callable[[], dict[str, Any]], ...] = (
    lambda: {"config": {"mlbatch:kubernetes": {"kubeconfig": "x", "context": "y"}}, "encryptionsalt": "v1:abc"},
    lambda: {"config": {"mlbatch:kubernetes": {}}, "encryptionsalt": "v1:abc"},
    lambda: {"config": {}, "encryptionsalt": "v1:abc"},
)


@pytest.mark.parametrize("content", CONTENTS)
def test_a_real_cluster_is_taken_out_of_the_copied_settings(tmp_path: Path, content: Callable[[], Any]) -> None:
    file = tmp_path / "Pulumi.aks.yaml"
    file.write_text(yaml.safe_dump(content()))
    revisions._point_to_local_cluster(file)
    document = yaml.safe_load(file.read_text())
    assert not document["config"].get("mlbatch:kubernetes")
    assert document["encryptionsalt"] == "v1:abc"
