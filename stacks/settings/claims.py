"""A workload's own volume. Its claim remains when the workload is removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from stacks.config.errors import ConfigError, Path
from stacks.settings.model import SettingsModel, SomeBytes
from stacks.settings.names import ClassName, is_subdomain


class ClaimSettings(SettingsModel):
    """A PersistentVolumeClaim.

    by_itself: the name without the key, for the fix of an error.
    """

    by_itself: ClassVar[str]

    name: str | None = None
    """Name of the claim."""
    storage_class: ClassName | None = None
    """StorageClass of volumes that several nodes can mount. Default: the cluster's class for shared files."""
    size: SomeBytes
    """Size of the volume in bytes."""

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.name is not None and not is_subdomain(self.name):
            yield ConfigError(
                (*path, "name"),
                "Kubernetes would reject this name",
                f"write another name, or remove the key; the default is {self.by_itself}",
                expected="a-z, 0-9, - and ., with a letter or digit first and last",
            )
