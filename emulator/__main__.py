"""Command line of the local environment; the make targets call it.

`python -m emulator --help` lists the commands. Arguments for Pulumi, or for `mlbatch drift`, follow after `--`.

Each stack has its own cluster, state and logs. No command acts on anything else.
"""

import argparse
import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from emulator import cluster, distribution, mirror, pending
from emulator.cluster import ClusterError
from emulator.environment import environment
from emulator.installing import install
from emulator.openshift import definitions, operator_hub
from emulator.openstack.errors import OpenStackError
from emulator.openstack.installation import Installation
from emulator.paths import DEFAULT_STACK, Paths
from emulator.progress import Progress
from emulator.report import cluster_report, environment_report
from emulator.toolchain import (
    CLUSTER,
    MIRROR,
    MONITORING,
    OPERATOR_HUB,
    TESTED,
    Toolchain,
    ToolchainError,
)
from emulator.turn import alone, at_work
from runner import clusters, webhooks
from runner.engine import WITHOUT_LOOKING, Engine, EngineError, require_stack
from runner.environment import Environment, inherited, past_proxies
from runner.files import UMASK, is_full, private_folder
from runner.picture.page import draw
from runner.report import await_settled, connect

SETTING_UP = (
    "fill the mirror of upstream manifests and charts",
    "start the local cluster",
    "prepare the stack",
    "pulumi up",
)

AGAIN = "start an empty cluster again: the first update of this stack was killed"
"""An extra step. Safe, because no user has worked with such a stack yet."""

FINISHING = "finish the update that was killed"
"""An extra step, only after a killed update."""

Command = Callable[[Paths, argparse.Namespace], int]

QUIET = ("--suppress-permalink=true", "--suppress-progress")

NEXT = """Next
  make status{option}
      this report again
  make preview{option}
      what `pulumi up` would change (now: no changes)
  eval "$(make -s env{option})"
      then plain pulumi and kubectl use this environment
  kubectl --as <user> -n <team> get appwrappers
      what a member of a team sees
  make destroy{option} && make down
      remove the platform, stop the local cluster"""

KILLED: Final = (
    "note: the last `make up` was killed. The next `make up` or `make destroy` first finishes it (docs/operations.md)"
)

EXISTS: Final = (
    " If an error says that a resource exists already, an earlier update was killed or a plugin died, and the resource "
    "is not in the state. Start this stack again with `make clean && make up{option}`."
)

CHANGING: Final = (
    "note: {changing} is changing the stack. The preview also shows the changes that it has not recorded yet"
)

REPLACED: Final = (
    "note: an update failed while it replaced the cluster or its infrastructure. The cluster does not exist, so this "
    "command uses the stack's state instead (`{without}`)"
)

LIVE: Final = (
    "stack {stack!r} is being changed by {changing}. No cluster was stopped. Wait for it, or stop it: it then ends its "
    "current operations and writes its state. Then run the command again. If that engine certainly no longer runs, for "
    "example on another host, remove its lock below {locks}"
)

LOCKS: Final = Path("pulumi-state", ".pulumi", "locks")

