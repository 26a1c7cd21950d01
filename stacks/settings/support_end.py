"""Whether upstream's support of a version has ended or ends soon."""

from datetime import date, timedelta
from typing import Final

_NOTICE: Final = timedelta(days=60)
"""Time before the end of support. AKS itself sends a notice only 30 days before it."""


def today() -> date:
    """Return the day that the end of support is compared with."""
    return date.today()


def ends_soon(end: date) -> bool:
    """Return whether support has ended, or ends within 60 days. end: its last day."""
    return today() + _NOTICE > end
