"""Fine-tune a language model with low-rank adapters (LoRA) by Ray Train, or resume from the last checkpoint.

Each worker trains the same adapters on its own questions and answers. The weights of the model do not change. Rank 0
prints a line of JSON for each step, writes the checkpoints and at the end the adapter, in PEFT's format. The number of
a step alone determines its questions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
import torch
from datasets import load_dataset
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from ray.train import RunConfig, ScalingConfig, get_context
from ray.train.torch import TorchTrainer, get_device
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForCausalLM, AutoTokenizer

from components.workloads.training.checkpoints import Checkpoints

ADAPTER = "adapter"
"""Folder of the result, next to the checkpoints."""
_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
"""The layers that get an adapter: attention's projections, by their names in Granite and Llama (transformers)."""
_IGNORED = -100
"""Label of a token without a loss (transformers, `loss_function`)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train on the existing Ray cluster, or on a new one on this machine; return the exit code of the process."""
    options = _options(arguments)
    ray.init()
    # The trainer only waits for the workers, so it needs no core.
    workers = ScalingConfig(num_workers=options.workers, use_gpu=options.gpu, trainer_resources={"CPU": 0})
    trainer = TorchTrainer(
        train,
        train_loop_config=vars(options),
        scaling_config=workers,
        run_config=RunConfig(storage_path=str(options.folder.resolve()), name="ray"),
    )
    trainer.fit()
    return 0


def train(config: Mapping[str, Any]) -> None:
    """Train in the process of a worker."""
    Tuning(argparse.Namespace(**config)).run()


class Tuning:
    """The model with its adapters, their optimizer and their data."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.rank, self.device = options, get_context().get_world_rank(), get_device()
        self.checkpoints = Checkpoints(options.folder)
        self.tokenizer = AutoTokenizer.from_pretrained(options.model, revision=options.model_revision)
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        torch.manual_seed(1)
        precision = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        # Weights in another format are pickles, which can run code.
        whole = AutoModelForCausalLM.from_pretrained(
            options.model, revision=options.model_revision, torch_dtype=precision, use_safetensors=True
        )
        lora = LoraConfig(
            r=options.rank, lora_alpha=2 * options.rank, target_modules=list(_PROJECTIONS), task_type="CAUSAL_LM"
        )
        # The adapter records the revision. PEFT loads the adapter onto these weights.
        self.adapted = get_peft_model(whole, lora, revision=options.model_revision).to(self.device)
        self.model = DistributedDataParallel(self.adapted)
        trained = [weights for weights in self.adapted.parameters() if weights.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=options.learning_rate)
        self.texts = load_dataset(options.dataset, options.subset, split="train", revision=options.dataset_revision)
        self.places = with_room(self.texts, self.tokenizer, options.context)
        if not self.places:
            raise ValueError(f"no question of {options.dataset} leaves room for an answer in {options.context} tokens")

    def run(self) -> None:
        """Train from the last checkpoint to the last step, and write the adapter."""
        step = self._resume()
        while step < self.options.steps:
            loss = self._step(step)
            step += 1
            if self.rank == 0:
                print(json.dumps({"step": step, "loss": loss}), flush=True)
            if self.rank == 0 and (step % self.options.checkpoint_every == 0 or step == self.options.steps):
                self.checkpoints.save(step, self._state(step))
        if self.rank == 0:
            self.adapted.save_pretrained(self.options.folder / ADAPTER)

    def _step(self, step: int) -> float:
        """Train one step; return the mean loss of all workers."""
        loss = self.model(**self._batch(step)).loss
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        mean = loss.detach().float() / distributed.get_world_size()
        distributed.all_reduce(mean)
        return float(mean)

    def _batch(self, step: int) -> dict[str, Tensor]:
        """Return the questions and answers of a step. Only the tokens of answers have a loss."""
        chance = torch.Generator().manual_seed((step << 20) + self.rank)
        chosen = torch.randint(len(self.places), (self.options.batch,), generator=chance).tolist()
        entries = [self.texts[self.places[number]] for number in chosen]
        asked = [asking(entry) for entry in entries]
        whole = [
            f"{question}{entry['answer']}{self.tokenizer.eos_token}"
            for question, entry in zip(asked, entries, strict=True)
        ]
        batch = self.tokenizer(
            whole, return_tensors="pt", padding=True, truncation=True, max_length=self.options.context
        )
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, _IGNORED)
        for row, question in enumerate(asked):
            padded = int((batch["attention_mask"][row] == 0).sum()) if self.tokenizer.padding_side == "left" else 0
            labels[row, : padded + len(self.tokenizer(question)["input_ids"])] = _IGNORED
        found = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "labels": labels}
        return {name: values.to(self.device) for name, values in found.items()}

    def _resume(self) -> int:
        """Load the newest checkpoint, if there is one; return its step.

        Raises ValueError if it has another model or rank, or if the workers loaded different checkpoints.
        """
        state = self.checkpoints.newest()
        if state is not None and state["of"] != self._of():
            raise ValueError(
                f"{self.options.folder} has checkpoints of {state['of']}. This is {self._of()}: rename the job, or "
                "delete the checkpoints"
            )
        step = 0 if state is None else int(state["step"])
        if state is not None:
            set_peft_model_state_dict(self.adapted, state["adapters"])
            self.optimizer.load_state_dict(state["optimizer"])
        last = torch.tensor([step, -step], device=self.device)
        distributed.all_reduce(last, distributed.ReduceOp.MAX)
        if last.sum() != 0:
            raise ValueError(f"worker {self.rank} would resume from step {step}, and others from another step")
        return self._said(step)

    def _said(self, step: int) -> int:
        if self.rank == 0:
            print(json.dumps({"resumed": step}), flush=True)
        return step

    def _of(self) -> str:
        model, revision = self.options.model, self.options.model_revision
        return f"{model} at {revision} with adapters of rank {self.options.rank}"

    def _state(self, step: int) -> Mapping[str, Any]:
        adapters = get_peft_model_state_dict(self.adapted)
        return {"step": step, "of": self._of(), "adapters": adapters, "optimizer": self.optimizer.state_dict()}


def asking(entry: Mapping[str, str]) -> str:
    """Return the text before the answer."""
    return f"Question: {entry['question']}\nAnswer: "


def with_room(entries: Sequence[Mapping[str, str]], tokenizer: Any, context: int) -> list[int]:
    """Return the indexes of the questions that leave room for an answer. context: tokens of a text.

    A longer question has no token with a loss. In a batch of such questions the loss is NaN, and so become all weights.
    """
    return [place for place, entry in enumerate(entries) if len(tokenizer(asking(entry))["input_ids"]) < context]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", required=True, help="on the Hugging Face hub, or a folder")
    parser.add_argument("--dataset", required=True, help="questions and answers, on the hub or in a folder")
    for name in ("model", "dataset"):
        parser.add_argument(f"--{name}-revision", default="main", help="commit, branch or tag; not of a folder")
    parser.add_argument("--subset", help="of a dataset that has several")
    for name in ("workers", "rank", "steps", "batch", "context", "checkpoint-every"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="for checkpoints and result; all workers mount it")
    parser.add_argument("--gpu", action="store_true", help="give each worker a GPU")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
