"""What the settings say as a whole: each section by itself, and what spans several of them.

A check works on the sections that could be read, and says nothing about those that could not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from stacks.config.engine_yaml import date_hint
from stacks.config.errors import MISSING, ConfigError
from stacks.derived.partial import PartialSettings
from stacks.validation import (
    admission,
    bounds,
    capacity,
    dates,
    health,
    isolation,
    jobs,
    mlops,
    monitoring,
    names,
    network,
    nvshare,
    objects,
    scheduling,
    switches,
    topology,
    versions,
)
from stacks.validation.walk import sections

_MODULES: Final = (
    capacity,
    bounds,
    admission,
    isolation,
    jobs,
    versions,
    scheduling,
    topology,
    network,
    health,
    monitoring,
    nvshare,
    mlops,
)


def check(partial: PartialSettings) -> list[ConfigError]:
    """Return what is wrong with the settings as a whole."""
    errors = [error for path, section in sections(partial) for error in section.check(path)]
    errors += names.check(partial)
    refused = {error.path for error in errors}
    errors += (error for error in objects.check(partial) if error.path not in refused)
    for module in _MODULES:
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
        *jobs.warnings(partial),
        *switches.warnings(partial),
        *scheduling.warnings(partial),
        *topology.warnings(partial),
        *monitoring.warnings(partial),
        *nvshare.warnings(partial),
        *mlops.warnings(partial),
        *dates.warnings(partial),
        *(partial.target.warnings(partial) if partial.target is not None else ()),
    ]


def _as_written(partial: PartialSettings, error: ConfigError) -> ConfigError:
    """Return a problem with the value that its reader finds in the configuration, or said to be a default."""
    value = partial.written(error.path)
    error = replace(error, hint=date_hint(value) or error.hint)
    if error.value is MISSING:
        return error
    if value is MISSING:
        return replace(error, is_default=True)
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    is_section = any(isinstance(item, Mapping | list) for item in items)
    return replace(error, value=MISSING if is_section else value)
