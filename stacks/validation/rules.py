"""Checks the settings as a whole: each section, and values that depend on other sections.

Checks skip invalid sections.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

from stacks.config.engine_yaml import date_hint
from stacks.config.errors import MISSING, UNKNOWN, ConfigError
from stacks.derived.partial import PartialSettings
from stacks.targets.aks import rules as aks
from stacks.targets.cpouta import rules as cpouta
from stacks.targets.existing import rules as existing
from stacks.targets.openshift import rules as openshift
from stacks.validation import (
    admission,
    adoption,
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
    others,
    scheduling,
    switches,
    topology,
    versions,
)
from stacks.validation.walk import apply, sections

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
    switches,
    dates,
    others,
    adoption,
)
"""The modules of rules. Each has `check`, `warnings` or both."""
OF_TARGETS: Final[Mapping[str, ModuleType]] = {
    "aks": aks,
    "existing": existing,
    "openshift": openshift,
    "cpouta": cpouta,
}
"""The rules of each target that has any: `check` and `warnings`."""


def check(partial: PartialSettings) -> list[ConfigError]:
    """Return the errors of the settings as a whole. Two workloads can have the same error of a shared default."""
    errors = [error for path, section in sections(partial) for error in section.check(path)]
    errors += names.check(partial)
    refused = {error.path for error in errors}
    errors += (error for error in objects.check(partial) if error.path not in refused)
    errors += apply(partial, *_functions("check"))
    if (own := _of_target(partial)) is not None:
        errors += own.check(partial)
    written = [as_written(partial, error) for error in errors]
    return list({str(error): error for error in written}.values())


def warnings(partial: PartialSettings) -> list[str]:
    """Return warnings about allowed settings that may be unintended or that give up a promise."""
    own = _of_target(partial)
    found = apply(partial, *_functions("warnings"))
    return [*found, *(own.warnings(partial) if own is not None else ())]


def _functions(name: str) -> list[Callable[..., Iterable[Any]]]:
    return [getattr(module, name) for module in _MODULES if hasattr(module, name)]


def _of_target(partial: PartialSettings) -> ModuleType | None:
    """Return the rules of the target, or None if it is unknown or has none."""
    return OF_TARGETS.get(partial.target.name) if partial.target is not None else None


def as_written(partial: PartialSettings, error: ConfigError) -> ConfigError:
    """Return an error with its value from the configuration, or with the default."""
    value = partial.written(error.path)
    error = replace(error, hint=date_hint(value) or error.hint)
    if error.value is MISSING:
        return error
    if value is MISSING:
        default = partial.default(error.path) if error.value is UNKNOWN else error.value
        return replace(error, value=default, is_default=True)
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    is_section = any(isinstance(item, Mapping | list) for item in items)
    return replace(error, value=MISSING if is_section or value is None else value)
