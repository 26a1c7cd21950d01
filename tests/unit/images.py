"""Images that no registry serves any more, from retired_images.yaml."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from components.images import Reference

RETIRED = tuple(yaml.safe_load((Path(__file__).parent / "retired_images.yaml").read_text()))


def retired(images: Iterable[str]) -> list[str]:
    """Return the references of a registry that no longer serves them."""
    return [image for image in images if str(Reference.parse(image).located()).startswith(RETIRED)]
