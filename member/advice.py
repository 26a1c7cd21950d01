"""What a member can do about a message, from `advice.yaml`."""

import re
from dataclasses import dataclass
from functools import cache

from ask.messages import MOST, added
from components.tables import Table


@dataclass(frozen=True, kw_only=True)
class Advice:
    """message: a regular expression. action: what to do."""

    message: str
    action: str


class _Table(Table):
    advice: tuple[Advice, ...]


@cache
def _table() -> tuple[Advice, ...]:
    return _Table.load(__name__).advice


def action(message: str, name: str) -> str:
    """Return what to do about a message, empty without a matching entry."""
    found = (each.action for each in _table() if re.search(each.message, message, re.IGNORECASE))
    return next(found, "").replace("{name}", name)


def too_large(message: str) -> str:
    """Return what a job requests too much of, with amounts, from a message of Kueue. Empty if it may fit later."""
    found = MOST.search(message)
    if found is None:
        return ""
    return f"{added(found['before'], found['asked'])} {found['resource']}, the queue can get {found['most']}"
