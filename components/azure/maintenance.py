"""Weekly windows for AKS's automatic upgrades of a cluster and its nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_azure_native import containerservice

from components.azure.scope import ResourceScope

KUBERNETES: Final = "aksManagedAutoUpgradeSchedule"
NODE_OS: Final = "aksManagedNodeOSUpgradeSchedule"
"""Names that AKS requires for the window of a kind of upgrade (learn.microsoft.com/azure/aks/planned-maintenance)."""

_PLANNED_IMAGES: Final = ("NodeImage", "SecurityPatch")
"""Channels for node images that respect a window. Ubuntu's own upgrades do not."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Hours of a week.

    day: in Azure's notation.
    start: such as 02:00.
    hours: 4 to 24.
    weeks: number of weeks between windows.
    utc_offset: of the day and the start, such as +01:00.
    """

    day: str
    start: str
    hours: int
    weeks: int
    utc_offset: str


@dataclass(frozen=True, kw_only=True)
class MaintenanceWindowsArgs:
    """names: of the windows, from `maintenance_windows`."""

    cluster: str
    scope: ResourceScope
    names: Sequence[str]
    window: Window


class MaintenanceWindows(pulumi.ComponentResource):
    """Limit AKS's automatic upgrades to some hours of the week.

    AKS does not guarantee it, and ignores the window for urgent upgrades.
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
    """Return the names of the windows that two upgrade channels need. The channels have AKS's names."""
    found = [KUBERNETES] if kubernetes != "none" else []
    return [*found, NODE_OS] if node_os in _PLANNED_IMAGES else found
