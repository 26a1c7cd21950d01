"""Property paths as the engine writes them: `spec.containers[0].image`, `metadata.annotations["a.b/c"]`, `spec.x[*].y`.

Source of the grammar: the Pulumi SDK, `go/common/resource/property_path.go`.
"""

from __future__ import annotations

import re
from typing import Any, Final

Path = tuple[str | int, ...]
WILDCARD: Final = "*"

_PART: Final = re.compile(
    r"""
    \["(?P<quoted>(?:[^"\\]|\\.)*)"\]   # a key with a dot, a quote or a bracket in it
    | \[(?P<index>\d+|\*)\]
    | (?:^|\.)(?P<key>[^.\[]+)
    """,
    re.VERBOSE,
)


def parse(text: str) -> Path:
    """Parse a path. `[*]` and a key `*` become the wildcard. Raises ValueError if it is malformed."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None:
            raise ValueError(f"{text!r} is not a property path: {text[at:]!r} is neither a key nor an index")
        if found["quoted"] is not None:
            parts.append(re.sub(r"\\(.)", r"\1", found["quoted"]))
        elif found["index"] is not None:
            parts.append(WILDCARD if found["index"] == WILDCARD else int(found["index"]))
        else:
            parts.append(found["key"])
        at = found.end()
    return tuple(parts)


def render(part: str | int) -> str:
    """Return one part of a path, as written at the path's beginning."""
    if isinstance(part, int):
        return f"[{part}]"
    if any(character in part for character in '."[]'):
        escaped = part.replace('"', '\\"')
        return f'["{escaped}"]'
    return part


def contains(outer: Path, inner: Path) -> bool:
    """Return whether `inner` is `outer` or is below it. Wildcards of `outer` match any key or index."""
    return len(outer) <= len(inner) and all(
        mine in (WILDCARD, theirs) for mine, theirs in zip(outer, inner, strict=False)
    )


def touches(changed: Path, value: Any, path: Path) -> bool:
    """Return whether setting `changed` changes a path: at it, below it, or above it if the value contains it."""
    for mine, theirs in zip(changed, path, strict=False):
        if not (isinstance(mine, int) if theirs == WILDCARD else mine == theirs):
            return False
    return len(changed) >= len(path) or _has(value, path[len(changed) :])


def _has(value: Any, path: Path) -> bool:
    if not path:
        return True
    head, rest = path[0], path[1:]
    if head == WILDCARD:
        return isinstance(value, list) and any(_has(item, rest) for item in value)
    return isinstance(value, dict) and head in value and _has(value[head], rest)
