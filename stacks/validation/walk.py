"""Walks through the sections of a configuration, and applies rules to those that they need."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TypeVar, get_type_hints

from stacks.config.errors import Path
from stacks.derived.partial import PartialSettings
from stacks.settings.model import SettingsModel

T = TypeVar("T")


def apply(partial: PartialSettings, *rules: Callable[..., Iterable[T]]) -> Iterator[T]:
    """Yield what rules find in the settings.

    The parameters of a rule after the first are what it needs, by type: sections, or facts about the cluster, the cloud
    or the node pool. A rule is skipped while one of them is missing.
    """
    for rule in rules:
        given = (partial.facts, partial.site, partial.pool, *partial.sections.values())
        needed = [next((each for each in given if isinstance(each, kind)), None) for kind in _needs(rule)]
        if all(each is not None for each in needed):
            yield from rule(partial, *needed)


@cache
def _needs(rule: Callable[..., object]) -> tuple[type, ...]:
    _, *kinds = (kind for name, kind in get_type_hints(rule).items() if name != "return")
    return tuple(kinds)


def sections(partial: PartialSettings) -> Iterator[tuple[Path, SettingsModel]]:
    """Yield all valid sections and their nested sections, with their paths."""
    for name, section in partial.sections.items():
        yield from _nested((name,), section)
    for index, team in enumerate(partial.teams):
        yield from _nested(("teams", index), team)


def _nested(path: Path, value: object) -> Iterator[tuple[Path, SettingsModel]]:
    if isinstance(value, SettingsModel):
        yield path, value
        for name, info in type(value).model_fields.items():
            inner = getattr(value, name)
            if isinstance(inner, SettingsModel | tuple):
                yield from _nested((*path, info.alias or name), inner)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _nested((*path, index), item)
