"""How pods are ranked."""

from __future__ import annotations

from stacks.settings.model import SettingsModel


class SchedulingSettings(SettingsModel):
    """How pods are ranked. priority_classes: make the platform's three; off where the cluster has them already."""

    priority_classes: bool = True
