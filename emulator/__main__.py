"""Command line of the local environment; the make targets call it.

python -m emulator up --stack dev       start what is missing, run `pulumi up`, report
python -m emulator preview|refresh|destroy --stack dev [-- pulumi arguments]
python -m emulator drift --stack dev [-- arguments of mlbatch drift]
python -m emulator status --stack dev   what runs, and what the platform holds; --html FILE draws it
python -m emulator env --stack dev      shell exports for plain `pulumi` and `kubectl`
python -m emulator down [--purge]       stop the local clusters; with --purge forget their data
python -m emulator lend --stack dev     a fresh cluster with its providers, for as long as the standard input is open

Each stack has a local environment of its own: cluster, state, logs. Nothing here acts on anything else.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
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
from runner.picture import draw
from runner.report import await_settled, connect

SETTING_UP = (
    "fill the mirror of upstream manifests and charts",
    "start the local cluster",
    "prepare the stack",
    "pulumi up",
)

AGAIN = "start the cluster again from nothing: the first update of this stack was killed"
"""A step of its own where it was: nobody has worked with such a stack yet."""

FINISHING = "finish the update that was killed"
"""A step of its own where there was one."""

QUIET = ("--suppress-permalink=true", "--suppress-progress")

NEXT = """Next
  make status{option}
      this report again
  make preview{option}
      what `pulumi up` would change (nothing, now)
  eval "$(make -s env{option})"
      then plain pulumi and kubectl talk to this environment
  kubectl --as <user> -n <team> get appwrappers
      what a member of a team sees
  make destroy{option} && make down
      remove the platform, stop the local cluster"""

KILLED: Final = (
    "note: the last `make up` was killed. The next `make up` or `make destroy` first finishes it (docs/operations.md)"
)

EXISTS: Final = (
    " If an error says that a resource exists already, an earlier update was killed or a plugin died, and the state "
    "lacks it: start this stack again with `make clean && make up{option}`."
)

CHANGING: Final = (
    "note: the stack is being changed by {changing}. The preview shows as still to be done what that has not recorded"
)

REPLACED: Final = (
    "note: an update has failed as it replaced the cluster, or what that stands on. Nobody is there to be looked at, "
    "so that this goes by the stack's state (`{without}`)"
)

LIVE: Final = (
    "stack {stack!r} is being changed by {changing}. Nothing was stopped: wait for it, or stop it, which has it end "
    "what it is doing and write its state, and run the command again. Only where that engine is gone for certain, as "
    "one of another host may be, remove its lock, below {locks}"
)

LOCKS: Final = Path("pulumi-state", ".pulumi", "locks")

FULL: Final = (
    "Make room where {state}, {cache} and {temporary} are, and run the same command again: completed changes are kept"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the process's exit code."""
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
        print("interrupted; run the same command again to carry on", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m emulator", description=__doc__.split("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True, metavar="command")
    stacked = argparse.ArgumentParser(add_help=False)
    stacked.add_argument("--stack", default=DEFAULT_STACK)
    for name, command, text in (
        ("up", _up, "start what is missing, run `pulumi up`, report"),
        ("preview", _preview, "run `pulumi preview`"),
        ("refresh", _refresh, "run `pulumi refresh`"),
        ("drift", _drift, "run `mlbatch drift`, which names what was changed in the cluster, and by whom"),
        ("destroy", _destroy, "run `pulumi destroy`"),
        ("status", _status, "tell what runs and what the platform holds"),
        ("env", _env, "print shell exports"),
        ("lend", _lend, "start a fresh cluster, print the engine's environment, await the end of the input"),
        ("mirror", _mirror, "fill the mirror of upstream manifests and charts"),
        ("tools", _tools, "build what `up` needs, fill the mirror"),
        ("build", _build, "build what `make test` needs, fill the mirror"),
    ):
        commands.add_parser(name, parents=[stacked], help=text).set_defaults(command=command)
    for name in ("up", "preview", "refresh", "drift", "destroy"):
        commands.choices[name].add_argument("pulumi", nargs="*", help="arguments for the command that is run, after --")
    commands.choices["status"].add_argument("--html", type=Path, metavar="FILE", help="write a picture of it, too")
    commands.choices["tools"].add_argument("--monitoring", action="store_true", help="also what draws dashboards")
    commands.add_parser("unbuilt", help="tell what make's targets still have to build").set_defaults(command=_unbuilt)
    packed = commands.add_parser("archive", help="build the tools of a release, pack them, print their pin")
    packed.add_argument("file", type=Path)
    packed.set_defaults(command=_archive)
    down = commands.add_parser("down", help="stop the local clusters")
    down.add_argument("--purge", action="store_true", help="also forget their data and the stacks' local state")
    down.set_defaults(command=_down)
    return parser


def _private(paths: Paths) -> Paths:
    """Keep everybody else out of the state, of what an earlier umask has let in too."""
    for folder in [private_folder(paths.state), *(each for each in paths.state.iterdir() if each.is_dir())]:
        if not folder.is_symlink():
            folder.chmod(0o700)
    return paths


def _up(paths: Paths, options: argparse.Namespace) -> int:
    with _alone(paths, options, "up"):
        return _stand_up(paths, options)


def _stand_up(paths: Paths, options: argparse.Namespace) -> int:
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
    print(f"\n{environment_report(paths)}\n\n{_next(options.stack)}")
    return 0


def _looking(engine: Engine) -> list[str]:
    """Return the option that has the engine not look at a cluster that is gone, with a note, where it is."""
    if not clusters.is_replaced(engine.read_state()):
        return []
    print(REPLACED.format(without=WITHOUT_LOOKING), file=sys.stderr)
    return [WITHOUT_LOOKING]


