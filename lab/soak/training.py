"""Run the pre-training program, kill it, and check that it resumes.

It runs with one process for each GPU of this machine, or with two on the CPU. Fails if a run that was killed,
terminated or left with a broken checkpoint has other losses than an undisturbed one. Runs in an environment with the
packages of the group `training` in pyproject.toml.
"""

import signal
import sys
import tempfile
from pathlib import Path

import torch
import yaml

from lab.dashboards.ports import free_port
from lab.soak.disturbed import ROOT, Runs, compare

STEPS, EVERY = 60, 10
MODEL = ("--layers=2", "--width=32", "--heads=2", "--context=32", "--batch=8", "--learning-rate=0.003")


def training(folder: Path) -> Runs:
    """Return runs of the program with checkpoints in a folder."""
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes=1"),
        *(f"--nproc-per-node={torch.cuda.device_count() or 2}", f"--master-port={free_port()}"),
        *("-m", "components.workloads.training.pretrain", *MODEL),
        *(f"--steps={STEPS}", f"--checkpoint-every={EVERY}", f"--checkpoints={folder}"),
    ]
    return Runs(folder, command)


def example(folder: Path) -> Runs:
    """Return runs of the program that members copy (examples/), with its checkpoint in a folder."""
    folder.mkdir()
    documents = yaml.safe_load_all((ROOT / "examples" / "train-job.yaml").read_text())
    program = folder.parent / "train.py"
    program.write_text(next(documents)["data"]["train.py"])
    start = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}")
    return Runs(folder, ["env", f"CHECKPOINTS={folder}", *start, str(program)])


def main() -> int:
    """Run them. Raises AssertionError if one does not resume."""
    with tempfile.TemporaryDirectory() as folder:
        whole = training(Path(folder) / "whole")
        resumed, undisturbed, code = whole.run()
        assert (resumed, code, whole.steps()) == (0, 0, [60, 50]), (resumed, code, whole.steps())
        assert undisturbed[STEPS] < undisturbed[1] - 1, "it does not learn"
        print(f"undisturbed: loss {undisturbed[1]:.3f} to {undisturbed[STEPS]:.3f} in {STEPS} steps", flush=True)

        disturbed = training(Path(folder) / "disturbed")
        _, losses, _ = disturbed.run(until=27)
        compare(losses, undisturbed, 1)
        last = disturbed.steps()[0]
        assert last < STEPS, "it was not killed"
        print(f"killed after step 27: checkpoints of {disturbed.steps()}", flush=True)

        resumed, losses, code = disturbed.run(until=last + 16, by=signal.SIGTERM)
        assert resumed == last, (resumed, last)
        compare(losses, undisturbed, last + 1)
        assert code != 0
        assert disturbed.steps()[0] == max(losses) < STEPS, "it wrote no checkpoint of its last step"
        print(f"resumed from {last}; told to end after {last + 16}: checkpoints of {disturbed.steps()}", flush=True)

        newest, before = disturbed.steps()
        path = disturbed.folder / f"step-{newest:08d}.pt"
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        resumed, losses, code = disturbed.run()
        assert (resumed, code) == (before, 0), (resumed, before, code)
        compare(losses, undisturbed, before + 1)
        print(f"resumed from {before}, as checkpoint {newest} was broken: loss {losses[STEPS]:.3f} at last", flush=True)

        copied = example(Path(folder) / "example")
        copied.run(until=300)
        resumed, losses, code = copied.run()
        assert resumed in (200, 300), resumed  # the kill may come before the last checkpoint
        assert (code, max(losses)) == (0, 1000), (code, losses)
        assert losses[1000] < 0.001, f"the example does not learn: {losses}"
        print(f"example: resumed from {resumed}, loss {losses[1000]:.6f} at last", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
