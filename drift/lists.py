"""Match the items of two lists."""

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

Pair = tuple[int | None, int | None]


def pairs(left: Sequence[Any], right: Sequence[Any]) -> Iterator[Pair]:
    """Yield the indexes of items that belong together. None for an item that only one list has.

    If all items have names, items with the same name belong together. Otherwise equal items belong together, and the
    items between them are matched by position.
    """
    names, others = names_of(left), names_of(right)
    if names is not None and others is not None:
        yield from ((index, others.index(name) if name in others else None) for index, name in enumerate(names))
        yield from ((None, index) for index, name in enumerate(others) if name not in names)
        return
    matcher = SequenceMatcher(None, [_text(item) for item in left], [_text(item) for item in right], autojunk=False)
    for _, low, high, start, end in matcher.get_opcodes():
        both = min(high - low, end - start)
        yield from ((low + at, start + at) for at in range(both))
        yield from ((index, None) for index in range(low + both, high))
        yield from ((None, index) for index in range(start + both, end))


def names_of(values: Sequence[Any]) -> list[str] | None:
    """Return the names of a list's items, None if one has no name or two have the same."""
    names = [item.get("name") if isinstance(item, dict) else None for item in values]
    if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
        return [str(name) for name in names]
    return None


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
