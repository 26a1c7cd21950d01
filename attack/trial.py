"""Try all attacks on the cluster of a kubeconfig.

The trial creates the namespace `mlbatch-attack` like a team's. It tries every attack there as a member in a dry run,
then deletes the namespace. It needs an administrator who may impersonate users.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from attack.attacks import Attack, attacks
from attack.member import NAMESPACE, Ground, Outcome


def tried(kubeconfig: Path | None, context: str | None, like: str | None) -> list[tuple[Attack, Outcome]]:
    """Try all attacks, print each result and return them."""
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
    """Return how many attacks go through, and how many of them give a member each gain."""
    through = Counter(attack.gains for attack, outcome in found if outcome.through)
    unknown = sum(not outcome.known for _, outcome in found)
    lines = [f"{through.total()} of {len(found) - unknown} go through."]
    if unknown:
        lines.append(f"{unknown} more are about kinds that this cluster does not have.")
    return [*lines, *(f"A member can get {gain} ({count})." for gain, count in through.items())]
