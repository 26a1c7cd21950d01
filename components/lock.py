"""`make lock`: fetches what the catalogue names from upstream and writes the digests into the catalogue.

Run it where upstream can be reached, look at the difference, commit it. From then on every copy of a file, upstream's
own or a mirror's, has to have that digest.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from components import catalogue
from components.artefacts import ArtefactError, Mirror


def locked(source: str, url: str, digest: str) -> str:
    """Return the catalogue's source with this digest on the entry of this address.

    Raises ValueError when no entry, or more than one, has the address.
    """
    entry = re.compile(rf'^( *)url="{re.escape(url)}",\n(?: *sha256="[0-9a-f]*",\n)?', re.MULTILINE)
    changed, count = entry.subn(lambda found: f'{found[1]}url="{url}",\n{found[1]}sha256="{digest}",\n', source)
    if count != 1:
        raise ValueError(f"{count} entries of the catalogue have the address {url}")
    return changed


def main() -> int:
    """Lock every entry that can be fetched; return 1 when one cannot, with the others locked all the same."""
    file = Path(catalogue.__file__)
    upstream = Mirror()
    failed = 0
    for artefact in catalogue.ARTEFACTS:
        try:
            digest = hashlib.sha256(upstream.fetch(artefact)).hexdigest()
        except ArtefactError as error:
            print(f"not locked: {error}", file=sys.stderr)
            failed += 1
            continue
        file.write_text(locked(file.read_text(), artefact.url, digest))
        print(f"{artefact.name} {artefact.version}: {digest}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
