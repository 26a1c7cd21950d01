"""`mlbatch drift`: compare the cluster with the stack's state."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cli.ending import FAILED, FINE, FOUND, failed, interrupted
from drift import report
from drift.check import Finding, check, put_all_back
from drift.cluster import ClusterError, connected
from drift.restarts import Restart, restart
from drift.state import StateError, export

_PROGRAM: Final = Path(__file__).resolve().parents[1]


def run(stack: str, kubeconfig: Path | None, context: str | None, *, fix: bool, values: bool) -> int:
    """Print the drift and restore the objects if requested. Return the exit code.

    It is 1 if an object has drifted, and 2 if an object could not be compared or restarted.
    """
    try:
        state = export(stack, _PROGRAM)
        if not state.objects:
            print(f"Stack {stack} has no object in a cluster; no comparison is needed.")
            return FINE
        with connected(kubeconfig, context) as cluster:
            found, restarts = check(cluster, state.objects), []
            _print(report.findings(found, values=values))
            _print(report.summary(found, state.releases))
            if fix and any(finding.drifted for finding in found):
                before, found = found, put_all_back(cluster, found)
                restarts = restart(cluster, before, found)
                _print(["", "After --fix:"])
                _print(report.findings(found, values=values))
                _print(report.restarts(restarts))
                _print(report.summary(found, ()))
    except (ClusterError, StateError) as error:
        return failed(error)
    except KeyboardInterrupt:
        return interrupted()
    return _code(found, restarts)


def _code(found: Iterable[Finding], restarts: Iterable[Restart]) -> int:
    if any(finding.trouble is not None for finding in found) or any(each.refused is not None for each in restarts):
        return FAILED
    return FOUND if any(finding.drifted for finding in found) else FINE


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)
