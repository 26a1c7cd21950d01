"""Which nodes of an AKS cluster a platform service runs on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GPU_NODES: Final[Mapping[str, str]] = {"kubernetes.azure.com/accelerator": "nvidia"}
"""AKS gives this label to the nodes of every pool with NVIDIA GPUs."""

SYSTEM_NODES: Final[Mapping[str, str]] = {"kubernetes.azure.com/mode": "system"}
"""AKS gives this label to the nodes of system pools."""
