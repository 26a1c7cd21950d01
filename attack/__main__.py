"""Try as a member of a team what no member should be able to do, on the cluster that kubectl would take.

python -m attack [--kubeconfig FILE] [--context NAME] [--like NAMESPACE] [--list]

It makes the namespace `mlbatch-attack` like that of a team, tries every attack there as a member by a dry run, and
deletes the namespace. It needs the rights of an administrator who may impersonate users.

Exit code: 0 when every attack is refused, 2 when one goes through, 1 when they could not be tried.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from kubernetes.dynamic.exceptions import DynamicApiError
from urllib3.exceptions import HTTPError

from attack.attacks import Attack, attacks
from attack.member import NAMESPACE, Ground, Outcome, UselessError

TROUBLE: Final = 1
THROUGH: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what became of each attack; return the process's exit code."""
    options = _parser().parse_args(arguments)
    if options.list:
        for each in attacks():
            print(f"{each.name}: {each.gains}")
        return 0
    try:
        found = tried(options.kubeconfig, options.context, options.like)
    except (UselessError, ApiException, DynamicApiError, ConfigException, HTTPError, OSError) as error:
        print(f"error: the attacks could not be tried: {error}", file=sys.stderr)
        return TROUBLE
    except KeyboardInterrupt:
        print(f"interrupted; delete the namespace {NAMESPACE} where it is left", file=sys.stderr)
        return 130
    return THROUGH if any(outcome.through for _, outcome in found) else 0


def tried(kubeconfig: Path | None, context: str | None, like: str | None) -> list[tuple[Attack, Outcome]]:
    """Try all attacks, and print what became of each."""
    ground, found = Ground(kubeconfig, context), list[tuple[Attack, Outcome]]()
    listed = attacks()
    width = max(len(each.name) for each in listed)
    with ground.made(like):
        print(f"Namespace {NAMESPACE}, like {ground.like or 'a plain one, whose members have the role edit'}\n")
        for each in listed:
            outcome = ground.try_out(each)
            found.append((each, outcome))
            what = f"GOES THROUGH: {outcome.through}" if outcome.through else f"refused by {outcome.by}"
            print(f"{each.name.ljust(width)}  {what if outcome.known else outcome.by}", flush=True)
    print("\n".join(["", *summary(found)]))
    return found


def summary(found: Sequence[tuple[Attack, Outcome]]) -> list[str]:
    """Return how many go through, and how many of those a member gains each thing by."""
    through = Counter(attack.gains for attack, outcome in found if outcome.through)
    unknown = sum(not outcome.known for _, outcome in found)
    lines = [f"{through.total()} of {len(found) - unknown} go through."]
    if unknown:
        lines.append(f"{unknown} more are about kinds that this cluster does not have.")
    return [*lines, *(f"A member can get {gain} ({count})." for gain, count in through.items())]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m attack", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, else ~/.kube/config")
    parser.add_argument("--context", help="default: the file's current context")
    parser.add_argument("--like", metavar="NAMESPACE", help="a team's namespace; default: the first team's, if any")
    parser.add_argument("--list", action="store_true", help="print the attacks, and try none")
    return parser


if __name__ == "__main__":
    sys.exit(main())
