"""Warns about options of disabled features, which have no effect."""

from collections.abc import Iterator
from typing import Final

from stacks.config.errors import key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.gpu import GpuSettings
from stacks.settings.health import CheckSettings
from stacks.settings.model import SettingsModel
from stacks.settings.samples import GangSettings, SyntheticSettings
from stacks.settings.submission import WorkloadSettings
from stacks.settings.workloads import ViewerSettings
from stacks.validation.walk import sections

_KEPT: Final = (WorkloadSettings, ViewerSettings, CheckSettings, GangSettings, SyntheticSettings)
"""Features that users switch on and off often, and whose options stay in the file."""
_SWITCHES: Final = {
    "operator": ("operator_version", "install_driver", "install_toolkit", "driver_version", "drain_for_drivers"),
    "feature_discovery": ("feature_discovery_version",),
}
"""Of section gpu, the options by their switch."""


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield warnings about options without effect because their feature is off."""
    for path, section in sections(partial):
        for switch, options in _off(section):
            given = [option for option in type(section).model_fields if option in section.model_fields_set & options]
            if given:
                fields = type(section).model_fields
                names = listed(fields[option].alias or option for option in given)
                yield f"{key((*path, fields[switch].alias or switch))} is false, so these have no effect: {names}"


def _off(section: SettingsModel) -> Iterator[tuple[str, set[str]]]:
    """Yield the switches of a section that are set to false, with the options of each."""
    if isinstance(section, _KEPT):
        return
    if "enabled" in section.model_fields_set and getattr(section, "enabled", True) is False:
        yield "enabled", section.model_fields_set - {"enabled"}
    if isinstance(section, GpuSettings):
        for switch, options in _SWITCHES.items():
            if switch in section.model_fields_set and not getattr(section, switch):
                yield switch, set(options)
