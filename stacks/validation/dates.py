"""Texts that YAML reads as dates, such as 2026-01-05 without quotes."""

from stacks.config.engine_yaml import date_hint
from stacks.config.errors import key
from stacks.config.sections import texts
from stacks.derived.partial import PartialSettings


def warnings(partial: PartialSettings) -> list[str]:
    """Return warnings about valid values that YAML read as dates."""
    return [f'{key(path)} is "{text}"; {hint}' for path, text in texts((), partial.raw) if (hint := date_hint(text))]
