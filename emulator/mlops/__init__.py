"""The stub of the OSS MLOps platform in the local environment."""

from __future__ import annotations

from emulator.mlops.report import report
from emulator.mlops.stub import fill

__all__ = ["fill", "report"]
