"""Run the fine-tuning program on a local Ray with a toy model, kill it, and check that it resumes.

It runs with one worker for each GPU of this machine, or with two on the CPU. Fails if the killed run has other losses
than an undisturbed one, or leaves no adapter. Runs in an environment with the packages of the group `training` in
pyproject.toml.
"""

import sys
import tempfile
from pathlib import Path

import torch

from lab.soak.disturbed import Runs, compare
from lab.soak.toy_model import make

STEPS, EVERY = 12, 5


def tuning(toy: Path, folder: Path) -> Runs:
    """Return runs of the program with checkpoints in a folder. toy: folder of model and data."""
    gpus = torch.cuda.device_count()
    command = [
        *(sys.executable, "-m", "components.workloads.training.finetune", "--rank=4", "--batch=8"),
        *((f"--workers={gpus}", "--gpu") if gpus else ("--workers=2",)),
        *(f"--model={toy / 'model'}", f"--dataset={toy / 'data'}", "--context=64", "--learning-rate=0.01"),
        *(f"--steps={STEPS}", f"--checkpoint-every={EVERY}", f"--folder={folder}"),
    ]
    return Runs(folder, command)


def main() -> int:
    """Run them. Raises AssertionError if one does not resume."""
    with tempfile.TemporaryDirectory() as folder:
        toy = Path(folder) / "toy"
        make(toy)
        whole = tuning(toy, Path(folder) / "whole")
        resumed, undisturbed, code = whole.run()
        assert (resumed, code, whole.steps()) == (0, 0, [12, 10]), (resumed, code, whole.steps())
        assert (whole.folder / "adapter" / "adapter_model.safetensors").exists()
        print(f"undisturbed: loss {undisturbed[1]:.4f} to {undisturbed[STEPS]:.4f} in {STEPS} steps", flush=True)

        disturbed = tuning(toy, Path(folder) / "disturbed")
        _, losses, _ = disturbed.run(until=6)
        compare(losses, undisturbed, 1)
        last = disturbed.steps()[0]
        assert last < STEPS, "it was not killed"
        resumed, losses, code = disturbed.run()
        assert (resumed, code) == (last, 0), (resumed, last, code)
        compare(losses, undisturbed, last + 1)
        assert (disturbed.folder / "adapter" / "adapter_model.safetensors").exists()
        print(f"killed after step 6; resumed from {last}: loss {losses[STEPS]:.4f} at last", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
