"""One call on one resource: the services of its region, how long it may take, and what it has made so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from emulator.openstack_provider.cloud import Cloud, Service
from emulator.plugin.errors import ProviderError
from emulator.plugin.operation import Deadline, Operation

GONE: Final = "DELETED"
"""The status of what is not there any more."""

_FIRST_SECONDS: Final = 0.3
_LONGEST_SECONDS: Final = 3.0

Look = Callable[[], str]
"""Says in which status something is."""


class Call:
    """What a kind of resource works with. region: the resource's own, empty for the provider's.

    seconds: how long the operation may take. identifier: of the resource; a creation sets it as soon as the official
    provider would keep what it has made, even if it fails later. made: told of what a creation has made, at once.
    kept: properties that only the answer to a creation has.
    """

    def __init__(
        self,
        cloud: Cloud,
        region: str,
        operation: Operation,
        seconds: float,
        identifier: str = "",
        made: Callable[[str], object] = lambda identifier: None,
    ) -> None:
        self._cloud = cloud
        self.region = region or cloud.region
        self.operation = operation
        self.identifier = identifier
        self.made = made
        self.kept: dict[str, Any] = {}
        self._deadline = Deadline(operation.timeout or seconds)

    @property
    def compute(self) -> Service:
        """Nova."""
        return self._cloud.service("compute", self.region)

    @property
    def network(self) -> Service:
        """Neutron."""
        return self._cloud.service("network", self.region)

    @property
    def storage(self) -> Service:
        """Cinder."""
        return self._cloud.service("block_storage", self.region)

    @property
    def image(self) -> Service:
        """Glance."""
        return self._cloud.service("image", self.region)

    def wait(self, what: str, look: Look, targets: Collection[str], pending: Collection[str] = ()) -> str:
        """Wait until something is in one of the target statuses, and return it.

        pending: the statuses on the way; any is where none is named. Raises ProviderError for another status and when
        the time is over.
        """
        pause = _FIRST_SECONDS
        while True:
            status = look()
            if status in targets:
                self.operation.clear_status()
                return status
            wanted = ", ".join(sorted(targets))
            if pending and status not in pending:
                raise ProviderError(f"{what} is in status {status}, which does not lead to {wanted}")
            if self._deadline.left <= 0:
                raise ProviderError(
                    f"{what} is not {wanted} after {self._deadline.seconds:.0f} s but {status or 'in no status'}; the "
                    "resource option customTimeouts gives it longer"
                )
            self.operation.status(f"{what} is {status or 'not ready'}; waiting for {wanted}")
            self.operation.sleep(min(pause, max(self._deadline.left, 0.05)))
            pause = min(pause * 1.5, _LONGEST_SECONDS)


def given(**values: Any) -> dict[str, Any]:
    """Return the values without those that say nothing, which are left out of a request."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def stated(values: Mapping[str, Any], **names: str) -> dict[str, Any]:
    """Return what a mapping has for some names, false and 0 included. names: what each is called in the request."""
    return {request: values[name] for request, name in names.items() if values.get(name) is not None}
