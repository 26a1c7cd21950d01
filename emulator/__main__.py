"""Command line of the local environment; the make targets call it.

python -m emulator up --stack dev       start what is missing, run `pulumi up`, report
python -m emulator preview|refresh|destroy --stack dev [-- pulumi arguments]
python -m emulator status               what runs, and what the platform holds
python -m emulator env --stack dev      shell exports for plain `pulumi` and `kubectl`
python -m emulator down [--purge]       stop the local cluster; with --purge forget its data
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from emulator import cluster, mirror
from emulator.cluster import ClusterError
from emulator.engine import (
    KUBERNETES,
    Engine,
    EngineError,
    official_provider_installed,
    require_stack,
    stack_kubeconfig,
    stand_in_provider,
)
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.report import await_settled, cluster_report, platform_report
from emulator.toolchain import Toolchain, ToolchainError

SETTING_UP = ("render the mirror of upstream manifests", "start the local cluster", "prepare the stack", "pulumi up")

QUIET = ("--suppress-permalink=true", "--suppress-progress")

NEXT = """Next
  make status                          this report again
  make preview                         what `pulumi up` would change (nothing, now)
  eval "$(make -s env)"                then plain pulumi and kubectl talk to this environment
  kubectl --as alice -n blue get appwrappers
  make destroy && make down            remove the platform, stop the local cluster"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the process's exit code."""
    options = _parser().parse_args(arguments)
    paths = Paths.of()
    try:
        return int(options.command(paths, options))
    except (ClusterError, EngineError, ToolchainError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run the same command again to carry on", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m emulator", description=__doc__.split("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True, metavar="command")
    stacked = argparse.ArgumentParser(add_help=False)
    stacked.add_argument("--stack", default="dev")
    stacked.add_argument("--kubeconfig", type=Path, help="use this cluster instead of a local one")
    stacked.add_argument("pulumi", nargs="*", help="further arguments for pulumi, after --")
    for name, command, text in (
        ("up", _up, "start what is missing, run `pulumi up`, report"),
        ("preview", _preview, "run `pulumi preview`"),
        ("refresh", _refresh, "run `pulumi refresh`"),
        ("destroy", _destroy, "run `pulumi destroy`"),
        ("status", _status, "tell what runs and what the platform holds"),
        ("env", _env, "print shell exports"),
    ):
        commands.add_parser(name, parents=[stacked], help=text).set_defaults(command=command)
    commands.add_parser("mirror", help="fill the mirror of upstream manifests").set_defaults(
        command=_build, cluster=False
    )
    commands.add_parser("build", help="build every tool, fill the mirror").set_defaults(command=_build, cluster=True)
    down = commands.add_parser("down", help="stop the local cluster")
    down.add_argument("--purge", action="store_true", help="also forget its data and the stacks' local state")
    down.set_defaults(command=_down)
    return parser


def _up(paths: Paths, options: argparse.Namespace) -> int:
    require_stack(paths, options.stack)
    brought = _brought_kubeconfig(paths, options)
    toolchain = Toolchain(paths)
    progress = Progress(len(toolchain.missing(cluster=brought is None)) + len(SETTING_UP) - (brought is not None))
    toolchain.install(cluster=brought is None, progress=progress)
    with progress.step(SETTING_UP[0]):
        mirror.fill(paths, toolchain)
    if brought is None:
        with progress.step(SETTING_UP[1]):
            cluster.start(paths, progress.note)
    with _engine(paths, options) as engine:
        with progress.step(SETTING_UP[2]):
            engine.prepare()
        with progress.step(f"{SETTING_UP[3]} --stack {options.stack}"):
            code = engine.run("up", ["--yes", "--skip-preview", "--suppress-outputs", *QUIET, *options.pulumi])
            if code != 0:
                raise EngineError(
                    f"`pulumi up` ended with exit code {code}; what it said stands above. "
                    "Put it right and run `make up` again: what is done stays done."
                )
    await_settled(brought or paths.kubeconfig)
    print(f"\n{platform_report(brought or paths.kubeconfig)}\n\n{NEXT}")
    return 0


def _preview(paths: Paths, options: argparse.Namespace) -> int:
    return _run(paths, options, "preview", QUIET)


def _refresh(paths: Paths, options: argparse.Namespace) -> int:
    return _run(paths, options, "refresh", ["--yes", "--skip-preview", *QUIET])


def _destroy(paths: Paths, options: argparse.Namespace) -> int:
    return _run(paths, options, "destroy", ["--yes", "--skip-preview", *QUIET])


def _run(paths: Paths, options: argparse.Namespace, command: str, arguments: Sequence[str]) -> int:
    _require_cluster(paths, options)
    with _engine(paths, options) as engine:
        engine.prepare()
        return engine.run(command, [*arguments, *options.pulumi])


def _status(paths: Paths, options: argparse.Namespace) -> int:
    brought = _brought_kubeconfig(paths, options)
    if brought is None:
        state = cluster.status(paths)
        print(cluster_report(state))
        if not state.ready:
            print("\n`make up` starts it.")
            return 1
    try:
        print(f"\n{platform_report(brought or paths.kubeconfig)}")
    except (ApiException, HTTPError) as error:
        raise EngineError(f"the cluster of {brought or paths.kubeconfig} does not answer: {error}") from error
    return 0


def _env(paths: Paths, options: argparse.Namespace) -> int:
    _require_cluster(paths, options)
    with _engine(paths, options) as engine:
        print(engine.exports(), end="")
    return 0


def _build(paths: Paths, options: argparse.Namespace) -> int:
    toolchain = Toolchain(paths)
    toolchain.install(options.cluster, Progress(len(toolchain.missing(options.cluster))))
    mirror.fill(paths, toolchain)
    return 0


def _down(paths: Paths, options: argparse.Namespace) -> int:
    cluster.stop(paths)
    if options.purge:
        cluster.reset(paths)
        for folder in (paths.pulumi_state, paths.pulumi_home, paths.state / "config", paths.logs):
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _require_cluster(paths: Paths, options: argparse.Namespace) -> None:
    if _brought_kubeconfig(paths, options) is None and not cluster.status(paths).ready:
        raise EngineError("the local cluster does not run, or is not ready; `make up` starts it")


@contextmanager
def _engine(paths: Paths, options: argparse.Namespace) -> Iterator[Engine]:
    """Yield the engine for the stack, with the provider that this machine can have."""
    brought = _brought_kubeconfig(paths, options)
    kubeconfig = brought or paths.kubeconfig
    if brought is None:
        providers = cluster.status(paths).providers
        official = {KUBERNETES} if official_provider_installed() else set()
        yield Engine(paths, options.stack, kubeconfig, {k: port for k, port in providers.items() if k not in official})
    elif official_provider_installed():
        yield Engine(paths, options.stack, kubeconfig, {})
    else:
        with stand_in_provider(paths) as served:
            yield Engine(paths, options.stack, kubeconfig, served)


def _brought_kubeconfig(paths: Paths, options: argparse.Namespace) -> Path | None:
    """Return the kubeconfig of a cluster that the user brings, by option or by the stack's settings, else None."""
    if options.kubeconfig is not None:
        return Path(options.kubeconfig).expanduser().resolve()
    return stack_kubeconfig(paths, options.stack)


if __name__ == "__main__":
    sys.exit(main())
