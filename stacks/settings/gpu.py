"""What makes GPUs, InfiniBand ports and local disks of the nodes usable."""

import re
from collections.abc import Iterator
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field

from components import catalogue
from components.compatibility import WITHOUT_CDI
from components.nodes import nvme_scratch
from components.nodes.network_operator import DevicePlugin
from components.nodes.nvme_scratch import Filesystem
from stacks.config.errors import ConfigError, Path, key
from stacks.settings.model import SettingsModel, choice, form, reject

_GPU_OPERATOR: Final = catalogue.chart_versions("gpu-operator")
_NETWORK_OPERATOR: Final = catalogue.chart_versions("network-operator")
_FEATURE_DISCOVERY: Final = catalogue.chart_versions("node-feature-discovery")


NetworkDriverVersion: TypeAlias = Annotated[
    str,
    form(
        r"(doca[0-9]+(\.[0-9]+)+-)?[0-9]{2}\.[0-9]{2}-[0-9]+(\.[0-9]+)+-[0-9]+",
        "an image tag without the operating system suffix, such as doca3.3.0-26.01-1.0.0.0-0 or 26.01-1.0.0.0-0",
        "this is not a version of NVIDIA's DOCA-OFED driver",
        "copy a tag of nvcr.io/nvidia/mellanox/doca-driver without its operating system suffix, or remove the key to "
        "use the operator's default",
    ),
]


DriverVersion: TypeAlias = Annotated[
    str,
    form(
        r"[1-9][0-9]{2}\.[0-9]{2,3}(\.[0-9]{2})?",
        "three numbers with dots, or two, such as 580.126.20",
        "this is not a version of NVIDIA's data center driver",
        "choose one from NVIDIA's list of drivers for the GPU operator, or remove the key; the default is the "
        "operator's own driver",
    ),
]


ScratchFolder: TypeAlias = Annotated[
    str,
    form(
        r"/(pv-disks|mnt)(/[A-Za-z0-9][-A-Za-z0-9_.]*)+",
        "a folder below /pv-disks or /mnt, where the pool's disks are mounted, written without .. and doubled /",
        "teams' pods may mount this folder of their node, but it is outside the pool's scratch disks",
        f"remove the key; the default is {nvme_scratch.FOLDER}",
    ),
]


def _expression(value: str) -> str:
    try:
        matches_nothing = re.compile(value).fullmatch("") is None
    except re.error as error:
        reject(
            f"this is not a regular expression: {error}",
            "replace the invalid character with a dot",
            expected="a regular expression of Python's re module",
        )
    if not matches_nothing:
        reject(
            "this also matches disks without a model, such as network volumes",
            "use the model from `lsblk --output NAME,MODEL` on a node",
            expected="an expression that starts with the model of the local disks",
        )
    return value


DiskModel: TypeAlias = Annotated[str, AfterValidator(_expression)]


class FabricSettings(SettingsModel):
    """InfiniBand between the nodes."""

    enabled: bool = True
    """Install NVIDIA's network operator, which installs the InfiniBand driver and offers the ports to pods."""
    operator_version: Annotated[str, choice("network operator version", _NETWORK_OPERATOR)] = _NETWORK_OPERATOR[0]
    """Version of NVIDIA's network operator."""
    driver_version: NetworkDriverVersion | None = None
    """Version of the InfiniBand driver (DOCA-OFED, formerly MOFED): its image tag without the suffix for the node's
    operating system. Default: the operator's choice.
    """
    device_plugin: DevicePlugin = DevicePlugin.SRIOV
    """`sriov`: a pod gets its own ports, requested as nvidia.com/mlnxnics, and quotas count them. `shared`: a pod that
    requests rdma/rdma_shared_device_a gets all ports, and no quota counts them.
    """
    wait_minutes: Annotated[int, Field(ge=1, le=120)] = 30
    """Maximum minutes to wait for the driver on the first nodes."""


class ScratchSettings(SettingsModel):
    """A scratch file system on the local NVMe disks of each GPU node."""

    enabled: bool = False
    """Create the file system."""
    folder: ScratchFolder = nvme_scratch.FOLDER
    """Mount point on the node. Each pod of a team can mount its own folder below it, and no other path of the node."""
    filesystem: Filesystem = Filesystem.EXT4
    """File system type."""
    disk_model: DiskModel | None = None
    """Regular expression for the models of these disks, as `lsblk --output NAME,MODEL` prints them. Other disks are not
    touched.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.enabled and self.disk_model is None:
            yield ConfigError(
                (*path, "diskModel"),
                "the disks to format are not set",
                "set it to a regular expression of the models from `lsblk --output NAME,MODEL` on a node",
            )


class GpuSettings(SettingsModel):
    """Drivers and device plugins of the GPU nodes."""

    feature_discovery: bool = True
    """Install Node Feature Discovery. Set to false if the cluster has it."""
    operator: bool = True
    """Install NVIDIA's GPU operator. Set to false if the cluster has it, or if its nodes come with drivers and a device
    plugin.
    """
    operator_version: Annotated[str, choice("GPU operator version", _GPU_OPERATOR)] = _GPU_OPERATOR[0]
    """Version of NVIDIA's GPU operator."""
    install_driver: bool = True
    """Let the operator install NVIDIA's driver. Set to false if the nodes come with it."""
    install_toolkit: bool = True
    """Let the operator configure NVIDIA's container runtime. Set to false if it is the nodes' default runtime."""
    driver_version: DriverVersion | None = None
    """Version of NVIDIA's data center driver. Default: the operator's choice."""
    drain_for_drivers: bool = False
    """Let a new driver version end the jobs of one node after the other. If false, a node keeps its driver until an
    administrator deletes its driver pod.
    """
    feature_discovery_version: Annotated[str, choice("feature discovery version", _FEATURE_DISCOVERY)] = (
        _FEATURE_DISCOVERY[0]
    )
    """Version of Node Feature Discovery."""
    fabric: FabricSettings = FabricSettings()
    nvme_scratch: ScratchSettings = ScratchSettings()

    @property
    def by_mounts(self) -> bool:
        """Whether the operator's device plugin names a pod's GPUs by mounts, as this version has no better way."""
        return self.operator and self.operator_version in WITHOUT_CDI

    @property
    def brings_metrics(self) -> bool:
        """Whether the stack installs an operator whose metrics its own Prometheus finds by itself."""
        return self.operator

    @property
    def driver(self) -> str | None:
        """The driver that the nodes get, None if they already have one."""
        if not self.install_driver:
            return None
        return self.driver_version or catalogue.GPU_DRIVERS[self.operator_version]

    def check(self, path: Path) -> Iterator[ConfigError]:
        if not self.install_driver and self.driver_version is not None:
            yield ConfigError(
                (*path, "driverVersion"),
                "the nodes have their own driver, so this version would not be installed",
                f"remove the key, or set {key((*path, 'installDriver'))} to true on nodes without a driver",
            )


class ProvidedFabricSettings(FabricSettings):
    """InfiniBand between the nodes."""

    enabled: bool = False


class ProvidedGpuSettings(GpuSettings):
    """Drivers and device plugins of the GPU nodes."""

    feature_discovery: bool = False
    operator: bool = False
    fabric: ProvidedFabricSettings = ProvidedFabricSettings()
