"""The stub of the OSS MLOps platform in the local environment."""

from emulator.mlops.report import report
from emulator.mlops.stub import fill

__all__ = ["fill", "report"]
