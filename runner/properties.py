"""Properties as the engine writes them: their paths, and marks for values that are not plain data.

Paths look like `spec.containers[0].image`, `metadata.annotations["a.b/c"]`, `spec.x[*].y` (Pulumi SDK,
`go/common/resource/property_path.go`).
"""

import re
from typing import Final

Path = tuple[str | int, ...]
WILDCARD: Final = "*"

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
"""Key of an object that is a secret, an asset or the like (Pulumi SDK, `go/common/resource/sig/sig.go`)."""
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
"""The signature of a secret."""
UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""An unknown text."""
UNKNOWNS: Final = frozenset(
    {
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # boolean
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)
"""Unknown values of each type (Pulumi SDK, `go/common/resource/plugin/rpc.go`)."""

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


def render(path: Path) -> str:
    """Return a path as text."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif any(character in part for character in '."[]'):
            escaped = part.replace('"', '\\"')
            text += f'["{escaped}"]'
        else:
            text += f".{part}" if text else part
    return text


def contains(outer: Path, inner: Path) -> bool:
    """Return whether `inner` is `outer` or is below it. Wildcards of `outer` match any key or index."""
    return len(outer) <= len(inner) and all(
        mine in (WILDCARD, theirs) for mine, theirs in zip(outer, inner, strict=False)
    )
