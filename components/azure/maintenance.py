"""When AKS may upgrade a cluster and its nodes by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_azure_native import containerservice

from components.azure.scope import ResourceScope

KUBERNETES: Final = "aksManagedAutoUpgradeSchedule"
NODE_OS: Final = "aksManagedNodeOSUpgradeSchedule"
"""The names by which AKS finds the window of a kind of upgrade (learn.microsoft.com/azure/aks/planned-maintenance)."""

_PLANNED_IMAGES: Final = ("NodeImage", "SecurityPatch")
"""Channels of node systems that keep to a window; what Ubuntu installs by itself does not."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Hours of a week.

    day: as Azure names it. start: as 02:00. hours: 4 to 24. weeks: from one window to the next.
    utc_offset: of the day and the start, as +01:00.
    """

    day: str
    start: str
    hours: int
    weeks: int
    utc_offset: str


@dataclass(frozen=True, kw_only=True)
class MaintenanceWindowsArgs:
    """cluster: its name. names: of the windows, from `maintenance_windows`."""

    cluster: str
    scope: ResourceScope
    names: Sequence[str]
    window: Window


class MaintenanceWindows(pulumi.ComponentResource):
    """Keep the upgrades that AKS makes by itself to some hours of the week.

    As far as AKS can: it promises to try, and breaks the window for what is urgent.
    """

    def __init__(self, name: str, args: MaintenanceWindowsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:MaintenanceWindows", name, None, opts)
        window = args.window
        for config in args.names:
            containerservice.MaintenanceConfiguration(
                config,
                config_name=config,
                resource_name_=args.cluster,
                resource_group_name=args.scope.resource_group,
                maintenance_window=containerservice.MaintenanceWindowArgs(
                    duration_hours=window.hours,
                    schedule=containerservice.ScheduleArgs(
                        weekly=containerservice.WeeklyScheduleArgs(day_of_week=window.day, interval_weeks=window.weeks)
                    ),
                    start_time=window.start,
                    utc_offset=window.utc_offset,
                ),
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def maintenance_windows(kubernetes: str, node_os: str) -> Sequence[str]:
    """Return the windows that two upgrade channels, as AKS names them, need."""
    found = [KUBERNETES] if kubernetes != "none" else []
    return [*found, NODE_OS] if node_os in _PLANNED_IMAGES else found
