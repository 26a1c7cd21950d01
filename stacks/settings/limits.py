"""Bounds of numbers that several sections have."""

from typing import Final

MOST_NODES: Final = 1000
WEEK: Final = 7 * 24 * 3600
"""Seconds."""
MOST_GPUS: Final = 16
"""GPUs in one machine: HGX and DGX systems have 8 or 16."""
