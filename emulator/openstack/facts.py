"""The initial content of the local OpenStack (`facts.yaml`)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

FILE: Final = Path(__file__).with_name("facts.yaml")


@cache
def facts() -> dict[str, Any]:
    """Return the content of the file."""
    return dict(yaml.safe_load(FILE.read_text()))
