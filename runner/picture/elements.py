"""Elements of HTML and SVG. Texts are escaped by the library that writes them, so that no name can be markup."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
"""What no document may hold, or what would turn the letters around that follow."""


def element(tag: str, *children: Element | str | None, **attributes: object) -> Element:
    """Return an element. Underscores in the names of attributes stand for hyphens; `class_` is `class`."""
    made = Element(tag, {name.rstrip("_").replace("_", "-"): clean(str(value)) for name, value in attributes.items()})
    for child in children:
        if isinstance(child, str):
            _append_text(made, clean(child))
        elif child is not None:
            made.append(child)
    return made


def clean(text: str) -> str:
    """Return a text without what is not seen."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text.encode(errors="replace").decode())


def written(root: Element) -> str:
    """Return a whole document."""
    return "<!DOCTYPE html>\n" + ElementTree.tostring(root, encoding="unicode", method="html") + "\n"


def _append_text(parent: Element, text: str) -> None:
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text
