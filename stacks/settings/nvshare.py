"""Sharing each GPU among several pods."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from components.nodes import nvshare
from stacks.settings.model import SettingsModel


class NvshareVerificationSettings(SettingsModel):
    """Two matrix multiplications that share one GPU, with PyPI in reach. `make status` says how they ended."""

    enabled: bool = False
    """Run them once; they need a GPU with 10 GB of memory."""
    timeout_seconds: Annotated[int, Field(ge=60, le=7200)] = 1200
    """How many seconds each may take. In the tutorial they took 240."""


class NvshareSettings(SettingsModel):
    """NVshare, by which several pods share the one GPU of a node, each with all of its memory.

    Jobs then ask for nvshare.com/gpu, one for each pod, and so do quotas; nvidia.com/gpu is refused in teams.
    """

    enabled: bool = False
    """Install it, on nodes with one GPU each that are shared in no other way."""
    virtual_gpus: Annotated[int, Field(ge=2, le=100)] = nvshare.VIRTUAL_GPUS
    """How many pods share a GPU."""
    verification: NvshareVerificationSettings = NvshareVerificationSettings()
