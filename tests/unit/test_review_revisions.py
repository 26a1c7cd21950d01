"""The two revisions are checked out, previewed and cleaned up. The exit code shows whether both previews worked."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cli.app import main
from review import revisions
from review.revisions import Checkout, ReviewError
from runner import settings
from runner.environment import Environment
from runner.stack_file import StackFile
from tests.unit.test_review import pool, printed

STACK = "config:\n  mlbatch:target: simulated\n  mlbatch:kubernetes: {kubeconfig: ~/.kube/config, context: real}\n"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def paths(tmp_path: Path) -> Checkout:
    """Return a checkout of a repository. Its branch `main` has the stacks dev and old, its files have dev and new."""
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
    return Checkout(root, root / ".local")


class FakeEngine:
    """Prints the plan of a pool with the size in the stack's file, like the real engine."""

    def __init__(self, root: Path, state: Path, stack: str, environment: Environment) -> None:
        assert environment.mirror is not None
        assert not environment.reads_secrets
        self._mirror = environment.mirror
        self._file = state / "config" / f"Pulumi.{stack}.yaml"
        self._root = root
        self._tracked = root / f"Pulumi.{stack}.yaml"

    def prepare(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        file = StackFile(self._tracked.read_text())
        settings.localise(file, {}, self._mirror)
        self._file.write_text(file.text())

    def capture(self, name: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        assert (name, arguments) == ("preview", ["--json", "--refresh=false", "--non-interactive"])
        configuration = yaml.safe_load(self._file.read_text())["config"]
        assert configuration["mlbatch:kubernetes"] == {}
        if "mlbatch:wrong" in configuration:
            error = {"severity": "error", "message": f"error: {self._root}/x is wrong"}
            return subprocess.CompletedProcess([], 255, printed(diagnostics=[error]), "")
        return subprocess.CompletedProcess([], 0, printed(pool(count=configuration.get("mlbatch:count", 1))), "")


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch, paths: Checkout) -> None:
    """Put a fake in place of the local environment, the engine and the mirror."""

    @contextlib.contextmanager
    def local(root: Path, stack: str) -> Iterator[Environment]:
        assert root == paths.root
        yield Environment(kubeconfig=Path("/local") / stack / "kubeconfig")

    monkeypatch.setattr(revisions, "local_environment", local)
    monkeypatch.setattr(revisions, "Engine", FakeEngine)
    monkeypatch.setattr(revisions, "_mirror", lambda checkout: checkout.state / "mirror")
    monkeypatch.setattr(revisions.Checkout, "of_this_file", lambda: paths)


def worktrees(paths: Checkout) -> int:
    return len(git(paths.root, "worktree", "list").splitlines())


def test_the_base_is_checked_out_beside_the_state_and_removed_again(paths: Checkout) -> None:
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
def test_the_checkout_is_removed_however_it_ends(paths: Checkout, ending: type[BaseException]) -> None:
    with pytest.raises(ending), revisions.revisions(paths, "main"):
        raise ending
    assert worktrees(paths) == 1


def test_what_a_killed_review_left_is_taken_away(paths: Checkout) -> None:
    left = paths.state / "review" / "base" / "checkout"
    left.parent.mkdir(parents=True)
    git(paths.root, "worktree", "add", "--detach", str(left), "main")
    with revisions.revisions(paths, "main") as (base, _):
        assert base.stacks() == ("dev", "old")
    assert worktrees(paths) == 1


def test_what_others_added_to_the_base_is_no_change(paths: Checkout) -> None:
    git(paths.root, "stash", "--quiet", "--include-untracked")
    git(paths.root, "switch", "--quiet", "--create", "work")
    git(paths.root, "switch", "--quiet", "main")
    (paths.root / "Pulumi.later.yaml").write_text(STACK)
    git(paths.root, "add", "--all")
    git(paths.root, "commit", "--quiet", "--message", "later")
    git(paths.root, "switch", "--quiet", "work")
    with revisions.revisions(paths, "main") as (base, head):
        assert base.stacks() == head.stacks() == ("dev", "old")


def test_a_second_review_is_kept_out(paths: Checkout) -> None:
    with (
        revisions.revisions(paths, "main"),
        pytest.raises(ReviewError, match="another review runs in"),
        revisions.revisions(paths, "main"),
    ):
        pass


def test_an_unknown_revision_is_named(paths: Checkout) -> None:
    with (
        pytest.raises(ReviewError, match="git does not find the revision 'nowhere'"),
        revisions.revisions(paths, "nowhere"),
    ):
        pass
    assert worktrees(paths) == 1


@pytest.mark.usefixtures("fakes")
def test_all_stacks_of_both_are_shown(paths: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", "--base", "main"]) == 0
    text = capsys.readouterr().out
    assert "| `dev` | no change |" in text
    assert "| `new` (new) | 1 |" in text
    assert "| `old` (removed) | 0 | 0 | 0 | **1** |" in text
    assert "uv.lock" not in text


@pytest.mark.usefixtures("fakes")
def test_settings_that_one_revision_cannot_preview_are_shown_and_told_by_the_exit_code(
    paths: Checkout, tmp_path: Path
) -> None:
    (paths.root / "Pulumi.dev.yaml").write_text(f"{STACK}  mlbatch:wrong: true\n")
    assert main(["review", "--base", "main", "--stack", "dev", "--file", str(tmp_path / "review.md")]) == 1
    text = (tmp_path / "review.md").read_text()
    assert "**The head revision cannot be previewed:**\n\n```text\n<checkout>/x is wrong\n```" in text
    assert "`old`" not in text


@pytest.mark.usefixtures("fakes")
def test_secrets_of_both_files_are_compared_and_not_shown(paths: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    (paths.root / "Pulumi.dev.yaml").write_text(f"{STACK}  mlbatch:token: {{secure: v1:s3cr3t}}\n")
    assert main(["review", "--base", "main", "--stack", "dev"]) == 0
    text = capsys.readouterr().out
    assert "- `mlbatch:token`: added" in text
    assert "s3cr3t" not in text


@pytest.mark.usefixtures("fakes")
def test_other_packages_are_said(paths: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    (paths.root / "uv.lock").write_text("pulumi==2\n")
    main(["review", "--base", "main"])
    assert "- `uv.lock` differs" in capsys.readouterr().out


@pytest.mark.usefixtures("fakes")
def test_a_stack_that_neither_has_is_refused(paths: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", "--base", "main", "--stack", "prod"]) == 2
    assert "neither revision has a stack prod; there are: dev, new, old" in capsys.readouterr().err
    assert worktrees(paths) == 1
