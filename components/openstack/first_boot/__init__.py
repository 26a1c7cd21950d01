"""A VM's first boot: cloud-init user data from typed arguments. The steps are shell programs in this folder."""

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
