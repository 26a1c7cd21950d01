"""Run the pre-training's own program with two processes on the CPU, kill it on the way, and see it go on.

Ends with an error where a run that was killed, told to end or left with a broken checkpoint has other losses than one
that nobody disturbed. Runs in an environment with the packages of the group `training` of pyproject.toml.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = "components.workloads.training.pretrain"
ROOT = Path(__file__).parents[2]
STEPS, EVERY = 60, 10
MODEL = ("--layers=2", "--width=32", "--heads=2", "--context=32", "--batch=8", "--learning-rate=0.003")
CLOSE = 1e-4
"""How far two losses of the same step may be apart: sums of floats in another order."""


class Training:
    """Runs of the program, each with the checkpoints that the last one has left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *, until: int = STEPS + 1, by: signal.Signals = signal.SIGKILL) -> tuple[int, dict[int, float], int]:
        """Run until it ends, or give it a signal after a step.

        Return from which step it went on, the loss of each step by its number, and torchrun's exit code.
        """
        resumed, losses = -1, dict[int, float]()
        with self._started() as process:
            for line in self._lines(process):
                resumed = line.get("resumed", resumed)
                if "step" in line:
                    losses[line["step"]] = line["loss"]
                if line.get("step") == until:
                    # With its node, all processes of a pod end at once; Kubernetes tells torchrun alone.
                    _kill(process.pid) if by is signal.SIGKILL else process.send_signal(by)
            return resumed, losses, process.wait(timeout=60)

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints that are there, the newest first."""
        return sorted((int(path.stem.partition("-")[2]) for path in self.folder.glob("*.pt")), reverse=True)

    @contextlib.contextmanager
    def _started(self) -> Iterator[subprocess.Popen[str]]:
        command = [
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2"),
            *(f"--master-port={_free_port()}", "-m", PROGRAM, *MODEL, f"--steps={STEPS}"),
            *(f"--checkpoint-every={EVERY}", f"--checkpoints={self.folder}"),
        ]
        own = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        environment = {**os.environ, **own}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=self.folder.parent)
        try:
            yield process
        finally:
            _kill(process.pid)
            process.wait()

    @staticmethod
    def _lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
        assert process.stdout is not None
        for line in process.stdout:
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line)


def _kill(process: int) -> None:
    """End a process of ours and all that it has started, which torchrun does in sessions of their own."""
    with contextlib.suppress(FileNotFoundError):
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        for child in children:
            _kill(int(child))
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def compare(losses: dict[int, float], undisturbed: dict[int, float], first: int) -> None:
    """Hold a run's losses from a step on to those of the undisturbed run."""
    assert sorted(losses) == list(range(first, first + len(losses))), sorted(losses)
    apart = {step: (loss, undisturbed[step]) for step, loss in losses.items() if abs(loss - undisturbed[step]) > CLOSE}
    assert not apart, f"losses differ after a restart: {apart}"


def main() -> int:
    """Run them; raise AssertionError where one does not go on as it should."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Training(Path(folder) / "whole")
        resumed, undisturbed, code = whole.run()
        assert (resumed, code, whole.steps()) == (0, 0, [60, 50]), (resumed, code, whole.steps())
        assert undisturbed[STEPS] < undisturbed[1] - 1, "it learns nothing"
        print(f"undisturbed: loss {undisturbed[1]:.3f} to {undisturbed[STEPS]:.3f} in {STEPS} steps", flush=True)

        disturbed = Training(Path(folder) / "disturbed")
        _, losses, _ = disturbed.run(until=27)
        compare(losses, undisturbed, 1)
        assert disturbed.steps()[0] in (20, 30), disturbed.steps()
        print(f"killed after step 27: checkpoints of {disturbed.steps()}", flush=True)

        last = disturbed.steps()[0]
        resumed, losses, code = disturbed.run(until=36, by=signal.SIGTERM)
        assert resumed == last, (resumed, last)
        compare(losses, undisturbed, last + 1)
        assert code != 0
        assert disturbed.steps()[0] == max(losses), "it wrote a checkpoint of its last step"
        print(f"went on from {last}; told to end after step 36: checkpoints of {disturbed.steps()}", flush=True)

        newest, before = disturbed.steps()
        path = disturbed.folder / f"step-{newest:08d}.pt"
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        resumed, losses, code = disturbed.run()
        assert (resumed, code) == (before, 0), (resumed, before, code)
        compare(losses, undisturbed, before + 1)
        print(f"went on from {before}, as checkpoint {newest} was broken: loss {losses[STEPS]:.3f} at last", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
