"""Azure's checks of the GPU nodes, in addition to those of every target."""

from collections.abc import Mapping

from components.azure import catalogue
from stacks.settings.health import CheckSettings, HealthSettings
from stacks.settings.workloads import Tag


class NodeCheckSettings(CheckSettings):
    """Azure's node health checks."""

    image_tag: Tag = catalogue.NODE_HEALTH_CHECKS.tag
    """Tag of mcr.microsoft.com/aznhc/aznhc-nv."""
    kernel_log: bool = True
    """Also search the host's syslog for GPU and link errors."""


class AksHealthSettings(HealthSettings):
    """Health checks of the GPU nodes. All are off by default."""

    node_check: NodeCheckSettings = NodeCheckSettings()

    def checks(self) -> Mapping[str, CheckSettings]:
        return {"nodeCheck": self.node_check, **super().checks()}
