"""Trains a small network to tell clothes apart (Fashion MNIST), on all nodes of a Ray cluster.

The first process prints a line of JSON with the mean loss of each epoch.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ray
import torch
from ray.train import ScalingConfig, get_context
from ray.train.torch import TorchTrainer, get_device, prepare_data_loader, prepare_model
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import FashionMNIST
from torchvision.transforms import ToTensor

_PIXELS, _WIDTH, _KINDS = 28 * 28, 512, 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Train on the Ray cluster that there is, or on one of this machine; return the process's exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--folder", default="/tmp/data", help="for the pictures, which are fetched")  # noqa: S108
    parser.add_argument("--gpu", action="store_true", help="give each worker a GPU")
    options = parser.parse_args(arguments)
    ray.init()
    scaling = ScalingConfig(
        num_workers=options.workers,
        use_gpu=options.gpu,
        resources_per_worker={"CPU": 1, **({"GPU": 1} if options.gpu else {})},
        trainer_resources={"CPU": 0},
    )
    TorchTrainer(train, train_loop_config=vars(options), scaling_config=scaling).fit()
    return 0


def train(config: Mapping[str, Any]) -> None:
    """Train in one of the workers' processes."""
    torch.manual_seed(1)
    pictures = FashionMNIST(root=config["folder"], train=True, download=True, transform=ToTensor())
    batches = prepare_data_loader(DataLoader(pictures, batch_size=config["batch"], shuffle=True))
    layers = (nn.Linear(_PIXELS, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _KINDS))
    model = prepare_model(nn.Sequential(nn.Flatten(), *layers))
    optimizer, difference = torch.optim.SGD(model.parameters(), lr=config["learning_rate"]), nn.CrossEntropyLoss()
    many = get_context().get_world_size() > 1
    for epoch in range(config["epochs"]):
        if many:
            batches.sampler.set_epoch(epoch)
        losses = torch.zeros(2, device=get_device())
        for images, kinds in batches:
            loss = difference(model(images), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses += torch.stack((loss.detach(), torch.ones_like(loss)))
        if many:
            torch.distributed.all_reduce(losses)
        if get_context().get_world_rank() == 0:
            print(json.dumps({"epoch": epoch, "loss": float(losses[0] / losses[1])}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
