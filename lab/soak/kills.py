"""Kill plain `pulumi up` at moments from a seed, and finish each update with the commands of docs/operations.md.

Fails if the commands do not finish the update, if the state then lacks a created resource or has it twice, or if a
resource remains after destroying the stack.
"""

import random
import sys
import time
from collections.abc import Sequence

from tests.commands import Parser, whole
from tests.local.environment import Cluster, dev_settings, local_project
from tests.local.killed import Killed

LONGEST_DELAY = 1.0
"""Largest number of seconds between a write of the state and the kill."""

MOST_KILLS = 1000
"""Largest number of kills in a run; each takes one or two minutes."""


def moments(seed: int, kills: int, objects: int) -> list[tuple[int, float]]:
    """Return the moments of kills: the number of objects in the state, and the seconds after that.

    objects: number of objects in the stack. Each part of the update gets the same share, in random order.
    """
    chance = random.Random(seed)  # noqa: S311 - moments, no secret
    parts = [(1 + objects * part // kills, 1 + objects * (part + 1) // kills) for part in range(kills)]
    found = [
        (chance.randrange(first, max(beyond, first + 1)), chance.uniform(0, LONGEST_DELAY)) for first, beyond in parts
    ]
    chance.shuffle(found)
    return [(min(count, objects - 1), delay) for count, delay in found]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the kills; return 1 if an update was not finished."""
    parser = Parser(prog="python -m lab.soak.kills", description=__doc__)
    parser.add_argument("--seed", type=whole("SEED"), default=1)
    parser.add_argument("--kills", type=whole("KILLS", 1, MOST_KILLS), default=20)
    parser.add_argument("--check", action="store_true", help="only check the options")
    options = parser.parse_args(arguments)
    if options.check:
        return 0
    with local_project() as (paths, project):
        project.configure(dev_settings(project.mirror))
        stack = Killed(project, Cluster(paths.kubeconfig))
        project.up()
        objects = stack.recorded
        stack.destroy()
        for number, (count, delay) in enumerate(moments(options.seed, options.kills, objects), 1):
            began = time.monotonic()
            print(f"kill {number} of {options.kills}: {delay:.1f} s after {count} of {objects} objects", flush=True)
            try:
                stack.kill_at(count, delay)
                stack.finish()
                stack.judge()
                stack.destroy()
            except AssertionError as error:
                print(f"error: {error}\nseed {options.seed}", file=sys.stderr)
                return 1
            print(f"  finished, without duplicates or leftovers: {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
