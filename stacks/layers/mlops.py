"""The OSS MLOps platform on a cluster."""

from typing import Any

from components.kubernetes.cluster import Cluster
from components.mlops.platform import MlopsArgs, MlopsPlatform
from components.passwords import MLOPS, password
from stacks.config.inputs import StackInputs
from stacks.config.secrets import MLOPS_PASSWORD
from stacks.layers.releases import Releases


def install(inputs: StackInputs[Any], releases: Releases, cluster: Cluster) -> MlopsPlatform | None:
    """Register it where the settings want it."""
    settings = inputs.settings.mlops
    if releases.mlops is None:
        return None
    args = MlopsArgs(
        manifests=releases.mlops,
        forwarder=settings.forwarder,
        registry=settings.local_registry,
        password=None
        if settings.upstream_access
        else cluster.data_password or password(MLOPS, inputs.secrets.get(MLOPS_PASSWORD)),
    )
    return MlopsPlatform("mlops", args, cluster.options())
