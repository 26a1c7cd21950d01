"""What was created, or begun, for an engine that has not shown since that it knows of it.

An engine that is killed leaves what it had created and not recorded. The official provider knows nothing of it, and
neither does this one when it plans; the local environment asks here, and hands it back to the stack's state.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from runner.files import private_folder, write_private

_SECRETS: Final = frozenset({"password", "token", "applicationCredentialSecret"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A resource that was created, or whose creation was begun.

    identifier: empty as long as the service has not told it, as for ever where its answer got lost. inputs: of the
    resource; provider: of its provider resource, without credentials. begun: when its creation was, in seconds since
    1970.
    """

    urn: str
    token: str
    identifier: str
    inputs: Mapping[str, Any]
    provider: Mapping[str, Any]
    begun: float = 0.0


class Journal:
    """One file for each resource beneath a folder; None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def keep(self, entry: Entry) -> None:
        """Keep a resource in place of what was kept of it; its inputs may hold secrets."""
        if self._folder is not None:
            provider = {name: value for name, value in entry.provider.items() if name not in _SECRETS}
            write_private(
                _file(private_folder(self._folder), entry.urn), json.dumps({**asdict(entry), "provider": provider})
            )

    def kept(self, urn: str) -> Entry | None:
        """Return what is kept of a resource."""
        return _read(_file(self._folder, urn)) if self._folder is not None else None

    def known(self, urn: str, identifier: str) -> None:
        """Forget a resource that an engine knows; without an identifier, one that was refused."""
        if self._folder is not None:
            file = _file(self._folder, urn)
            found = _read(file)
            if found is not None and found.identifier == identifier:
                file.unlink(missing_ok=True)

    def entries(self) -> Iterator[Entry]:
        """Return what is kept."""
        for file in sorted(self._folder.glob("*.json")) if self._folder is not None else ():
            found = _read(file)
            if found is not None:
                yield found


def _file(folder: Path, urn: str) -> Path:
    return folder / f"{hashlib.sha256(urn.encode()).hexdigest()[:32]}.json"


def _read(file: Path) -> Entry | None:
    with contextlib.suppress(FileNotFoundError, ValueError, TypeError):
        return Entry(**json.loads(file.read_text()))
    return None
