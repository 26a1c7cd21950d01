"""`make lock`: asks upstream for the digests of what the catalogues name, and writes them into their YAML files.

Usage: python -m components.lock [--count | --list] MODULE..., the dotted names of the catalogues. --count sends no
requests and prints how many entries have a digest. --list also names those without one.

Run it with access to upstream, review the difference and commit it. From then on, every copy of a file, a chart or an
image must have that digest, whether from upstream or from a mirror. Entries without a response stay the same, and are
listed.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import urljoin

import yaml

from components import registries
from components.artifacts import ArtifactError, Mirror, fetch
from components.catalogue import Artifact, Chart
from components.images import Reference

Edit = Callable[[str], str]
"""From a catalogue's YAML to the YAML with one more digest; raises ValueError if no entry takes the digest."""


def locked(source: str, url: str, digest: str) -> str:
    """Return the catalogue's YAML with this digest on the entry of this address.

    Raises ValueError unless exactly one entry has the URL.
    """
    return _once(source, {"url": url}, [f'sha256: "{digest}"\n'], what=f"the address {url}")


def locked_chart(source: str, chart: Chart, archive: str | None, digest: str) -> str:
    """Return the catalogue's YAML with address and digest of a chart's archive. Raises ValueError as `locked`."""
    head = {"name": chart.name, "version": chart.version, "repository": chart.repository}
    lines = [*([f"archive: {archive}\n"] if archive is not None else []), f'sha256: "{digest}"\n']
    return _once(source, head, lines, what=f"the chart {chart.name} {chart.version}")


def locked_image(source: str, reference: str, digest: str) -> str:
    """Return the catalogue's YAML with this digest in each value that is the reference; raises ValueError for none."""
    with_digest = f": {Reference.parse(reference).without_digest()}@{digest}"
    changed, count = re.subn(rf": {re.escape(reference)}$", with_digest, source, flags=re.MULTILINE)
    if not count:
        raise ValueError(f"no entry of the catalogue has the image {reference}")
    return changed


def images(catalogue: ModuleType) -> Iterator[str]:
    """Yield the references in a catalogue, without changes.

    It omits the InfiniBand driver, because its operator appends the node's system to the tag. This reference is many
    images.
    """
    for artifact in catalogue.ARTIFACTS:
        yield from artifact.images.values()
    for image in catalogue.IMAGES.values():
        yield image.reference
    for software in getattr(catalogue, "NIC_SOFTWARE", ()):
        yield from (software.sriov_plugin, software.shared_plugin)
    yield from getattr(catalogue, "MOVED_IMAGES", {}).values()


def digests(catalogue: ModuleType) -> dict[str, bool]:
    """Return whether each file, chart and image of a catalogue has a digest."""
    files = (*catalogue.ARTIFACTS, *getattr(catalogue, "DASHBOARDS", ()), *catalogue.CHARTS)
    found = {f"{entry.name} {entry.version}": entry.sha256 is not None for entry in files}
    return found | {name: Reference.parse(name).digest is not None for name in images(catalogue)}


def lock(catalogue: ModuleType) -> int:
    """Lock every entry of a catalogue that can be asked for; return the number of those that cannot."""
    file = Path(str(catalogue.__file__)).with_suffix(".yaml")
    failed = 0
    for name, ask in _questions(catalogue):
        try:
            edit, digest = ask()
        except (ArtifactError, registries.RegistryError, ValueError) as error:
            print(f"not locked: {name}: {error}", file=sys.stderr)
            failed += 1
            continue
        file.write_text(edit(file.read_text()))
        print(f"{name}: {digest}")
    return failed


def _questions(catalogue: ModuleType) -> Iterator[tuple[str, Callable[[], tuple[Edit, str]]]]:
    for artifact in (*catalogue.ARTIFACTS, *getattr(catalogue, "DASHBOARDS", ())):
        yield f"{artifact.name} {artifact.version}", partial(_artifact, artifact)
    for chart in catalogue.CHARTS:
        yield f"{chart.name} {chart.version}", partial(_chart, chart)
    for reference in dict.fromkeys(images(catalogue)):
        yield reference, partial(_image, reference)


def _artifact(artifact: Artifact) -> tuple[Edit, str]:
    digest = hashlib.sha256(Mirror().fetch(artifact)).hexdigest()
    return partial(locked, url=artifact.url, digest=digest), digest


def _chart(chart: Chart) -> tuple[Edit, str]:
    archive = None
    if chart.repository.startswith("oci://"):
        digest = registries.chart_digest(chart.repository, chart.name, chart.version)
    else:
        index = f"{chart.repository}/index.yaml"
        archive = archive_of(fetch(index, chart), chart)
        digest = hashlib.sha256(fetch(archive, chart)).hexdigest()
    return partial(locked_chart, chart=chart, archive=archive, digest=digest), digest


def _image(reference: str) -> tuple[Edit, str]:
    digest = registries.image_digest(reference)
    return partial(locked_image, reference=reference, digest=digest), digest


def archive_of(index: bytes, chart: Chart) -> str:
    """Return the https URL of a chart's archive in its repository's index.

    Raises ValueError if the index does not have the version, or has another kind of URL. Source: helm.sh,
    topics/chart_repository, "The index file".
    """
    for entry in yaml.safe_load(index).get("entries", {}).get(chart.name, ()):
        urls = entry.get("urls")
        if entry.get("version") == chart.version and isinstance(urls, list) and urls:
            address = urljoin(f"{chart.repository}/", str(urls[0]))
            if not address.startswith("https://"):
                raise ValueError(f"{chart.name} {chart.version} is at {address}, which is not https")
            return address
    raise ValueError(f"{chart.repository} lists no {chart.name} {chart.version}")


def _once(source: str, head: Mapping[str, str], lines: Sequence[str], *, what: str) -> str:
    """Return a source whose one entry with the keys and values `head` has `lines` next, instead of an older digest."""
    keys = r"\n *".join(f'{key}: "?{re.escape(value)}"?' for key, value in head.items())
    entry = re.compile(rf"^(( *(?:- )?){keys}\n)(?: *archive: .*\n)?(?: *sha256: .*\n)?", re.MULTILINE)

    def locked_entry(found: re.Match[str]) -> str:
        return found[1] + "".join(" " * len(found[2]) + line for line in lines)

    changed, count = entry.subn(locked_entry, source)
    if count != 1:
        raise ValueError(f"{count} entries of the catalogue have {what}")
    return changed


def main() -> int:
    """Lock the catalogues in the arguments, or print the state of their digests.

    Returns 1 if an entry had no response.
    """
    if sys.argv[1:2] in (["--count"], ["--list"]):
        known = {name: has for module in sys.argv[2:] for name, has in digests(import_module(module)).items()}
        print(f"Digests: {sum(known.values())} of {len(known)} files, charts and images of the catalogues have one")
        if sys.argv[1] == "--list":
            print("\n".join(f"  none: {name}" for name, has in known.items() if not has))
        return 0
    return 1 if sum(lock(import_module(name)) for name in sys.argv[1:]) else 0


if __name__ == "__main__":
    sys.exit(main())
