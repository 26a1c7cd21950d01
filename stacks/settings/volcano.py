"""Volcano, the gang scheduler for jobs without a team."""

from collections.abc import Iterator
from typing import Annotated, Final

from components import catalogue
from components.scheduling import volcano
from components.scheduling.volcano import LauncherView
from stacks.config.errors import ConfigError, Path, listed
from stacks.settings.model import SettingsModel, choice
from stacks.settings.names import is_label

_VERSIONS = catalogue.chart_versions("volcano")
_OWN_QUEUES: Final = ("default", "root")
"""Those that the scheduler makes (volcano-sh/volcano, pkg/scheduler/cache/cache.go)."""


class VolcanoSettings(SettingsModel):
    """Volcano, a batch scheduler.

    Its jobs run in mlbatch:workloads.namespace, without queues. Leave room for them in the teams' quotas.
    """

    enabled: bool = False
    """Install Volcano."""
    version: Annotated[str, choice("Volcano version", _VERSIONS)] = _VERSIONS[0]
    """Version of Volcano."""
    queue: str = volcano.QUEUE
    """Name of the Volcano queue for the platform's jobs."""
    launcher_view: LauncherView = LauncherView.PODS
    """What the launcher of an MPI job can read in that namespace: `pods`, or `all` except Secrets and roles."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.queue in _OWN_QUEUES:
            yield ConfigError(
                (*path, "queue"),
                "Volcano itself creates a queue with this name when it starts",
                f"write another name, or remove the key; the default is {volcano.QUEUE}",
                expected=f"any name but {listed(_OWN_QUEUES)}",
            )
        if not is_label(self.queue):
            yield ConfigError(
                (*path, "queue"),
                "Kubernetes would reject this name",
                "for example workloads",
                expected="at most 63 of a-z, 0-9 and -, with a letter or digit first and last",
            )