def _preview(paths: Paths, options: argparse.Namespace) -> int:
    return _look(paths, options, "preview", QUIET)


def _refresh(paths: Paths, options: argparse.Namespace) -> int:
    with _alone(paths, options, "refresh"):
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
    """Return who changes the stack now: a command of make, else whoever holds the engine's lock."""
    return at_work(paths) or engine.changing


def _drift(paths: Paths, options: argparse.Namespace) -> int:
    engine = _engine(paths, options)
    _prepare(engine)
    command = [str(paths.root / "mlbatch"), "drift", "--stack", options.stack, *options.pulumi]
    return subprocess.run(command, cwd=paths.root, env={**inherited(), **engine.variables()}).returncode


def _destroy(paths: Paths, options: argparse.Namespace) -> int:
    with _alone(paths, options, "destroy"):
        return _tear_down(paths, options)


def _tear_down(paths: Paths, options: argparse.Namespace) -> int:
    engine = _engine(paths, options)
    _prepare(engine)
    engine.unlock()
    if engine.was_killed_first:
        raise EngineError(
            "the first update of this stack was killed, and nothing of it is in the state: `make clean` removes it"
        )
    pending.finish(engine, paths)
    _require_answers(engine, paths, options)
    looking = _looking(engine)
    arguments = ["--yes", "--skip-preview", "--exclude-protected", *QUIET, *looking, *options.pulumi]
    return _run(engine, "destroy", arguments)


def _run(engine: Engine, command: str, arguments: Sequence[str]) -> int:
    """Run `pulumi <command>`; say how it ended where nobody let it end."""
    code = engine.run(command, arguments)
    if engine.cancelled or code < 0:
        raise EngineError(_ending(engine, command, code))
    return code


def _ending(engine: Engine, command: str, code: int) -> str:
    """Return what is to be said of a `pulumi <command>` that has not succeeded."""
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
        return f"{how}; the next `make up{option}` or `make destroy{option}` finishes it"
    return f"{how}, and has stopped; `make {command}{option}` carries on"


def _require_answers(engine: Engine, paths: Paths, options: argparse.Namespace) -> None:
    """Raise EngineError where a deletion would wait, without a word, for a webhook that nobody answers."""
    outputs = [each.get("outputs") or {} for each in engine.read_state().get("resources") or ()]
    kinds = {(each["apiVersion"], each["kind"]) for each in outputs if "apiVersion" in each and "kind" in each}
    try:
        holding = webhooks.holding(connect(paths.kubeconfig), kinds)
    except (ApiException, HTTPError):
        return  # the engine says what does not answer
    if holding:
        services = "; ".join(
            f"Service {each.service} in {each.namespace}, which the API server asks to delete {', '.join(held)}"
            for each, held in holding.items()
        )
        option = _option(options.stack)
        raise EngineError(
            f"nobody answers the webhooks of {services}. `pulumi destroy` would wait for them until it gives up. "
            f"Bring them back with `make up{option}`, then run `make destroy{option}` again; `make clean` throws the "
            "local clusters away with all that they hold"
        )


def _alone(paths: Paths, options: argparse.Namespace, command: str) -> contextlib.AbstractContextManager[None]:
    require_stack(paths.root, options.stack)
    return alone(paths, f"make {command}{_option(options.stack)}")


def _status(paths: Paths, options: argparse.Namespace) -> int:
    state = cluster.status(paths)
    print(cluster_report(state))
    if not state.ready:
        print(f"\n`make up{_option(options.stack)}` starts it.")
        return 1
    try:
        print(f"\n{environment_report(paths)}")
        if options.html is not None:
            print(f"\n{draw(connect(paths.kubeconfig), options.html, options.stack)}")
    except OSError as error:
        raise EngineError(f"the picture cannot be written: {error}") from error
    except (ApiException, HTTPError) as error:
        raise EngineError(f"the cluster of {paths.kubeconfig} does not answer: {error}") from error
    return 0


def _next(stack: str) -> str:
    return NEXT.format(option=_option(stack))


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
        # All of them before the first is stopped: nothing is to be half done.
        for each in found:
            turns.enter_context(_unused(each, "make clean" if options.purge else "make down"))
        for each in found:
            _stop(each, purge=options.purge)
    return 0


@contextlib.contextmanager
def _unused(paths: Paths, command: str) -> Iterator[None]:
    """Have the turn in one environment; raise EngineError where somebody changes its stack."""
    if paths.run.is_symlink():
        yield  # somebody else's folder, of which nothing is touched
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
    """Start a cluster that holds nothing yet; it goes when the standard input ends, or with a signal."""
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
    """Return the engine for the stack; its local cluster has to run."""
    require_stack(paths.root, options.stack)
    state = cluster.status(paths)
    if state.processes and not state.node_ready:
        # An engine would say so again for each object.
        raise EngineError(
            f"the API server of stack {options.stack}, {state.server}, does not answer, or its node is not Ready; "
            f"`make status{_option(options.stack)}` says what runs. Nothing was changed: `make down` and "
            f"`make up{_option(options.stack)}` start it anew, with its data"
        )
    if not state.ready:
        raise EngineError(
            f"the local cluster of stack {options.stack} does not run, or is not ready; "
            f"`make up{_option(options.stack)}` starts it"
        )
    return Engine(paths.root, paths.state, options.stack, replace(environment(paths), disposable=True))


def _prepare(engine: Engine) -> None:
    for key in engine.prepare():
        print(f"note: {key} is encrypted for another backend; a made-up value stands in locally", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
