"""All sections of a configuration, one by one."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.errors import Path
from stacks.derived.partial import PartialSettings
from stacks.settings.model import SettingsModel


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
            yield from _nested((*path, info.alias or name), getattr(value, name))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _nested((*path, index), item)
