"""Command line of the local environment; the make targets call it.

python -m emulator up --stack dev       start what is missing, run `pulumi up`, report
python -m emulator preview|refresh|destroy --stack dev [-- pulumi arguments]
python -m emulator status --stack dev   what runs, and what the platform holds
python -m emulator env --stack dev      shell exports for plain `pulumi` and `kubectl`
python -m emulator down [--purge]       stop the local clusters; with --purge forget their data

Each stack has a local environment of its own: cluster, state, logs.
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

from emulator import azure, cluster, mirror
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
from emulator.paths import DEFAULT_STACK, Paths
from emulator.progress import Progress
from emulator.report import await_settled, cluster_report, platform_report
from emulator.toolchain import Toolchain, ToolchainError

SETTING_UP = (
    "fill the mirror of upstream manifests and charts",
    "start the local cluster",
    "prepare the stack",
    "pulumi up",
)

QUIET = ("--suppress-permalink=true", "--suppress-progress")

NEXT = """Next
  make status{option}
      this report again
  make preview{option}
      what `pulumi up` would change (nothing, now)
  eval "$(make -s env{option})"
      then plain pulumi and kubectl talk to this environment
  kubectl --as alice -n blue get appwrappers
      what a member of a team sees
  make destroy{option} && make down
      remove the platform, stop the local cluster"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the process's exit code."""
    options = _parser().parse_args(arguments)
    paths = Paths.of()
    try:
        return int(options.command(paths.of_stack(options.stack) if "stack" in options else paths, options))
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
    stacked.add_argument("--stack", default=DEFAULT_STACK)
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
    for name, with_cluster, text in (
        ("mirror", False, "fill the mirror of upstream manifests and charts"),
        ("build", True, "build every tool, fill the mirror"),
    ):
        commands.add_parser(name, parents=[stacked], help=text).set_defaults(command=_build, cluster=with_cluster)
    down = commands.add_parser("down", help="stop the local clusters")
    down.add_argument("--purge", action="store_true", help="also forget their data and the stacks' local state")
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
    print(f"\n{_platform(paths, brought)}\n\n{_next(options.stack)}")
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
        print(f"\n{_platform(paths, brought)}")
    except (ApiException, HTTPError) as error:
        raise EngineError(f"the cluster of {brought or paths.kubeconfig} does not answer: {error}") from error
    return 0


def _platform(paths: Paths, brought: Path | None) -> str:
    """Describe what the emulated Azure holds, where the local cluster is used, and the platform."""
    subscription = azure.report(paths) if brought is None else ""
    return "\n\n".join(part for part in (subscription, platform_report(brought or paths.kubeconfig)) if part)


def _next(stack: str) -> str:
    return NEXT.format(option="" if stack == DEFAULT_STACK else f" STACK={stack}")


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
    for environment in paths.environments():
        cluster.stop(environment)
        if options.purge:
            cluster.reset(environment)
            for folder in (environment.pulumi_state, environment.pulumi_home, environment.state / "config"):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(environment.logs, ignore_errors=True)
    return 0


def _require_cluster(paths: Paths, options: argparse.Namespace) -> None:
    if _brought_kubeconfig(paths, options) is None and not cluster.status(paths).ready:
        raise EngineError(
            f"the local cluster of stack {options.stack} does not run, or is not ready; "
            f"`make up STACK={options.stack}` starts it"
        )


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
        with stand_in_provider(paths, kubeconfig) as served:
            yield Engine(paths, options.stack, kubeconfig, served)


def _brought_kubeconfig(paths: Paths, options: argparse.Namespace) -> Path | None:
    """Return the kubeconfig of a cluster that the user brings, by option or by the stack's settings, else None."""
    if options.kubeconfig is not None:
        return Path(options.kubeconfig).expanduser().resolve()
    return stack_kubeconfig(paths, options.stack)


if __name__ == "__main__":
    sys.exit(main())
