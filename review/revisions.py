"""Runs the engine's preview of every stack at two revisions, against a local cluster that holds nothing.

Each revision's own program runs, on the Python packages and tools of this checkout. Each preview starts from an empty
state of its own, so that no account, no cluster of anybody's and no state is read or written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import yaml

from emulator import cluster
from emulator.engine import Engine, EngineError
from emulator.paths import DEFAULT_STACK, STATE_VARIABLE, Paths
from review import plan as plans
from review.markdown import Review, StackReview
from review.plan import Plan, PlanError

_FOLDER: Final = "review"
_LOCK: Final = "uv.lock"


class ReviewError(Exception):
    """The review cannot be made; the message says what to do."""


@dataclass(frozen=True)
class Revision:
    """One side of the comparison. checkout: its files and the state folder of its previews. name: for the reader."""

    checkout: Paths
    name: str

    def stacks(self) -> tuple[str, ...]:
        """Return the names of its stacks."""
        return tuple(sorted(file.name.split(".")[1] for file in self.checkout.root.glob("Pulumi.*.yaml")))


@contextlib.contextmanager
def revisions(paths: Paths, base: str) -> Iterator[tuple[Revision, Revision]]:
    """Yield the base revision, checked out beside the state, and this checkout as it is on disk.

    base: anything that git understands; where this checkout branched off from it counts, so that what others have added
    to it since is no change of this one. The checkout is removed however the context ends. Raises ReviewError when git
    does not know the revision.
    """
    named = _git(paths.root, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}", missing=base)
    commit = _git(paths.root, "merge-base", named, "HEAD")
    folder = paths.state / _FOLDER
    worktree = folder / "base" / "checkout"
    with _alone(folder):
        _remove(paths.root, worktree)
        for side in ("base", "head"):
            shutil.rmtree(folder / side, ignore_errors=True)
        try:
            yield _checked_out(paths, base, commit, worktree)
        finally:
            _remove(paths.root, worktree)


def _checked_out(paths: Paths, base: str, commit: str, worktree: Path) -> tuple[Revision, Revision]:
    worktree.parent.mkdir(parents=True)
    _git(paths.root, "worktree", "add", "--detach", "--force", str(worktree), commit)
    (worktree / ".venv").symlink_to(paths.root / ".venv")
    head = _git(paths.root, "rev-parse", "--short", "HEAD")
    changed = _git(paths.root, "status", "--porcelain")
    return (
        Revision(_side(paths, worktree, "base"), f"{base} ({commit[:7]})"),
        Revision(_side(paths, paths.root, "head"), f"{head}{' with changes not committed' if changed else ''}"),
    )


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a second review of the same state folder out; raises ReviewError when there is a first one."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReviewError(f"another review is at work in {folder}; wait for it, or stop it") from None
        yield


def review(paths: Paths, base: Revision, head: Revision, only: Sequence[str] = ()) -> Review:
    """Preview the stacks of both revisions, one revision beside the other, and return what is to be shown.

    only: stacks to look at; all when empty. Raises ReviewError when neither revision has a stack that is asked for.
    """
    known = sorted({*base.stacks(), *head.stacks()})
    if unknown := sorted(set(only) - set(known)):
        raise ReviewError(f"neither revision has a stack {', '.join(unknown)}; there are: {', '.join(known)}")
    names = [name for name in known if not only or name in only]
    notes = _notes(base, head)
    with _local_cluster(paths) as local, ThreadPoolExecutor(2) as pool:
        sides = [pool.submit(_previews, each, local, names) for each in (base, head)]
        before, after = (side.result() for side in sides)
    stacks = [
        StackReview(
            stack=name,
            before=_plan(before.get(name)),
            after=_plan(after.get(name)),
            before_error=_error(before.get(name)),
            after_error=_error(after.get(name)),
        )
        for name in names
    ]
    return Review(base=base.name, head=head.name, stacks=tuple(stacks), notes=notes)


@contextlib.contextmanager
def cleaned_up() -> Iterator[None]:
    """Let a termination end the program as an interrupt does, so that what was checked out is removed."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    former = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


