"""Command line of the drift check; `make drift STACK=dev` calls it in the local environment.

python -m drift --stack mysite [--kubeconfig FILE] [--context NAME] [--fix] [--no-values]

It reads the stack's state by the Pulumi command, and compares in the cluster that kubectl would take, or that the
options name. Nothing is changed without --fix.

Exit code: 0 when everything is as declared, or was put back; 2 when something is not; 1 when something could not be
compared, or nothing could, or what reads a ConfigMap that was put back could not be restarted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from drift import report
from drift.check import Finding, check, put_all_back
from drift.cluster import ClusterError, connected
from drift.restarts import Restart, restart
from drift.state import StateError, export

TROUBLE: Final = 1
DRIFT: Final = 2

_PROGRAM: Final = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what drifted; return the process's exit code."""
    options = _parser().parse_args(arguments)
    try:
        state = export(options.stack, _PROGRAM)
        if not state.objects:
            print(f"Stack {options.stack} has no object in a cluster; there is nothing to compare.")
            return 0
        with connected(options.kubeconfig, options.context) as cluster:
            found, restarts = check(cluster, state.objects), []
            _print(report.findings(found, values=options.values))
            _print(report.summary(found, state.releases))
            if options.fix and any(finding.drifted for finding in found):
                before, found = found, put_all_back(cluster, found)
                restarts = restart(cluster, before, found)
                _print(["", "After --fix:"])
                _print(report.findings(found, values=options.values))
                _print(report.restarts(restarts))
                _print(report.summary(found, ()))
    except (ClusterError, StateError) as error:
        print(f"error: {error}", file=sys.stderr)
        return TROUBLE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return _code(found, restarts)


def _code(found: Iterable[Finding], restarts: Iterable[Restart]) -> int:
    if any(finding.trouble is not None for finding in found) or any(each.refused is not None for each in restarts):
        return TROUBLE
    return DRIFT if any(finding.drifted for finding in found) else 0


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m drift", description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--stack", required=True, help="the stack whose objects are compared")
    parser.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, else ~/.kube/config")
    parser.add_argument("--context", help="default: the file's current context")
    parser.add_argument("--fix", action="store_true", help="put back what is not as declared")
    parser.add_argument("--no-values", dest="values", action="store_false", help="name what differs without its values")
    return parser


if __name__ == "__main__":
    sys.exit(main())
