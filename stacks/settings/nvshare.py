"""Sharing each GPU among several pods."""

from typing import Annotated

from pydantic import Field

from components.nodes import nvshare
from stacks.settings.model import SettingsModel


class NvshareVerificationSettings(SettingsModel):
    """A test: two matrix multiplications share one GPU.

    It needs access to PyPI. `./mlbatch status` shows the result.
    """

    enabled: bool = False
    """Run the test once. It needs a GPU with 10 GB of memory."""
    timeout_seconds: Annotated[int, Field(ge=60, le=7200)] = 1200
    """Maximum seconds for each multiplication. In the tutorial they took 240."""


class NvshareSettings(SettingsModel):
    """NVshare, which lets several pods share the single GPU of a node, each with all of its memory.

    Jobs request one nvshare.com/gpu for each pod, and quotas count it. In teams' namespaces, nvidia.com/gpu is refused.
    """

    enabled: bool = False
    """Install NVshare. Each node must have one GPU that is not shared in another way."""
    virtual_gpus: Annotated[int, Field(ge=2, le=100)] = nvshare.VIRTUAL_GPUS
    """Number of pods that share a GPU."""
    verification: NvshareVerificationSettings = NvshareVerificationSettings()