FULL: Final = (
    "Free space in {state}, {cache} and {temporary}, then run the same command again: completed changes are kept"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code of the process."""
    options = _parser().parse_args(arguments)
    os.umask(UMASK)
    os.environ.update(past_proxies())
    try:
        paths = _private(Paths.of())
        return int(options.command(_private(paths.of_stack(options.stack)) if "stack" in options else paths, options))
    except (ClusterError, EngineError, OpenStackError, ToolchainError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if not is_full(error):
            raise
        print(f"error: {error}. {FULL.format(temporary=tempfile.gettempdir(), **vars(Paths.of()))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m emulator", description=__doc__.split("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True, metavar="command")
    stacked = argparse.ArgumentParser(add_help=False)
    stacked.add_argument("--stack", default=DEFAULT_STACK)
    for command, text in (
        (_up, "start what is missing, run `pulumi up`, report"),
        (_preview, "run `pulumi preview`"),
        (_refresh, "run `pulumi refresh`"),
        (_drift, "run `mlbatch drift`, which lists changes in the cluster and who made them"),
        (_destroy, "run `pulumi destroy`"),
        (_status, "show processes and platform"),
        (_env, "print shell exports"),
        (_lend, "start a new cluster, print the engine's environment, stop at the end of standard input"),
        (_mirror, "fill the mirror of upstream manifests and charts"),
        (_tools, "build what `up` needs, fill the mirror"),
        (_build, "build what `make test` needs, fill the mirror"),
    ):
        commands.add_parser(command.__name__[1:], parents=[stacked], help=text).set_defaults(command=command)
    for name in ("up", "preview", "refresh", "drift", "destroy"):
        commands.choices[name].add_argument("pulumi", nargs="*", help="arguments for the command that is run, after --")
    commands.choices["status"].add_argument("--html", type=Path, metavar="FILE", help="also draw the platform to FILE")
    commands.choices["tools"].add_argument("--monitoring", action="store_true", help="also build what draws dashboards")
    commands.add_parser("unbuilt", help="list what the make targets still have to build").set_defaults(command=_unbuilt)
    packed = commands.add_parser("archive", help="build the tools of a release, pack them, print their pin")
    packed.add_argument("file", type=Path)
    packed.set_defaults(command=_archive)
    down = commands.add_parser("down", help="stop the local clusters")
    down.add_argument("--purge", action="store_true", help="also delete their data and the stacks' local state")
    down.set_defaults(command=_down)
    return parser


def _private(paths: Paths) -> Paths:
    """Restrict the state to this user, including folders that an earlier umask opened to others."""
    for folder in [private_folder(paths.state), *(each for each in paths.state.iterdir() if each.is_dir())]:
        if not folder.is_symlink():
            folder.chmod(0o700)
    return paths


def _in_turn(command: Command) -> Command:
    """Return a command that runs alone on its stack."""

    @functools.wraps(command)
    def run(paths: Paths, options: argparse.Namespace) -> int:
        require_stack(paths.root, options.stack)
        with alone(paths, f"make {command.__name__[1:]}{_option(options.stack)}"):
            return command(paths, options)

    return run


@_in_turn
def _up(paths: Paths, options: argparse.Namespace) -> int:
    distribution.require_brought(paths.root, options.stack)
    parts = distribution.parts(paths.root, options.stack)
    openstack = distribution.has_openstack(paths.root, options.stack)
    progress = Progress(len(SETTING_UP))
    install(paths, options.stack, progress)
    with progress.step(SETTING_UP[0]):
        mirror.fill(paths, Toolchain(paths), **parts)
    with progress.step(SETTING_UP[1]):
        cluster.start(paths, progress.note, stack=options.stack, openstack=openstack, **parts)
    engine = _engine(paths, options)
    with progress.step(SETTING_UP[2]):
        _prepare(engine)
        engine.unlock()
        was_killed = bool(pending.creations(engine))
    if engine.was_killed_first:
        with progress.further_step(AGAIN):
            cluster.reset(paths)
            cluster.start(paths, progress.note, stack=options.stack, openstack=openstack, **parts)
        engine = _engine(paths, options)
    elif was_killed:
        with progress.further_step(FINISHING):
            pending.finish(engine, paths)
    with progress.step(f"{SETTING_UP[3]} --stack {options.stack}"):
        looking = _looking(engine)
        code = engine.run("up", ["--yes", "--skip-preview", "--suppress-outputs", *QUIET, *looking, *options.pulumi])
        if code != 0:
            raise EngineError(_ending(engine, "up", code))
    await_settled(connect(paths.kubeconfig))
    print(f"\n{environment_report(paths)}\n\n{NEXT.format(option=_option(options.stack))}")
    return 0


def _looking(engine: Engine) -> list[str]:
    """Return the option that skips the refresh, with a note, if the cluster no longer exists."""
    if not clusters.is_replaced(engine.read_state()):
        return []
    print(REPLACED.format(without=WITHOUT_LOOKING), file=sys.stderr)
    return [WITHOUT_LOOKING]


def _preview(paths: Paths, options: argparse.Namespace) -> int:
    return _look(paths, options, "preview", QUIET)


@_in_turn
def _refresh(paths: Paths, options: argparse.Namespace) -> int:
    return _look(paths, options, "refresh", ["--yes", "--skip-preview", *QUIET])


def _look(paths: Paths, options: argparse.Namespace, command: str, arguments: Sequence[str]) -> int:
    engine = _engine(paths, options)
    _prepare(engine)
    changing = _changing(engine, paths) if command == "preview" else None
    if changing is not None:
        print(CHANGING.format(changing=changing), file=sys.stderr)
    if changing is None and pending.creations(engine):
        print(KILLED, file=sys.stderr)
    looking = _looking(engine) if command == "preview" else []
    return _run(engine, command, [*arguments, *looking, *options.pulumi])


def _changing(engine: Engine, paths: Paths) -> str | None:
    """Return what is changing the stack now: a make command, else the owner of the engine's lock. None if neither."""
    return at_work(paths) or engine.changing


def _drift(paths: Paths, options: argparse.Namespace) -> int:
    engine = _engine(paths, options)
    _prepare(engine)
    command = [str(paths.root / "mlbatch"), "drift", "--stack", options.stack, *options.pulumi]
    return subprocess.run(command, cwd=paths.root, env={**inherited(), **engine.variables()}).returncode


@_in_turn
def _destroy(paths: Paths, options: argparse.Namespace) -> int:
    engine = _engine(paths, options)
    _prepare(engine)
    engine.unlock()
    if engine.was_killed_first:
        raise EngineError(
            "the first update of this stack was killed, and the state is empty. Remove the stack with `make clean`"
        )
    pending.finish(engine, paths)
    _require_answers(engine, paths, options)
    looking = _looking(engine)
    arguments = ["--yes", "--skip-preview", "--exclude-protected", *QUIET, *looking, *options.pulumi]
    return _run(engine, "destroy", arguments)


def _run(engine: Engine, command: str, arguments: Sequence[str]) -> int:
    """Run `pulumi <command>` and return its exit code. Raises EngineError if it was killed or cancelled."""
    code = engine.run(command, arguments)
    if engine.cancelled or code < 0:
        raise EngineError(_ending(engine, command, code))
    return code


def _ending(engine: Engine, command: str, code: int) -> str:
    """Return the message for a `pulumi <command>` that did not succeed."""
    option = _option(engine.stack)
    if code < 0:
        how = f"`pulumi {command}` was killed by signal {-code}"
    elif engine.cancelled:
        how = f"`pulumi {command}` was cancelled"
    else:
        exists = EXISTS.format(option=option) if command == "up" else ""
        return (
            f"`pulumi {command}` ended with exit code {code}; its errors are above. "
            f"Fix them and run `make {command}{option}` again: completed changes are kept.{exists}"
        )
    if code < 0 and command != "preview":
        return f"{how}. The next `make up{option}` or `make destroy{option}` finishes it"
    return f"{how}. Continue with `make {command}{option}`"


def _require_answers(engine: Engine, paths: Paths, options: argparse.Namespace) -> None:
    """Raise EngineError if a deletion would wait silently for a webhook without running pods."""
    outputs = [each.get("outputs") or {} for each in engine.read_state().get("resources") or ()]
    kinds = {(each["apiVersion"], each["kind"]) for each in outputs if "apiVersion" in each and "kind" in each}
    try:
        holding = webhooks.holding(connect(paths.kubeconfig), kinds)
    except (ApiException, HTTPError):
        return  # the engine reports what does not answer
    if holding:
        services = "; ".join(
            f"Service {each.service} in {each.namespace}, which the API server asks to delete {', '.join(held)}"
            for each, held in holding.items()
        )
        option = _option(options.stack)
        raise EngineError(
            f"no pod answers the webhooks of {services}, so `pulumi destroy` would wait until its timeout. "
            f"Start them with `make up{option}`, then run `make destroy{option}` again. Or delete the clusters with "
            "`make clean`"
        )


def _status(paths: Paths, options: argparse.Namespace) -> int:
    state = cluster.status(paths)
    print(cluster_report(state))
    if not state.ready:
        print(f"\nStart it with `make up{_option(options.stack)}`.")
        return 1
    try:
        print(f"\n{environment_report(paths)}")
        if options.html is not None:
            print(f"\n{draw(connect(paths.kubeconfig), options.html, options.stack)}")
    except OSError as error:
        raise EngineError(f"cannot write the picture: {error}") from error
    except (ApiException, HTTPError) as error:
        raise EngineError(f"the cluster of {paths.kubeconfig} does not answer: {error}") from error
    return 0


def _option(stack: str) -> str:
    return "" if stack == DEFAULT_STACK else f" STACK={stack}"


def _env(paths: Paths, options: argparse.Namespace) -> int:
    engine = _engine(paths, options)
    _prepare(engine)
    print(engine.exports(), end="")
    return 0


def _mirror(paths: Paths, options: argparse.Namespace) -> int:
    toolchain = Toolchain(paths)
    toolchain.install(MIRROR, Progress(0))
    mirror.fill(paths, toolchain)
    return 0


def _tools(paths: Paths, options: argparse.Namespace) -> int:
    install(paths, options.stack, Progress(0), MONITORING if options.monitoring else ())
    mirror.fill(paths, Toolchain(paths), **distribution.parts(paths.root, options.stack))
    return 0


def _build(paths: Paths, options: argparse.Namespace) -> int:
    toolchain, progress = Toolchain(paths), Progress(0)
    toolchain.install(TESTED, progress)
    Installation(paths).install(progress)
    mirror.fill(paths, toolchain)
    return 0


def _unbuilt(paths: Paths, options: argparse.Namespace) -> int:
    missing = {need.module.folder for need in Toolchain(paths).missing((*TESTED, *OPERATOR_HUB))}
    if Installation(paths).missing():
        missing.add("openstack")
    for targets, folders in (
        ("up, review, bench, scenarios, gameday, test", {need.module.folder for need in CLUSTER}),
        ("up STACK=cpouta, test", {"openstack"}),
        ("dashboards, test", {need.module.folder for need in MONITORING}),
        ("local-openshift-ai", {need.module.folder for need in OPERATOR_HUB}),
    ):
        if missing & folders:
            print(f"  still to build for {targets}: {', '.join(sorted(missing & folders))}")
    if not missing:
        print("  All tools are built.")
    return 0


def _archive(paths: Paths, options: argparse.Namespace) -> int:
    pin = Toolchain(paths).pack(options.file, Progress(0))
    print(pin)
    return 0


def _down(paths: Paths, options: argparse.Namespace) -> int:
    found = paths.environments()
    with contextlib.ExitStack() as turns:
        # Take all turns before the first stop, so that no command stops only some clusters.
        for each in found:
            turns.enter_context(_unused(each, "make clean" if options.purge else "make down"))
        for each in found:
            _stop(each, purge=options.purge)
    return 0


@contextlib.contextmanager
def _unused(paths: Paths, command: str) -> Iterator[None]:
    """Take the turn in one environment. Raises EngineError if another command changes its stack."""
    if paths.run.is_symlink():
        yield  # another user's folder: do not touch it
        return
    with alone(paths, command):
        stack = paths.state.name
        changing = Engine(paths.root, paths.state, stack, Environment(kubeconfig=paths.kubeconfig)).changing
        if changing is not None:
            raise EngineError(LIVE.format(stack=stack, changing=changing, locks=paths.state / LOCKS))
        yield


def _stop(paths: Paths, *, purge: bool) -> None:
    if purge:
        cluster.reset(paths)
        for name in ("pulumi-state", "pulumi-home", "config", "logs", "mirror"):
            shutil.rmtree(paths.state / name, ignore_errors=True)
        for marker in paths.run.glob("*.creating") if not paths.run.is_symlink() else ():
            marker.unlink()
    else:
        cluster.stop(paths)
    if paths.is_lent:
        shutil.rmtree(paths.state)


def _lend(paths: Paths, options: argparse.Namespace) -> int:
    """Start an empty cluster. It ends with standard input or a signal."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(dir=private_folder(paths.lent)) as folder:
        lent = replace(paths, state=Path(folder))
        parts = distribution.parts(paths.root, options.stack)
        openstack = distribution.has_openstack(paths.root, options.stack)
        install(lent, options.stack, Progress(0))
        try:
            if parts["openshift"]:
                definitions.fill(lent, Toolchain(lent))
            if parts["operator_hub"]:
                operator_hub.fill(lent, Toolchain(lent))
            owner = os.getpid()
            cluster.start(lent, lambda _: None, stack=options.stack, openstack=openstack, owner=owner, **parts)
            print(environment(lent).dump(), flush=True)
            sys.stdin.read()
        finally:
            cluster.kill(lent)
    return 0


def _engine(paths: Paths, options: argparse.Namespace) -> Engine:
    """Return the engine of the stack. Raises EngineError if its local cluster does not run."""
    require_stack(paths.root, options.stack)
    state = cluster.status(paths)
    if state.processes and not state.node_ready:
        # Report it once; the engine would repeat it for each object.
        raise EngineError(
            f"the API server of stack {options.stack}, {state.server}, does not answer, or its node is not Ready; "
            f"see `make status{_option(options.stack)}`. No change was made. Restart it with `make down`, then "
            f"`make up{_option(options.stack)}`, which keeps its data"
        )
    if not state.ready:
        raise EngineError(
            f"the local cluster of stack {options.stack} does not run, or is not ready. "
            f"Start it with `make up{_option(options.stack)}`"
        )
    return Engine(paths.root, paths.state, options.stack, replace(environment(paths), disposable=True))


def _prepare(engine: Engine) -> None:
    for key in engine.prepare():
        print(f"note: {key} is encrypted for another backend; locally, a generated value replaces it", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
