"""A VM's first boot: cloud-init user data, declared from typed arguments; the steps are shell programs beside it."""

from __future__ import annotations

from components.openstack.first_boot.arguments import DockerArgs, FirstBootArgs, GpuStackArgs, HostKey, KindArgs
from components.openstack.first_boot.compatibility import conflicts
from components.openstack.first_boot.kept import KeptUserData, KeptUserDataArgs
from components.openstack.first_boot.user_data import user_data

__all__ = [
    "DockerArgs",
    "FirstBootArgs",
    "GpuStackArgs",
    "HostKey",
    "KeptUserData",
    "KeptUserDataArgs",
    "KindArgs",
    "conflicts",
    "user_data",
]
