"""What a kind of resource has to be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from emulator.openstack_provider.call import Call
from emulator.plugin.diffing import Change
from emulator.plugin.errors import ProviderError
from emulator.plugin.paths import Path

Values = Mapping[str, Any]


class Kind(ABC):
    """The operations on the resources of a type, as terraform-provider-openstack v3.4.0 does them.

    token: the type. What a class does not say follows openstack/resource_openstack_<upstream>.go of that release.
    """

    token: ClassVar[str]

    @abstractmethod
    def create(self, call: Call, inputs: Values) -> None:
        """Create a resource, set the call's identifier and wait for it."""

    def find(self, call: Call, inputs: Values, since: datetime) -> str | None:
        """Return the ID of what was created with these inputs, by a call whose answer got lost.

        since: when that call began. None where there is none, and of kinds that nobody looks for.
        """
        return None

    @abstractmethod
    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        """Return the properties that can be read, None when the resource is gone. state: what is known, else empty."""

    def update(self, call: Call, before: Values, after: Values, changed: frozenset[str]) -> None:
        """Bring a resource from a state to its new inputs. changed: the properties that differ."""
        raise ProviderError(f"{self.token} cannot be updated in place")

    @abstractmethod
    def delete(self, call: Call, identifier: str, state: Values) -> None:
        """Delete a resource and wait until it is gone."""

    def judged(self, changes: Mapping[Path, Change], state: Values, news: Values) -> dict[Path, Change]:
        """Return the changes as this type takes them."""
        return dict(changes)


def newest(found: Iterable[Values], since: datetime, created: str = "created_at") -> str | None:
    """Return the ID of the newest resource that is no older than this. created: where each says when it was created."""
    times = {str(each["id"]): datetime.fromisoformat(each[created]) for each in found}
    aware = {name: when if when.tzinfo else when.replace(tzinfo=UTC) for name, when in times.items()}
    return max((name for name, when in aware.items() if when >= since), key=aware.__getitem__, default=None)


def tags_of(actual: list[str], state: Values) -> dict[str, Any]:
    """Return the properties `tags` and `allTags`: of those that there are, the wanted ones are of the program."""
    wanted = state.get("tags") or []
    found: dict[str, Any] = {"allTags": sorted(actual)}
    if not set(wanted) <= set(actual):
        found["tags"] = [each for each in wanted if each in actual]
    return found


def new_tags(before: Values, after: Values) -> list[str]:
    """Return all tags after an update, which leaves alone those of others."""
    others = set(before.get("allTags") or ()) - set(before.get("tags") or ())
    return sorted(others | set(after.get("tags") or ()))
