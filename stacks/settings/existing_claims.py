"""PersistentVolumeClaims that the stack does not create."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.errors import ConfigError, Path
from stacks.settings.model import SettingsModel
from stacks.settings.names import is_label, is_subdomain


class ExistingClaimSettings(SettingsModel):
    """A PersistentVolumeClaim that the stack does not create, for workloads to mount."""

    name: str
    """Name of the claim. Workloads refer to it."""
    namespace: str
    """Namespace of the claim."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        for name, is_good in (("name", is_subdomain(self.name)), ("namespace", is_label(self.namespace))):
            if not is_good:
                yield ConfigError(
                    (*path, name),
                    "Kubernetes would reject this name",
                    "write the name as `kubectl get pvc --all-namespaces` shows it",
                    expected="a-z, 0-9 and -, with a letter or digit first and last, and in a claim's name also .",
                )
