"""`make lock`: fetches what the catalogues name from upstream and writes the digests into them.

Usage: python -m components.lock MODULE..., the dotted names of the catalogues.

Run it where upstream can be reached, look at the difference, commit it. From then on every copy of a file, upstream's
own or a mirror's, has to have that digest.
"""

from __future__ import annotations

import hashlib
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from components.artifacts import ArtifactError, Mirror


def locked(source: str, url: str, digest: str) -> str:
    """Return the catalogue's source with this digest on the entry of this address.

    Raises ValueError when no entry, or more than one, has the address.
    """
    entry = re.compile(rf'^( *)url="{re.escape(url)}",\n(?: *sha256="[0-9a-f]*",\n)?', re.MULTILINE)
    changed, count = entry.subn(lambda found: f'{found[1]}url="{url}",\n{found[1]}sha256="{digest}",\n', source)
    if count != 1:
        raise ValueError(f"{count} entries of the catalogue have the address {url}")
    return changed


def lock(catalogue: ModuleType) -> int:
    """Lock every entry of a catalogue that can be fetched; return the number of those that cannot."""
    file = Path(str(catalogue.__file__))
    upstream = Mirror()
    failed = 0
    for artifact in catalogue.ARTIFACTS:
        try:
            digest = hashlib.sha256(upstream.fetch(artifact)).hexdigest()
        except ArtifactError as error:
            print(f"not locked: {error}", file=sys.stderr)
            failed += 1
            continue
        file.write_text(locked(file.read_text(), artifact.url, digest))
        print(f"{artifact.name} {artifact.version}: {digest}")
    return failed


if __name__ == "__main__":
    sys.exit(1 if sum(lock(import_module(name)) for name in sys.argv[1:]) else 0)
