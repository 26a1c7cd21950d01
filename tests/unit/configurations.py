"""Configurations as the settings' tests write them: read, judged, or both."""

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final

import yaml

from runner.settings import filled
from stacks.config import parsing
from stacks.config.errors import ConfigError
from stacks.derived.partial import PartialSettings
from stacks.validation import rules
from tests.unit.conftest import ROOT

ABSENT: Final = "(absent)"
"""Marks a key that `changed` removes."""


def errors_of(raw: Mapping[str, object], *secrets: str) -> list[ConfigError]:
    """Return everything that is wrong with a configuration, without asking a cluster."""
    partial, found = parsing.read(raw, frozenset(secrets))
    return found + rules.check(partial)


def partial_of(raw: Mapping[str, object], *secrets: str) -> PartialSettings:
    """Return the sections of a configuration. Each of them must be valid by itself."""
    partial, found = parsing.read(raw, frozenset(secrets))
    assert [str(error) for error in found] == []
    return partial


def settings_of(raw: Mapping[str, object]) -> Any:
    """Return the complete settings of a configuration without errors."""
    partial = partial_of(raw)
    assert [str(error) for error in rules.check(partial)] == []
    settings = parsing.whole(partial)
    assert settings is not None
    return settings


def stack_settings(name: str) -> dict[str, Any]:
    """Return the settings of one of the checkout's stacks, with local values for its placeholders."""
    return deepcopy(_stack_settings(name))


@cache
def _stack_settings(name: str) -> dict[str, Any]:
    config = yaml.safe_load(filled((ROOT / f"Pulumi.{name}.yaml").read_text()))["config"]
    return {key.removeprefix("mlbatch:"): value for key, value in config.items()}


def aks(azure: Mapping[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    """Return a configuration of target `aks`: the shipped section azure with some values changed, and more sections."""
    return {"target": "aks", "azure": {**stack_settings("aks")["azure"], **(azure or {})}, **sections}


def changed(raw: Mapping[str, Any], changes: Mapping[str, object]) -> dict[str, Any]:
    """Return a configuration with other values, by path with dots. ABSENT removes a key."""
    copy = deepcopy(dict(raw))
    for path, value in changes.items():
        *above, last = (int(part) if part.isdigit() else part for part in path.split("."))
        place: Any = copy
        for part in above:
            place = place[part] if isinstance(place, list) else place.setdefault(part, {})
        if value == ABSENT:
            del place[last]
        else:
            place[last] = value
    return copy
