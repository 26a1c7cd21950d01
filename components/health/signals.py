"""The signals of broken GPUs and links, from signals.yaml."""

from __future__ import annotations

from typing import Final

from components.health.repair_state import Signal
from components.tables import Table


class _Signals(Table):
    signals: tuple[Signal, ...]


SIGNALS: Final = _Signals.load(__name__).signals
