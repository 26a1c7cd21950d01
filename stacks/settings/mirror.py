"""A site's own copies of what upstreams publish."""

from pathlib import Path

from components.artifacts import Mirror
from stacks.settings.model import SettingsModel


class MirrorSettings(SettingsModel):
    """The site's copies of upstream files and images."""

    artifacts: str | None = None
    """Folder (a path like kubeconfig) or https URL of the files, including charts. Default: upstream."""
    images: str | None = None
    """Prefix that replaces the registry host of each image, also in charts, such as registry.example.org/mirror.
    Default: upstream. Images that the site builds are configured with their workloads.
    """
    verify: bool = True
    """Require the catalogue's digests for files. Set to false for files that were rendered and not copied."""

    def mirror(self, base: Path) -> Mirror:
        """Return the mirror as the layers see it. base: the folder that a relative folder counts from."""
        artifacts = self.artifacts
        if artifacts is not None and "://" not in artifacts:
            artifacts = str(resolve_path(artifacts, base))
        where = artifacts.rstrip("/") if artifacts else None
        images = self.images.rstrip("/") if self.images else None
        return Mirror(artifacts=where, charts=where, images=images, verify=self.verify)


def resolve_path(path: str, base: Path) -> Path:
    """Return a path of the settings as an absolute one: from the home folder (~), else from `base`."""
    return base / Path(path).expanduser()
