"""What every drawing is made of, in pixels: rows with a label, texts, and boxes with the patterns that fill them.

Nobody needs colours to read them: each team has a pattern of its own, and figures stand beside what they count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from runner.picture.elements import element

WIDTH: Final = 960
LEFT: Final = 230
"""Where what a row shows begins, right of its label."""
ROW: Final = 24
BOX: Final = 18
_SHAPES: Final[Sequence[tuple[str, Mapping[str, object]]]] = (
    ("path", {"d": "M0 8 8 0"}),
    ("path", {"d": "M0 4 8 4"}),
    ("circle", {"cx": 4, "cy": 4, "r": 1.6}),
    ("path", {"d": "M4 0 4 8"}),
    ("path", {"d": "M0 0 8 8"}),
    ("path", {"d": "M0 4 8 4M4 0 4 8"}),
    ("path", {"d": "M0 0 8 8M0 8 8 0"}),
    ("rect", {"x": 2, "y": 2, "width": 3, "height": 3}),
)
TEAMS: Final = len(_SHAPES)
"""How many teams are told apart by pattern; then patterns come again, and names still tell."""


def patterns() -> Element:
    """Return the definitions that the drawings fill with: one for each team, and what is lost."""
    made = [_pattern(f"team-{number}", tag, shape) for number, (tag, shape) in enumerate(_SHAPES)]
    made += [_pattern("lost", "path", {"d": "M0 0 8 8M0 8 8 0"}), _pattern("borrowed", "path", {"d": "M0 8 8 0"})]
    return element("svg", element("defs", *made), width=0, height=0, aria_hidden="true", class_="defs")


def of_team(order: Mapping[str, int], team: str) -> str:
    """Return the class of a box that is filled as a team's."""
    return f"team team-{order[team] % TEAMS}"


def box(kind: str, title: str, *, x: float, y: float, width: float, height: float) -> Element:
    """Return a box of a class, which says its title to whoever points at it."""
    place = {"x": x, "y": y, "width": width, "height": height}
    return element(
        "rect", element("title", title), class_=kind, **{name: round(value, 1) for name, value in place.items()}
    )


def label(name: str, y: float) -> Element:
    """Return the name of a row, cut where it is too long."""
    short = name if len(name) <= 30 else f"{name[:29]}…"
    return element("text", element("title", name), short, x=LEFT - 10, y=y + 17, class_="label")


def text(said: str, x: float, y: float) -> Element:
    """Return a text of a row."""
    return element("text", said, x=round(x, 1), y=round(y + 17, 1))


def drawing(title: str, rows: Sequence[Element], count: int) -> Element:
    """Return a drawing of so many rows; it says so where there are none."""
    height = max(1, count) * ROW + 4
    return element(
        "svg",
        element("title", title),
        *(rows if count else [text("none", 0, 0)]),
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="img",
        aria_label=title,
        xmlns="http://www.w3.org/2000/svg",
    )


def _pattern(name: str, tag: str, shape: Mapping[str, object]) -> Element:
    ground = element("rect", width=8, height=8, class_="ground")
    return element(
        "pattern", ground, element(tag, **shape), id=name, width=8, height=8, patternUnits="userSpaceOnUse", class_=name
    )
