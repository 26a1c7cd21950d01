"""Preview every stack at two revisions against an empty local cluster.

Each revision's own program runs, with the Python packages and tools of this checkout. Each preview starts from its own
empty state. It does not read or write accounts, other clusters or existing state.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from review import plan as plans
from review import secrets
from review.environment import local_environment
from review.markdown import Review, StackReview
from review.plan import Plan, PlanError
from runner.engine import Engine, EngineError, stacks
from runner.environment import Environment
from runner.files import private_folder

_LOCAL: Final = ".local"
_FOLDER: Final = "review"
_MIRROR: Final = Path("dev", "mirror")
_LOCK: Final = "uv.lock"


class ReviewError(Exception):
    """The review cannot be created. The message gives the fix."""


@dataclass(frozen=True)
class Checkout:
    """root: a folder with this program. state: the folder for the state of its previews."""

    root: Path
    state: Path

    @classmethod
    def of_this_file(cls) -> Checkout:
        """Return the checkout of this module, with its local state."""
        root = Path(__file__).resolve().parent.parent
        return cls(root, root / _LOCAL)


@dataclass(frozen=True)
class Revision:
    """One side of the comparison. checkout: its files and the state of its previews. name: for the reader."""

    checkout: Checkout
    name: str

    def stacks(self) -> tuple[str, ...]:
        return stacks(self.checkout.root)


@contextlib.contextmanager
def revisions(checkout: Checkout, base: str) -> Iterator[tuple[Revision, Revision]]:
    """Yield the base revision, checked out next to the state, and this checkout as it is on disk.

    base: any revision of git. The base is the commit where this checkout branched off, so that later commits of others
    do not appear as changes. Removes the checkout at the end of the context. Raises ReviewError if git does not find
    the revision.
    """
    named = _git(checkout.root, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}", missing=base)
    commit = _git(checkout.root, "merge-base", named, "HEAD")
    folder = private_folder(checkout.state / _FOLDER)
    worktree = folder / "base" / "checkout"
    with _alone(folder):
        _remove(checkout.root, worktree)
        for side in ("base", "head"):
            shutil.rmtree(folder / side, ignore_errors=True)
            private_folder(folder / side)
        try:
            _git(checkout.root, "worktree", "add", "--detach", "--force", str(worktree), commit)
            (worktree / ".venv").symlink_to(checkout.root / ".venv")
            changed = _git(checkout.root, "status", "--porcelain")
            shown = _git(checkout.root, "rev-parse", "--short", "HEAD")
            yield (
                Revision(Checkout(worktree, folder / "base" / "state"), f"{base} ({commit[:7]})"),
                Revision(
                    Checkout(checkout.root, folder / "head" / "state"),
                    f"{shown}{' with changes not committed' if changed else ''}",
                ),
            )
        finally:
            _remove(checkout.root, worktree)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the state folder against a second review. Raises ReviewError if another review runs."""
    with open(folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReviewError(f"another review runs in {folder}: wait for it or stop it") from None
        yield


def review(base: Revision, head: Revision, only: Sequence[str] = ()) -> Review:
    """Preview the stacks of both revisions in parallel and return the review.

    only: stacks to preview, all if empty. Raises ReviewError if neither revision has a requested stack, and
    NoEnvironmentError if the local environment does not start.
    """
    known = sorted({*base.stacks(), *head.stacks()})
    if unknown := sorted(set(only) - set(known)):
        raise ReviewError(f"neither revision has a stack {', '.join(unknown)}; there are: {', '.join(known)}")
    names = [name for name in known if not only or name in only]
    reviews = []
    with ThreadPoolExecutor(2) as pool:
        mirrors = list(pool.map(_mirror, (base.checkout, head.checkout)))
        for name in names:
            # Each stack has its own cluster, because a cluster's objects can change the preview.
            with local_environment(head.checkout.root, name) as local:
                sides = [
                    pool.submit(_preview, side, name, mirror, local)
                    for side, mirror in zip((base, head), mirrors, strict=True)
                ]
                before, after = (side.result() for side in sides)
            reviews.append(
                StackReview(
                    stack=name,
                    before=_plan(before),
                    after=_plan(after),
                    before_error=_error(before),
                    after_error=_error(after),
                    secrets=secrets.compare(
                        *(_text(side.checkout.root / f"Pulumi.{name}.yaml") for side in (base, head))
                    ),
                )
            )
    return Review(base=base.name, head=head.name, stacks=tuple(reviews), notes=_notes(base, head))


@contextlib.contextmanager
def cleaned_up() -> Iterator[None]:
    """Handle SIGTERM like an interrupt, so that the checkout is removed."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    former = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _preview(
    revision: Revision, stack: str, mirror: Path | PlanError, environment: Environment
) -> Plan | PlanError | None:
    """Return the revision's plan of a stack, or the error. None if it does not have the stack."""
    if stack not in revision.stacks():
        return None
    if isinstance(mirror, PlanError):
        return mirror
    checkout = revision.checkout
    folders = {environment.kubeconfig.parent: "<local>", checkout.state: "<state>", checkout.root: "<checkout>"}
    # This machine does not have the key of a stack's secrets, and a review does not need it.
    local = replace(environment, mirror=mirror, reads_secrets=False)
    engine = Engine(checkout.root, checkout.state, stack, local)
    try:
        engine.prepare()
        done = engine.capture("preview", ["--json", "--refresh=false", "--non-interactive"])
    except EngineError as error:
        return PlanError(_shortened(str(error), folders))
    try:
        # Each side has chart archives in its own mirror. Compare the charts by name.
        plan = plans.read(done.stdout.replace(str(mirror), "<mirror>"))
    except PlanError as error:
        said = str(error) if done.stdout.strip() else done.stderr.strip()
        return PlanError(_shortened(said, folders))
    if done.returncode != 0:
        return PlanError(_shortened(done.stderr.strip() or f"exit code {done.returncode}", folders))
    return plan


def _mirror(checkout: Checkout) -> Path | PlanError:
    """Fill the revision's mirror with its own code, because revisions can use different upstream versions.

    Returns the mirror's folder, or the error.
    """
    # Earlier revisions read the folder from the variable.
    environment = {**os.environ, "MLBATCH_STATE": str(checkout.state)}
    command = [str(checkout.root / ".venv" / "bin" / "python"), "-m", "emulator", "mirror"]
    done = subprocess.run(command, cwd=checkout.root, env=environment, capture_output=True, text=True)
    for state in (checkout.state, checkout.root / _LOCAL):
        if done.returncode == 0 and (state / _MIRROR).is_dir():
            return state / _MIRROR
    said = _shortened((done.stderr or done.stdout).strip(), {checkout.root: "<checkout>"})
    return PlanError(f"the mirror of upstream's files cannot be filled:\n{said}")


def _notes(base: Revision, head: Revision) -> tuple[str, ...]:
    texts = [_text(each.checkout.root / _LOCK) for each in (base, head)]
    if texts[0] == texts[1]:
        return ()
    return (f"`{_LOCK}` differs: both revisions were previewed with the packages of the new one.",)


def _text(file: Path) -> str | None:
    return file.read_text() if file.exists() else None


def _plan(found: Plan | PlanError | None) -> Plan | None:
    return found if isinstance(found, Plan) else None


def _error(found: Plan | PlanError | None) -> str | None:
    return str(found) if isinstance(found, PlanError) else None


def _shortened(text: str, folders: Mapping[Path, str]) -> str:
    """Return a message with names in place of this machine's folders, which differ between runs."""
    for folder, name in {**folders, Path.home(): "~"}.items():
        text = text.replace(str(folder), name)
    return text


def _remove(root: Path, worktree: Path) -> None:
    if worktree.exists():
        subprocess.run(["git", "worktree", "remove", "--force", str(worktree)], cwd=root, capture_output=True)
        shutil.rmtree(worktree, ignore_errors=True)
    subprocess.run(["git", "worktree", "prune"], cwd=root, capture_output=True)


def _git(root: Path, *arguments: str, missing: str | None = None) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    if done.returncode != 0 and missing is not None:
        raise ReviewError(
            f"git does not find the revision {missing!r}. Name a branch, a tag or a commit that is here: BASE=main, or "
            f"BASE=origin/main after `git fetch origin main`"
        )
    if done.returncode != 0:
        raise ReviewError(f"`git {' '.join(arguments)}` failed: {done.stderr.strip()}")
    return done.stdout.strip()
