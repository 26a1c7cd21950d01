"""PersistentVolumeClaims: of workloads, which remain when the workload is removed, and existing ones."""

from collections.abc import Iterator
from typing import ClassVar

from stacks.config.errors import ConfigError, Path
from stacks.settings.model import SettingsModel, SomeBytes
from stacks.settings.names import ClassName, is_label, is_subdomain


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
