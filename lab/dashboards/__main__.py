"""Draw all dashboards in their current state: `python -m lab.dashboards --stack dev --html dashboards.html`.

Uses the running local cluster of a stack. One minute of Prometheus is enough for lines.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from components.observability.dashboards import DASHBOARDS, Dashboard
from emulator import cluster
from emulator.paths import DEFAULT_STACK, Paths
from lab.dashboards.drawing import Drawn, asked, page
from lab.dashboards.scraping import Prometheus, prometheus

NOTE = (
    "Kueue, AppWrapper, the slack controller and what kube-state-metrics reads are those of the local cluster; GPUs, "
    "InfiniBand, Autopilot and the volumes of kubelets are simulated."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw; return the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab.dashboards", description=__doc__.split("\n")[0])
    parser.add_argument("--stack", default=DEFAULT_STACK)
    parser.add_argument("--html", type=Path, default=Path("dashboards.html"))
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args(arguments)
    paths = Paths.of().of_stack(options.stack)
    if not cluster.status(paths).ready:
        print(f"error: the local cluster of stack {options.stack} does not run; `make up` starts it", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, prometheus(paths, Path(folder)) as source:
        time.sleep(options.seconds)
        options.html.write_text(page(answered(source, options.seconds), NOTE))
    print(options.html)
    return 0


def answered(source: Prometheus, seconds: float) -> list[tuple[Dashboard, Sequence[Drawn]]]:
    """Return all dashboards with the data of their panels for the last seconds."""
    return [(dashboard, [asked(source, panel, seconds) for panel in dashboard.panels]) for dashboard in DASHBOARDS]


if __name__ == "__main__":
    sys.exit(main())
