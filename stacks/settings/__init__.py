"""A stack's settings: one typed tree for each target, and the only place where defaults stand.

A tree mirrors the stack's configuration: each class is a section, each field a key in camelCase. Types are strict (a
boolean is not a number, a number is not a string) and unknown keys are errors. The class of a section checks its own
values. `stacks.validation` or the target that owns the sections checks what spans several sections.
"""

from stacks.settings.gpu import GpuSettings
from stacks.settings.health import HealthSettings
from stacks.settings.kubernetes import ApiSettings
from stacks.settings.mirror import MirrorSettings
from stacks.settings.mlops import MlopsSettings
from stacks.settings.model import SettingsModel
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.nvshare import NvshareSettings
from stacks.settings.recovery import RecoverySettings
from stacks.settings.samples import SamplesSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import QueueingSettings, TeamSettings, TenancySettings
from stacks.settings.volcano import VolcanoSettings
from stacks.settings.workloads import WorkloadsSettings


class PlatformSettings(SettingsModel):
    """Configuration of the layers above the cluster, on every target. Each target adds its own sections."""

    target: str
    """Where the platform is installed."""
    kubernetes: ApiSettings = ApiSettings()
    gpu: GpuSettings = GpuSettings()
    nvshare: NvshareSettings = NvshareSettings()
    scheduling: SchedulingSettings = SchedulingSettings()
    queueing: QueueingSettings = QueueingSettings()
    tenancy: TenancySettings = TenancySettings()
    teams: tuple[TeamSettings, ...] = ()
    """Teams that share the cluster."""
    recovery: RecoverySettings = RecoverySettings()
    volcano: VolcanoSettings = VolcanoSettings()
    health: HealthSettings = HealthSettings()
    workloads: WorkloadsSettings = WorkloadsSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    mlops: MlopsSettings = MlopsSettings()
    mirror: MirrorSettings = MirrorSettings()
    samples: SamplesSettings = SamplesSettings()
