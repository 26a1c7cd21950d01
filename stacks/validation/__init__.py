"""What the settings say as a whole: each section by itself, and what spans several of them.

A check works on the sections that could be read, and says nothing about those that could not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic import BaseModel

from stacks.errors import MISSING, ConfigError, Path
from stacks.partial import PartialSettings
from stacks.settings.model import SettingsModel
from stacks.validation import (
    admission,
    bounds,
    capacity,
    health,
    isolation,
    jobs,
    names,
    network,
    objects,
    scheduling,
    versions,
)


def check(partial: PartialSettings) -> list[ConfigError]:
    """Return what is wrong with the settings as a whole."""
    errors = [error for path, section in _sections(partial) for error in section.check(path)]
    for module in (names, objects, capacity, bounds, admission, isolation, jobs, versions, scheduling, network, health):
        errors += module.check(partial)
    if partial.target is not None:
        errors += partial.target.check(partial)
    return [_as_written(partial, error) for error in errors]


def warnings(partial: PartialSettings) -> list[str]:
    """Return what is allowed and may not be what was meant, or gives a promise up, in words for the reader of a run."""
    return [
        *versions.warnings(partial),
        *capacity.warnings(partial),
        *network.warnings(partial),
        *isolation.warnings(partial),
        *(partial.target.warnings(partial) if partial.target is not None else ()),
    ]


def _as_written(partial: PartialSettings, error: ConfigError) -> ConfigError:
    """Return a problem with the value that its reader finds in the configuration, or said to be a default."""
    if error.value is MISSING:
        return error
    value = partial.written(error.path)
    if value is MISSING:
        return replace(error, is_default=True)
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    is_section = any(isinstance(item, Mapping | list) for item in items)
    return replace(error, value=MISSING if is_section else value)


def _sections(partial: PartialSettings) -> Iterator[tuple[Path, SettingsModel]]:
    """Yield all sections that could be read, with those in them, and where they stand."""
    for name, section in partial.sections.items():
        yield from _nested((name,), section)
    for index, team in enumerate(partial.teams):
        yield from _nested(("teams", index), team)


def _nested(path: Path, value: object) -> Iterator[tuple[Path, SettingsModel]]:
    if isinstance(value, SettingsModel):
        yield path, value
        for name, info in type(value).model_fields.items():
            yield from _nested((*path, info.alias or name), getattr(value, name))
    elif isinstance(value, tuple) and any(isinstance(item, BaseModel) for item in value):
        for index, item in enumerate(value):
            yield from _nested((*path, index), item)
