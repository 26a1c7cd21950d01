"""Tries how deep the trees of a gradient boosting (XGBoost) should be, by trials of several workers each.

The trials and their checkpoints are in a bucket. In the end it prints a line of JSON with the best depth and its loss.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

import ray
from ray import tune
from ray.train import RunConfig, ScalingConfig
from ray.train.xgboost import XGBoostTrainer
from ray.tune import TuneConfig, Tuner

from components.workbench.demos.bucket import storage

_LOSS = "train-logloss"
_DEPTHS = (4, 5, 6)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune on the Ray cluster that there is, or on one of this machine; return the process's exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=3, help="of each trial")
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=2, help="trials that run while there is room for them")
    parser.add_argument(
        "--table", default="s3://anonymous@air-example-data/breast_cancer.csv", help="with a column `target`"
    )
    parser.add_argument("--gpu", action="store_true", help="give each worker a GPU")
    options = parser.parse_args(arguments)
    ray.init()
    trainer = XGBoostTrainer(
        label_column="target",
        params={
            "objective": "binary:logistic",
            "eval_metric": ["logloss", "error"],
            "max_depth": _DEPTHS[0],
            "device": "cuda" if options.gpu else "cpu",
        },
        datasets={"train": ray.data.read_csv(options.table)},
        scaling_config=ScalingConfig(
            num_workers=options.workers,
            use_gpu=options.gpu,
            resources_per_worker={"CPU": 1, **({"GPU": 1} if options.gpu else {})},
            trainer_resources={"CPU": 0},
        ),
    )
    tuner = Tuner(
        trainer,
        param_space={"params": {"max_depth": tune.choice(list(_DEPTHS))}},
        tune_config=TuneConfig(
            metric=_LOSS, mode="min", num_samples=options.trials, max_concurrent_trials=options.at_once
        ),
        run_config=RunConfig(**storage("tune")),
    )
    results = tuner.fit()
    if results.num_errors:
        return 1
    best = results.get_best_result()
    depth = best.config["params"]["max_depth"]
    print(json.dumps({"trials": len(results), "max_depth": depth, "loss": best.metrics[_LOSS]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
