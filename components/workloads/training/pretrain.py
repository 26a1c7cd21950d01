"""Train a language model from scratch with PyTorch's DistributedDataParallel, or resume from the last checkpoint.

torchrun starts one process for each GPU. Rank 0 prints a line of JSON for each step, and writes the checkpoints. After
SIGTERM, all processes finish their step, and rank 0 writes a checkpoint. The number of a step alone determines its
texts, so a resumed run has the same losses as an undisturbed one.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from components.workloads.training.checkpoints import Checkpoints
from components.workloads.training.model import Decoder
from components.workloads.training.texts import VOCABULARY, Texts

TERMINATED = 128 + signal.SIGTERM
_SEED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; return the exit code of the process."""
    options = _options(arguments)
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        return Training(options, device).run()
    finally:
        distributed.destroy_process_group()


class Training:
    """The model and its optimizer."""

    def __init__(self, options: argparse.Namespace, device: torch.device) -> None:
        self.options, self.device = options, device
        self.rank = distributed.get_rank()
        torch.manual_seed(_SEED)
        self.shape = {name: getattr(options, name) for name in ("layers", "width", "heads", "context")}
        self.model = DistributedDataParallel(Decoder(**self.shape).to(device))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.learning_rate)
        self.texts = Texts(options.data, options.context)
        self.checkpoints = Checkpoints(options.checkpoints)
        self.told_to_end = False
        signal.signal(signal.SIGTERM, self._end)

    def run(self) -> int:
        """Train from the last checkpoint to the last step."""
        step = self._resume()
        while step < self.options.steps:
            loss = self._step(step)
            step += 1
            if self.rank == 0:
                print(json.dumps({"step": step, "loss": loss}), flush=True)
            ends = self._ends()
            if self.rank == 0 and (ends or step % self.options.checkpoint_every == 0 or step == self.options.steps):
                self.checkpoints.save(step, self._state(step))
            if ends and step < self.options.steps:
                return TERMINATED
        return 0

    def _step(self, step: int) -> float:
        """Train one step; return the mean loss of all processes."""
        read = bytearray(b"".join(self.texts.batch(step, self.rank, self.options.batch)))
        texts = torch.frombuffer(read, dtype=torch.uint8).view(self.options.batch, -1).to(self.device).long()
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            logits = self.model(texts[:, :-1])
        loss = functional.cross_entropy(logits.float().reshape(-1, VOCABULARY), texts[:, 1:].reshape(-1))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        mean = loss.detach() / distributed.get_world_size()
        distributed.all_reduce(mean)
        return float(mean)

    def _resume(self) -> int:
        """Load the newest checkpoint, if there is one; return its step.

        Raises SystemExit if it has a model of another shape, or if the processes loaded different checkpoints.
        """
        state = self.checkpoints.newest()
        step = 0 if state is None else int(state["step"])
        if state is not None:
            if state["shape"] != self.shape:
                raise SystemExit(
                    f"{self.options.checkpoints} has checkpoints of a model of {state['shape']}. This model is of "
                    f"{self.shape}: rename the job, or delete the checkpoints"
                )
            self.model.module.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
        last = torch.tensor([step, -step], device=self.device)
        distributed.all_reduce(last, distributed.ReduceOp.MAX)
        if last.sum() != 0:
            raise SystemExit(f"process {self.rank} would resume from step {step}, and others from another step")
        if self.rank == 0:
            print(json.dumps({"resumed": step}), flush=True)
        return step

    def _state(self, step: int) -> Mapping[str, Any]:
        weights = self.model.module.state_dict()
        return {"step": step, "shape": self.shape, "model": weights, "optimizer": self.optimizer.state_dict()}

    def _ends(self) -> bool:
        """Return whether any process received SIGTERM. All processes return the same."""
        told = torch.tensor(int(self.told_to_end), device=self.device)
        distributed.all_reduce(told, distributed.ReduceOp.MAX)
        return bool(told)

    def _end(self, *_: object) -> None:
        self.told_to_end = True


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name in ("steps", "layers", "width", "heads", "context", "batch", "checkpoint-every"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder that all processes see")
    parser.add_argument("--data", type=Path, help="folder of texts; default generated ones")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
