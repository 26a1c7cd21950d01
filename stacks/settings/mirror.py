"""A site's own copies of what upstreams publish."""

from __future__ import annotations

from pathlib import Path

from components.artefacts import Mirror
from stacks.settings.section import Section


class MirrorSettings(Section):
    """A site's own copies of upstream's files and images.

    artefacts: folder (as for kubeconfig) or https address that holds them, charts among them. Default: upstream.
    images: prefix that takes the place of the registry host of each image, such as registry.example.org/mirror; charts
    are told of it too. Default: upstream. Images that a site builds itself are named whole, where they are used.
    verify: whether files must have the catalogue's digests; off for files that were rendered rather than copied.
    """

    artefacts: str | None = None
    images: str | None = None
    verify: bool = True

    def mirror(self, base: Path, fallback: str | None = None) -> Mirror:
        """Return the mirror as the layers see it.

        base: the folder that a relative folder counts from. fallback: a folder of manifest files, taken as they are,
        for settings that name no mirror.
        """
        images = self.images.rstrip("/") if self.images else None
        if self.artefacts is None and fallback:
            return Mirror(artefacts=str(located(fallback, base)), images=images, verify=False)
        artefacts = self.artefacts
        if artefacts is not None and "://" not in artefacts:
            artefacts = str(located(artefacts, base))
        return Mirror(
            artefacts=artefacts.rstrip("/") if artefacts else None,
            charts=artefacts.rstrip("/") if artefacts else None,
            images=images,
            verify=self.verify,
        )


def located(path: str, base: Path) -> Path:
    """Return a path of the settings as an absolute one: from the home folder (~), else from `base`."""
    return base / Path(path).expanduser()
