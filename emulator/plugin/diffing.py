"""Differences between two property maps, and whether they replace the resource."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.plugin.errors import ProviderError
from runner.properties import Path, contains, parse, render

ADD, DELETE, UPDATE = "ADD", "DELETE", "UPDATE"


@dataclass(frozen=True, slots=True)
class Change:
    """A changed input. kind: ADD, DELETE or UPDATE. replaces: whether the engine must replace the resource."""

    kind: str
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes of an update. changes: by rendered property path."""

    changes: Mapping[str, Change]
    delete_before_replace: bool = False

    @property
    def replaces(self) -> list[str]:
        """The paths that force a replacement."""
        return [path for path, change in self.changes.items() if change.replaces]


def differences(
    before: Any,
    after: Any,
    equal: Callable[[Any, Any, Path], bool] = lambda before, after, path: bool(before == after),
    path: Path = (),
) -> Iterator[tuple[Path, str]]:
    """Yield each path where two values differ, with ADD, DELETE or UPDATE."""
    if equal(before, after, path):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in after.items():
            if key in before:
                yield from differences(before[key], value, equal, (*path, key))
            else:
                yield (*path, key), ADD
        for key in before:
            if key not in after:
                yield (*path, key), DELETE
    elif isinstance(before, list) and isinstance(after, list):
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            yield from differences(old, new, equal, (*path, index))
        for index in range(len(before), len(after)):
            yield (*path, index), ADD
        for index in range(len(after), len(before)):
            yield (*path, index), DELETE
    else:
        yield path, UPDATE


def not_ignored(changes: Mapping[Path, Change], ignore: Sequence[str]) -> dict[str, Change]:
    """Return the changes by rendered path, without those covered by paths of `ignoreChanges`.

    Raises ProviderError for a malformed path.
    """
    try:
        ignored = [parse(path) for path in ignore]
    except ValueError as error:
        raise ProviderError(f"ignoreChanges: {error}") from None
    return {
        render(path): change for path, change in changes.items() if not any(contains(outer, path) for outer in ignored)
    }
