"""The sections of a configuration that could be read, and facts about the cluster and the cloud."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import MISSING, Path
from stacks.settings.model import SettingsModel
from stacks.settings.tenancy import TeamSettings

M = TypeVar("M", bound=SettingsModel)


def texts(path: Path, value: object) -> Iterator[tuple[Path, str]]:
    """Yield the texts in a value of the configuration, with their paths. path: of the value."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from texts((*path, name), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from texts((*path, index), item)


@dataclass
class Sections:
    """The sections of a configuration that could be read. An invalid section is missing.

    raw: the configuration as written, by key.
    sections: by key, without the teams.
    teams: with None for a team that could not be read.
    team_names: the name of each team as written.
    secrets: the keys of the secrets that are set.
    facts: about the cluster. None if it was not asked or did not answer.
    site: facts about the cloud of the target, in a type that the target defines. None likewise.
    """

    raw: Mapping[str, object] = field(default_factory=dict)
    sections: dict[str, SettingsModel] = field(default_factory=dict)
    teams: list[TeamSettings | None] = field(default_factory=list)
    team_names: list[object] = field(default_factory=list)
    secrets: frozenset[str] = frozenset()
    facts: ClusterFacts | None = None
    site: object = None

    def section(self, model: type[M]) -> M | None:
        """Return the section of a model, None if it could not be read or the target has none."""
        return next((section for section in self.sections.values() if isinstance(section, model)), None)

    def written(self, path: Path) -> object:
        """Return the value at a path of the configuration, or MISSING."""
        value: Any = self.raw
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return MISSING
        return value

    def default(self, path: Path) -> object:
        """Return the value that the sections have at a path, or MISSING for no value or a section."""
        value: Any = {**self.sections, "teams": self.teams}
        for part in path:
            fields = getattr(type(value), "model_fields", {})
            name = next((name for name, info in fields.items() if info.alias == part), None)
            try:
                value = value[part] if name is None else getattr(value, name)
            except (KeyError, IndexError, TypeError):
                return MISSING
        return MISSING if value in (None, ()) or isinstance(value, SettingsModel) else value

    def team(self, name: str | None) -> TeamSettings | None:
        return next((team for team in self.known_teams if team.name == name), None)

    @property
    def known_teams(self) -> list[TeamSettings]:
        """The teams that could be read."""
        return [team for _, team in self.numbered_teams]

    @property
    def numbered_teams(self) -> list[tuple[int, TeamSettings]]:
        """The teams that could be read, each with its position in the configuration."""
        return [(index, team) for index, team in enumerate(self.teams) if team is not None]