@contextlib.contextmanager
def _local_cluster(paths: Paths) -> Iterator[Paths]:
    """Yield the folders of a cluster for this review alone: what a cluster holds could change what is shown."""
    state = paths.state / _FOLDER / "cluster"
    cluster.reset(Paths(root=paths.root, state=state, cache=paths.cache))
    shutil.rmtree(state, ignore_errors=True)
    own = _with_tools(paths, state)
    try:
        cluster.start(own, lambda _: None)
        yield own
    finally:
        cluster.stop(own)
        cluster.reset(own)


def _previews(revision: Revision, local: Paths, stacks: Sequence[str]) -> dict[str, Plan | PlanError]:
    """Return the revision's plan of each of these stacks that it has, or why there is none."""
    found: dict[str, Plan | PlanError] = {}
    for name in (name for name in revision.stacks() if name in stacks):
        try:
            _fill_mirror(revision.checkout)
            found[name] = _preview(revision.checkout, local, name)
        except PlanError as error:
            found[name] = error
        except EngineError as error:
            found[name] = PlanError(_without_folders(str(error), revision.checkout))
    return found


def _preview(checkout: Paths, local: Paths, stack: str) -> Plan:
    engine = Engine(checkout, stack, local.kubeconfig, cluster.status(local).providers)
    engine.prepare()
    _point_to_local_cluster(checkout.state / "config" / f"Pulumi.{stack}.yaml")
    done = engine.capture("preview", ["--json", "--refresh=false", "--non-interactive"])
    try:
        plan = plans.read(done.stdout)
    except PlanError as error:
        said = str(error) if done.stdout.strip() else done.stderr.strip()
        raise PlanError(_without_folders(said, checkout)) from None
    if done.returncode != 0:
        raise PlanError(_without_folders(done.stderr.strip() or f"exit code {done.returncode}", checkout))
    return plan


def _point_to_local_cluster(file: Path) -> None:
    """Take the cluster that a stack's settings name out of the engine's copy of them: the local one stands in."""
    document = yaml.safe_load(file.read_text()) or {}
    section = (document.get("config") or {}).get("mlbatch:kubernetes")
    if isinstance(section, dict) and section.keys() & {"kubeconfig", "context"}:
        for key in ("kubeconfig", "context"):
            section.pop(key, None)
        file.write_text(yaml.safe_dump(document, sort_keys=False))


def _fill_mirror(checkout: Paths) -> None:
    """Fill the revision's mirror with its own code, because it may name other versions of upstream than the other."""
    if checkout.mirror.exists():
        return
    environment = {**os.environ, STATE_VARIABLE: str(checkout.state)}
    command = [str(checkout.root / ".venv" / "bin" / "python"), "-m", "emulator", "mirror"]
    done = subprocess.run(command, cwd=checkout.root, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise EngineError(f"the mirror of upstream's files cannot be filled:\n{(done.stderr or done.stdout).strip()}")
    filled = checkout.of_stack(DEFAULT_STACK).mirror
    if filled.exists():
        filled.rename(checkout.mirror)


def _side(paths: Paths, root: Path, side: str) -> Paths:
    own = _with_tools(paths, paths.state / _FOLDER / side / "state")
    return Paths(root=root, state=own.state, cache=own.cache)


def _with_tools(paths: Paths, state: Path) -> Paths:
    """Return paths with another state folder that has the same tools; it may link others without changing these."""
    other = Paths(root=paths.root, state=state, cache=paths.cache)
    shutil.copytree(paths.bin, other.bin, symlinks=True)
    return other


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


def _without_folders(text: str, checkout: Paths) -> str:
    """Return a message with the places of this machine shortened: they differ from run to run."""
    for folder, name in ((checkout.state, "<state>"), (checkout.root, "<checkout>"), (Path.home(), "~")):
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
            f"git knows no revision {missing!r}. Name a branch, a tag or a commit that is here: BASE=main, or "
            f"BASE=origin/main after `git fetch origin main`"
        )
    if done.returncode != 0:
        raise ReviewError(f"`git {' '.join(arguments)}` failed: {done.stderr.strip()}")
    return done.stdout.strip()
