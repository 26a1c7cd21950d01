"""Property paths in the engine's notation: `spec.containers[0].image`, `metadata.annotations["a.b/c"]`, `spec.x[*].y`.

Source of the grammar: the Pulumi SDK, `go/common/resource/property_path.go`.
"""

from __future__ import annotations

import re

from emulator.plugin.errors import ProviderError

Path = tuple[str | int, ...]
WILDCARD = "*"
_PART = re.compile(r'\[(\d+|\*)\]|\["((?:[^"\\]|\\.)*)"\]|([^.\[]+)')


def render(path: Path) -> str:
    """Return a path as text; keys with a dot, a quote or a bracket are quoted."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        elif any(character in part for character in '."[]'):
            escaped = part.replace('"', '\\"')
            out += f'["{escaped}"]'
        else:
            out += f".{part}" if out else part
    return out


def parse(text: str) -> Path:
    """Return the path in a text; `[*]` and a key `*` become the wildcard. Raises ProviderError if it is malformed."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        found = _PART.match(text, at + (text[at] == "." and at > 0))
        if found is None:
            raise ProviderError(
                f"the property path {text!r} is malformed from {text[at:]!r} on. Use keys separated by dots, "
                '[number], [*] and ["key"]'
            )
        index, quoted, key = found.groups()
        if index is not None:
            parts.append(WILDCARD if index == WILDCARD else int(index))
        else:
            parts.append(key or re.sub(r"\\(.)", r"\1", quoted))
        at = found.end()
    return tuple(parts)


def contains(outer: Path, inner: Path) -> bool:
    """Tell whether `inner` is `outer` or below it; wildcards of `outer` match any key or index."""
    return len(outer) <= len(inner) and all(
        mine in (WILDCARD, theirs) for mine, theirs in zip(outer, inner, strict=False)
    )
