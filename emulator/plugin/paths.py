"""Property paths as the engine writes them: `spec.containers[0].image`, `metadata.annotations["a.b/c"]`, `spec.x[*].y`.

Source of the grammar: the Pulumi SDK, `go/common/resource/property_path.go`.
"""

from __future__ import annotations

from emulator.plugin.errors import ProviderError

Path = tuple[str | int, ...]
WILDCARD = "*"


def render(path: Path) -> str:
    """Write a path; keys with a dot, a quote or a bracket are quoted."""
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
    """Read a path; `[*]` and a key `*` become the wildcard. Raises ProviderError when it is malformed."""
    parts: list[str | int] = []
    rest = text
    while rest:
        if rest[0] == ".":
            rest = rest[1:]
            if not rest or rest[0] == ".":
                raise ProviderError(f"the property path {text!r} has an empty part")
        elif rest.startswith('["'):
            key, rest = _quoted(text, rest[2:])
            parts.append(key)
        elif rest[0] == "[":
            index, closed, rest = rest[1:].partition("]")
            if not closed or not (index == WILDCARD or index.isdigit()):
                raise ProviderError(
                    f"the property path {text!r} has a bad index: a number, * or a quoted key is allowed"
                )
            parts.append(WILDCARD if index == WILDCARD else int(index))
        else:
            end = min((at for at in (rest.find("."), rest.find("[")) if at >= 0), default=len(rest))
            parts.append(rest[:end])
            rest = rest[end:]
    return tuple(parts)


def _quoted(text: str, rest: str) -> tuple[str, str]:
    key = ""
    at = 0
    while at < len(rest):
        if rest[at] == "\\" and at + 1 < len(rest):
            key += rest[at + 1]
            at += 2
            continue
        if rest[at] == '"':
            if rest[at + 1 : at + 2] != "]":
                break
            return key, rest[at + 2 :]
        key += rest[at]
        at += 1
    raise ProviderError(f"the property path {text!r} has a quoted key that does not end")


def contains(outer: Path, inner: Path) -> bool:
    """Tell whether `inner` is `outer` or lies below it; wildcards of `outer` match any key or index."""
    return len(outer) <= len(inner) and all(
        mine in (WILDCARD, theirs) for mine, theirs in zip(outer, inner, strict=False)
    )
