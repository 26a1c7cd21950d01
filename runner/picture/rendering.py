"""Render HTML and SVG from templates, `*.j2` beside the code. The library escapes texts, so a name cannot be markup."""

import re
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_UNSEEN: Final = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)
"""Characters that are invalid in a document, or that reorder the text around them."""


def render(template: str, **values: object) -> str:
    """Return a document. template: path from the repository's root."""
    return _ENVIRONMENT.get_template(template).render(values)


def _seen(value: object) -> object:
    """Return a value's text without invisible characters. The markup of macros was cleaned inside them."""
    if hasattr(value, "__html__"):
        return value
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", str(value).encode(errors="replace").decode())


_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parents[2]),
    autoescape=True,
    finalize=_seen,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
