"""The charts whose source is a Go module: where they are in it, and how each becomes what upstream's site serves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from emulator.charts import archive, record
from emulator.charts.record import FOLDER, Record


@dataclass(frozen=True)
class Source:
    """A chart in a Go module.

    name, version: of the archive. module, folder: where the chart is. chart: what upstream's release sets in
    Chart.yaml. beside: subcharts by name and their folders in the same module. recorded: subcharts that come from
    records, by name and version.
    """

    name: str
    version: str
    module: str
    folder: str
    chart: dict[str, Any] = field(default_factory=dict)
    beside: dict[str, str] = field(default_factory=dict)
    recorded: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The archive's name in the mirror."""
        return f"{self.name}-{self.version}.tgz"

    def pack(self, module: Path) -> bytes:
        """Return the archive, from the module's folder."""
        files = archive.folder(module / self.folder)
        for name, place in self.beside.items():
            files |= archive.folder(module / place, f"charts/{name}/")
        for name, version in self.recorded.items():
            inner = Record.of(FOLDER / f"{name}-{version}.yaml").files()
            files |= {f"charts/{name}/{path}": content for path, content in inner.items()}
        if self.chart:
            chart = {**yaml.safe_load(files["Chart.yaml"]), **self.chart}
            files["Chart.yaml"] = yaml.safe_dump(chart, sort_keys=False).encode()
        files.pop("Chart.lock", None)
        return archive.pack(self.name, files)

    def stamp(self, module_version: str) -> str:
        """Return a digest of everything that the archive is made from."""
        records = [FOLDER / f"{name}-{version}.yaml" for name, version in self.recorded.items()]
        made_by = [Path(archive.__file__), Path(record.__file__)]
        return hashlib.sha256(f"{self!r} {module_version} {_digest(*made_by, *records)}".encode()).hexdigest()


SOURCES = (
    # Upstream's release sets both versions (node-feature-discovery, scripts/github/update-gh-pages.sh).
    Source(
        name="node-feature-discovery",
        version="0.18.3",
        module="sigs.k8s.io/node-feature-discovery",
        folder="deployment/helm/node-feature-discovery",
        chart={"version": "0.18.3", "appVersion": "v0.18.3"},
    ),
    Source(
        name="kube-prometheus-stack",
        version="88.6.1",
        module="github.com/prometheus-community/helm-charts",
        folder="charts/kube-prometheus-stack",
        beside={
            name: f"charts/{name}"
            for name in ("kube-state-metrics", "prometheus-node-exporter", "prometheus-windows-exporter")
        },
        recorded={"grafana": "12.11.2"},
    ),
)


def fill(mirror: Path, version_of: Callable[[str], str], folder_of: Callable[[str], Path]) -> None:
    """Put into the mirror what is missing of it or made from something else than now.

    version_of, folder_of: version and source folder of a Go module.
    """
    for source in SOURCES:
        file = mirror / source.file
        stamp = file.with_suffix(".source")
        wanted = source.stamp(version_of(source.module))
        if not file.exists() or not stamp.exists() or stamp.read_text() != wanted:
            _write(file, source.pack(folder_of(source.module)))
            _write(stamp, wanted.encode())
    for found in sorted(FOLDER.glob("*.yaml")):
        file = mirror / f"{found.stem}.tgz"
        stamp = file.with_suffix(".source")
        wanted = _digest(found, Path(archive.__file__), Path(record.__file__))
        if not file.exists() or not stamp.exists() or stamp.read_text() != wanted:
            read = Record.of(found)
            _write(file, archive.pack(read.name, read.files()))
            _write(stamp, wanted.encode())


def _digest(*files: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _write(file: Path, content: bytes) -> None:
    unfinished = file.with_name(f"{file.name}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(file)
