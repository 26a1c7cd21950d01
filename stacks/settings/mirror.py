"""A site's own copies of what upstreams publish."""

from __future__ import annotations

from pathlib import Path

from components.artifacts import Mirror
from stacks.settings.model import SettingsModel


class MirrorSettings(SettingsModel):
    """A site's own copies of upstream's files and images."""

    artifacts: str | None = None
    """Folder (as for kubeconfig) or https address that holds the files, charts among them; default upstream."""
    images: str | None = None
    """Prefix that takes the place of the registry host of each image, such as registry.example.org/mirror; charts are
    told of it too. Default upstream. Images that a site builds itself are named whole, where they are used.
    """
    verify: bool = True
    """Whether files must have the catalogue's digests; off for files that were rendered rather than copied."""

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
