"""Run scenarios on a new local cluster. Fails if a promise is not kept.

python -m lab.scenarios [NAME ...] [--nodes 3] [--pictures FOLDER]
python -m lab.scenarios --break [NAME ...]     each without its mechanism; each must fail
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from lab.scenarios.mechanisms import MECHANISMS
from lab.scenarios.memory import check as check_memory
from lab.scenarios.plays import SCENARIOS
from lab.scenarios.run import Outcome, play
from lab.scenarios.size import FEWEST, Size, scenario_settings
from lab.scenarios.stage import settle
from stacks.config.errors import listed, nearest
from tests.commands import Parser, ended, whole
from tests.local.environment import Cluster, local_project

PATIENCE, SHORT = 180, 45
"""Seconds until a promise counts as not kept. With --break, the shorter time applies to the step that the disabled
mechanism keeps.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; return the process's exit code."""
    parser = Parser(prog="python -m lab.scenarios", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--nodes", type=whole("NODES"), default=FEWEST, help="of eight GPUs each")
    parser.add_argument("--pictures", type=Path, default=Path(".local/scenarios"), help="where the pictures go")
    parser.add_argument("--break", action="store_true", dest="broken", help="take each scenario's mechanism away")
    options = parser.parse_args(arguments)
    try:
        names, size = known(options.names), Size(options.nodes)
        check_memory(nodes=size.nodes, jobs=size.gpus)
        options.pictures.mkdir(parents=True, exist_ok=True)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    outcomes = run(names, size, options.pictures, is_broken=options.broken)
    print("\n".join(["", *(f"{outcome.seconds:6.0f} s  {outcome.verdict}" for outcome in outcomes)]))
    wrong = [item.scenario.name for item in outcomes if not (item.is_proof if options.broken else item.broken is None)]
    if wrong:
        what = "does not fail for its mechanism" if options.broken else "does not hold"
        print(f"error: {', '.join(wrong)} {what}", file=sys.stderr)
    return 1 if wrong else 0


def known(names: Sequence[str]) -> list[str]:
    """Return the scenarios to run, all if none is named. Raises ValueError for an unknown name."""
    for name in names:
        if name not in SCENARIOS:
            meant = nearest(name, SCENARIOS)
            hint = f"did you mean {meant}?" if meant else f"there are {listed(SCENARIOS)}"
            raise ValueError(f"there is no scenario {name!r}; {hint}")
    return list(names or SCENARIOS)


def run(names: Sequence[str], size: Size, pictures: Path, *, is_broken: bool) -> list[Outcome]:
    """Run scenarios one after the other on one cluster."""
    outcomes = []
    with local_project() as (paths, project):
        project.configure(scenario_settings(project, size))
        project.up()
        cluster = Cluster(paths.kubeconfig)
        for name in names:
            settle(cluster)
            scenario, picture = SCENARIOS[name], pictures / f"{name}.svg"
            if not is_broken:
                outcomes.append(play(scenario, paths, size, picture, PATIENCE))
                continue
            print(f"without {scenario.breaks}", flush=True)
            with MECHANISMS[scenario.breaks](cluster, project, size):
                without = pictures / f"{name}-without-{scenario.breaks}.svg"
                outcomes.append(play(scenario, paths, size, without, PATIENCE, SHORT))
    return outcomes


if __name__ == "__main__":
    sys.exit(ended(main))
