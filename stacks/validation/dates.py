"""Texts that YAML reads as dates, such as 2026-01-05 without quotes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stacks.config.engine_yaml import date_hint
from stacks.config.errors import Path, key
from stacks.derived.partial import PartialSettings


def warnings(partial: PartialSettings) -> list[str]:
    """Return warnings about valid values that YAML read as dates."""
    return [f'{key(path)} is "{text}"; {hint}' for path, text in _texts((), partial.raw) if (hint := date_hint(text))]


def _texts(path: Path, value: object) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts((*path, name), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts((*path, index), item)
