"""`make available`: requests what the catalogues name, and prints what upstream no longer serves to everyone.

Usage: python -m components.available MODULE..., the dotted names of the catalogues. Prints one line of Markdown for
each missing image, chart and file, with its place. Exits with 1 if something is missing, and with 2 if only answers are
missing, which standard error lists. It includes the images that the OSS MLOps platform's own manifests name, and not
those that charts name.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from json import JSONDecodeError
from pathlib import Path
from types import ModuleType
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from components import catalogue, lock, registries
from components.artifacts import ArtifactError, Mirror, fetch
from components.catalogue import Chart
from components.kubernetes import kustomize
from components.kubernetes.kustomize import KustomizeError
from components.mlops import pipelines
from components.mlops.menu import MENU
from components.mlops.platform import MlopsArgs, containers, documents

Wanted = tuple[str, str, Callable[[], object]]
"""What a place names, the place, and the request for it."""
_GONE = (401, 403, 404, 410)
"""Answers to an anonymous request for something that is not served to everyone."""


def wanted(module: ModuleType) -> Iterator[Wanted]:
    """Yield each image, file and chart of a catalogue."""
    file = Path(str(module.__file__)).with_suffix(".yaml")
    lines = file.read_text().splitlines()

    def place(text: str) -> str:
        number = next((number for number, line in enumerate(lines, 1) if text in line), 1)
        return f"{file.relative_to(Path.cwd())}:{number}"

    nodes = [node for release in getattr(module, "KIND_RELEASES", ()) for node in release.node_images]
    for image in dict.fromkeys((*lock.images(module), *nodes)):
        yield image, place(image), partial(registries.require, image)
    for entry in (*module.ARTIFACTS, *getattr(module, "DASHBOARDS", ())):
        yield entry.url, place(entry.url), partial(_file, entry.url)
    for chart in module.CHARTS:
        yield f"{chart.repository}, {chart.name} {chart.version}", place(chart.repository), partial(_chart, chart)


def rendered(mirror: Mirror) -> Iterator[Wanted]:
    """Yield the images of all deployments of the OSS MLOps platform. Raises ArtifactError and KustomizeError."""
    platform, kubeflow = (
        kustomize.unpacked(mirror.fetch(repository.archive)) for repository in (catalogue.MLOPS, catalogue.PIPELINES)
    )
    files = pipelines.replaced(platform, kubeflow)
    deployments: dict[str, list[str]] = {}
    for deployment in MENU:
        found = documents(MlopsArgs(manifests=kustomize.render(files, deployment.folder), forwarder=True))
        for image in {container["image"] for document in found for container in containers(document)}:
            deployments.setdefault(image, []).append(deployment.overlay)
    for image, overlays in sorted(deployments.items()):
        where = f"{catalogue.MLOPS.url}/tree/{catalogue.MLOPS.commit}: {', '.join(overlays)}"
        yield image, where, partial(registries.require, image)


def report(entries: Sequence[Wanted]) -> int:
    """Print what is missing, and return the exit status."""
    missing = unanswered = 0
    for name, place, request in entries:
        try:
            request()
        except (ArtifactError, OSError, ValueError) as error:
            if _is_gone(error):
                missing += 1
                print(f"- `{name}` ({place}): {error}", flush=True)
            else:
                unanswered += 1
                print(f"no answer: {name}: {error}", file=sys.stderr)
    print(f"{len(entries)} requests, {missing} missing, {unanswered} without an answer", file=sys.stderr)
    return 1 if missing else 2 if unanswered else 0


def _is_gone(error: BaseException | None) -> bool:
    """Return whether upstream does not have it. A ValueError means that a chart's index lacks the version.

    A JSONDecodeError means that something else answered, such as a proxy or a page about maintenance.
    """
    if isinstance(error, HTTPError):
        return error.code in _GONE
    if isinstance(error, JSONDecodeError):
        return False
    return isinstance(error, ValueError) or (error is not None and _is_gone(error.__cause__))


def _file(url: str) -> None:
    urlopen(Request(url, method="HEAD"), timeout=30).close()  # noqa: S310 - the catalogues' addresses


def _chart(chart: Chart) -> None:
    if chart.repository.startswith("oci://"):
        registries.chart_digest(chart.repository, chart.name, chart.version)
    else:
        index = fetch(f"{chart.repository}/index.yaml", chart)
        if index.lstrip().startswith(b"<"):
            raise registries.RegistryError(f"{chart.repository}/index.yaml is a page of HTML")
        _file(lock.archive_of(index, chart))


def main() -> int:
    """Request everything, and return the exit status."""
    entries, failed = [entry for name in sys.argv[1:] for entry in wanted(import_module(name))], 0
    try:
        entries += rendered(Mirror())
    except (ArtifactError, KustomizeError) as error:
        print(f"no answer: the OSS MLOps platform's manifests: {error}", file=sys.stderr)
        failed = 2
    return report(entries) or failed


if __name__ == "__main__":
    sys.exit(main())
