"""The OSS MLOps platform on a cluster."""

from __future__ import annotations

from typing import Any

from components.kubernetes.cluster import Cluster
from components.mlops.platform import MlopsArgs, MlopsPlatform
from stacks.inputs import StackInputs
from stacks.layers.releases import Releases


def install(inputs: StackInputs[Any], releases: Releases, cluster: Cluster) -> None:
    """Register it where the settings want it."""
    settings = inputs.settings.mlops
    if releases.mlops is not None:
        args = MlopsArgs(manifests=releases.mlops, forwarder=settings.forwarder, registry=settings.local_registry)
        MlopsPlatform("mlops", args, cluster.options())
