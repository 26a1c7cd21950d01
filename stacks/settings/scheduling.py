"""How pods are ranked."""

from __future__ import annotations

from stacks.settings.model import SettingsModel


class SchedulingSettings(SettingsModel):
    """How pods are ranked."""

    priority_classes: bool = True
    """Make the platform's three priority classes; off where the cluster has them already."""
