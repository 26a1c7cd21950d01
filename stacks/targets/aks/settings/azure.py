"""Section `azure` of target `aks`."""

from collections.abc import Iterator

from stacks.config.errors import ConfigError, Path
from stacks.targets.aks.settings import checks
from stacks.targets.aks.settings.options import AzureOptions


class AzureSettings(AzureOptions):
    """Resources in Azure."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        return checks.check(self)
