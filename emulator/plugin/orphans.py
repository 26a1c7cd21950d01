"""What was created for an engine which may not have lived to record it.

An engine that is killed between a create and the write of its state does not know the object, and its next run would
find the name taken. This process outlives engines: it remembers what it created for which URN until an engine shows
that it knows the object, by sending its uid back. Only such an object is handed out again, and only to the same URN;
whatever else has the name stays an error.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

_KEPT = 10_000


class Orphans:
    """Created objects by uid, the oldest forgotten first. Safe for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urns: OrderedDict[str, str] = OrderedDict()

    def add(self, uid: str, urn: str) -> None:
        """Remember an object that was created for the resource."""
        with self._lock:
            self._urns[uid] = urn
            while len(self._urns) > _KEPT:
                self._urns.popitem(last=False)

    def claim(self, uid: str) -> None:
        """Forget an object: an engine has it in its state."""
        if uid in self._urns:
            with self._lock:
                self._urns.pop(uid, None)

    def belongs(self, uid: str, urn: str) -> bool:
        """Tell whether the object was created for the resource and no engine has shown that it knows so."""
        return self._urns.get(uid) == urn
