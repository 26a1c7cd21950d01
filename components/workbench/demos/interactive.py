"""Trains a language model to tell good reviews of films from bad ones, and keeps its checkpoints in a bucket.

In the end it prints a line of JSON: the address of the last checkpoint, and how many reviews it judges rightly.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from datasets import load_dataset
from ray.train import RunConfig, ScalingConfig
from ray.train.huggingface.transformers import RayTrainReportCallback, prepare_trainer
from ray.train.torch import TorchTrainer
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

from components.workbench.demos.bucket import storage


def main(arguments: Sequence[str] | None = None) -> int:
    """Train on the Ray cluster that there is, or on one of this machine; return the process's exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--model", default="distilbert/distilbert-base-uncased", help="on the hub, or a folder")
    parser.add_argument("--dataset", default="stanfordnlp/imdb", help="of texts and labels, on the hub, or a folder")
    parser.add_argument("--reviews", type=int, default=100, help="how many it learns from, and how many it judges")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--gpu", action="store_true", help="give each worker a GPU")
    options = parser.parse_args(arguments)
    ray.init()
    scaling = ScalingConfig(
        num_workers=options.workers,
        use_gpu=options.gpu,
        resources_per_worker={"CPU": 1, **({"GPU": 1} if options.gpu else {})},
        trainer_resources={"CPU": 0},
    )
    result = TorchTrainer(
        train,
        train_loop_config=vars(options),
        scaling_config=scaling,
        run_config=RunConfig(**storage("interactive")),
    ).fit()
    accuracy = result.metrics["eval_accuracy"]
    print(json.dumps({"checkpoint": result.checkpoint.path, "accuracy": accuracy}), flush=True)
    return 0


def train(config: Mapping[str, Any]) -> None:
    """Train in one of the workers' processes."""
    tokenizer = AutoTokenizer.from_pretrained(config["model"])

    def tokens(entries: Mapping[str, Any]) -> Any:
        return tokenizer(entries["text"], padding="max_length", truncation=True)

    reviews = load_dataset(config["dataset"])
    learned, judged = (
        reviews[part].shuffle(seed=1).select(range(config["reviews"])).map(tokens, batched=True)
        for part in ("train", "test")
    )
    arguments = TrainingArguments(
        output_dir="checkpoints",
        num_train_epochs=config["epochs"],
        learning_rate=config["learning_rate"],
        eval_strategy="epoch",
        save_strategy="epoch",
        use_cpu=not config["gpu"],
        report_to="none",
        seed=1,
    )
    trainer = Trainer(
        model=AutoModelForSequenceClassification.from_pretrained(config["model"], num_labels=2),
        args=arguments,
        train_dataset=learned,
        eval_dataset=judged,
        compute_metrics=_accuracy,
    )
    trainer.add_callback(RayTrainReportCallback())
    prepare_trainer(trainer).train()


def _accuracy(judged: tuple[Any, Any]) -> Mapping[str, float]:
    scores, labels = judged
    return {"accuracy": float((scores.argmax(axis=-1) == labels).mean())}


if __name__ == "__main__":
    sys.exit(main())
