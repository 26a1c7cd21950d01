"""Runs a training job's program with local processes, and interrupts it."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CLOSE = 1e-4
"""Largest difference between two losses of the same step, caused by the order of float sums."""


@dataclass(frozen=True)
class Runs:
    """Runs of a program. Each run starts from the checkpoints of the previous one in a folder."""

    folder: Path
    command: Sequence[str]

    def run(
        self, *, until: int | None = None, by: signal.Signals = signal.SIGKILL
    ) -> tuple[int, dict[int, float], int]:
        """Run until it ends, or send a signal after a step.

        Return the step it resumed from, the loss of each step by number, and its exit code.
        """
        resumed, losses = -1, dict[int, float]()
        with self._started() as process:
            for line in json_lines(process.stdout or ()):
                resumed = line.get("resumed", resumed)
                if "step" in line:
                    losses[line["step"]] = line["loss"]
                if line.get("step", -1) == until:
                    # When a node fails, all processes of a pod end at once. Kubernetes signals only the first one.
                    _kill(process.pid) if by is signal.SIGKILL else process.send_signal(by)
            return resumed, losses, process.wait(timeout=120)

    def steps(self) -> list[int]:
        """Return the steps of the existing checkpoints, the newest first."""
        return sorted((int(path.stem.partition("-")[2]) for path in self.folder.glob("*.pt")), reverse=True)

    @contextlib.contextmanager
    def _started(self) -> Iterator[subprocess.Popen[str]]:
        own = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        own |= {"RAY_DEDUP_LOGS": "0", "RAY_COLOR_PREFIX": "0", "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(
            self.command, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True, cwd=self.folder.parent
        )
        try:
            yield process
        finally:
            _kill(process.pid)
            process.wait()


def compare(losses: Mapping[int, float], undisturbed: Mapping[int, float], first: int) -> None:
    """Assert that a run's losses from a step on equal those of the undisturbed run."""
    assert sorted(losses) == list(range(first, first + len(losses))), sorted(losses)
    apart = {step: (loss, undisturbed[step]) for step, loss in losses.items() if abs(loss - undisturbed[step]) > CLOSE}
    assert not apart, f"losses differ after a restart: {apart}"


def json_lines(printed: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of JSON that a program prints, without Ray's prefix."""
    for line in printed:
        with contextlib.suppress(json.JSONDecodeError):
            if isinstance(found := json.loads(line[line.find("{") :]), dict):
                yield found


def _kill(process: int) -> None:
    """Kill a process and all its descendants, including those in other sessions."""
    with contextlib.suppress(FileNotFoundError):
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        for child in children:
            _kill(int(child))
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
