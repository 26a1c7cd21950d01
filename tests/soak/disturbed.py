"""A training job's program, run with processes of this machine, and ended on the way."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CLOSE = 1e-4
"""How far two losses of the same step may be apart: sums of floats in another order."""


@dataclass(frozen=True)
class Runs:
    """Runs of a program, each with the checkpoints that the last one has left in a folder."""

    folder: Path
    command: Sequence[str]

    def run(
        self, *, until: int | None = None, by: signal.Signals = signal.SIGKILL
    ) -> tuple[int, dict[int, float], int]:
        """Run until it ends, or give it a signal after a step.

        Return from which step it went on, the loss of each step by its number, and its exit code.
        """
        resumed, losses = -1, dict[int, float]()
        with self._started() as process:
            for line in _lines(process):
                resumed = line.get("resumed", resumed)
                if "step" in line:
                    losses[line["step"]] = line["loss"]
                if line.get("step", -1) == until:
                    # With its node, all processes of a pod end at once; Kubernetes tells the first one alone.
                    _kill(process.pid) if by is signal.SIGKILL else process.send_signal(by)
            return resumed, losses, process.wait(timeout=120)

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints that are there, the newest first."""
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
    """Hold a run's losses from a step on to those of the undisturbed run."""
    assert sorted(losses) == list(range(first, first + len(losses))), sorted(losses)
    apart = {step: (loss, undisturbed[step]) for step, loss in losses.items() if abs(loss - undisturbed[step]) > CLOSE}
    assert not apart, f"losses differ after a restart: {apart}"


def _lines(process: subprocess.Popen[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of JSON that a program prints; Ray puts before each who has printed it."""
    assert process.stdout is not None
    for line in process.stdout:
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line[line.find("{") :])


def _kill(process: int) -> None:
    """End a process of ours and all that it has started, some of it in sessions of its own."""
    with contextlib.suppress(FileNotFoundError):
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        for child in children:
            _kill(int(child))
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
