"""One object on the API server: reading it, and following what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emulator.plugin.operation import Deadline, Operation
from emulator.provider.client import Client
from emulator.provider.discovery import Discovery, Resource
from emulator.provider.errors import ApiError
from emulator.provider.objects import Manifest, metadata

_FIRST_PAUSES = (0.03, 0.06, 0.12, 0.25, 0.5)
_POLL_SECONDS = 0.5
_PAUSE_AFTER_BROKEN_WATCH = 0.5
# A watch is begun anew this often at least, with a fresh read, should the server lose events.
_WATCH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Target:
    """An object on the API server."""

    client: Client
    discovery: Discovery
    resource: Resource
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """The object's URL path."""
        return self.resource.path(self.namespace, self.name)

    def read(self, operation: Operation) -> Manifest | None:
        """Return the live object, None when there is none."""
        try:
            return self.client.request("GET", self.path, operation)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    def follow(self, operation: Operation, deadline: Deadline, poll: bool) -> Iterator[Manifest | None]:
        """Yield the live object now and after each change, None when it is gone, until the deadline."""
        pauses = list(_FIRST_PAUSES)
        while deadline.left > 0:
            live = self.read(operation)
            yield live
            if pauses or poll:
                # Most waits end within a second; a watch needs a connection of its own.
                pause = pauses.pop(0) if pauses else _POLL_SECONDS
                operation.sleep(min(pause, max(deadline.left, 0)))
                continue
            query = {"fieldSelector": f"metadata.name={self.name}"}
            if live is not None:
                query["resourceVersion"] = str(metadata(live).get("resourceVersion"))
            seconds = min(max(deadline.left, 1), _WATCH_SECONDS)
            try:
                events = self.client.watch(self.resource.path(self.namespace), operation, query, seconds)
                for event in events:
                    yield None if event["type"] == "DELETED" else event["object"]
                    if deadline.left <= 0:
                        break
            except ApiError:
                # The resource version is too old, or the server is restarting: look again.
                operation.sleep(_PAUSE_AFTER_BROKEN_WATCH)
