"""Sources of charts: upstream's from Go modules, or stubs without a module."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from emulator.charts import archive, schema
from runner.files import replacing

STUBS = Path(__file__).with_name("stubs")
STUB_OF = "emulator/stub-of"
"""Annotation of a stub's Chart.yaml: the source of its schema, from its `$comment`."""

_VALUES = "values.schema.json"
_UNANSWERED = re.compile(rb"kind: (?:(?:Mutating|Validating)WebhookConfiguration|APIService)\b|helm\.sh/hook\b")
_MODULES = Path(__file__).parents[1] / "tools" / "charts" / "go.mod"


@dataclass(frozen=True)
class Source:
    """A chart in a Go module.

    name, version: of the archive.
    module, folder: location of the chart; subcharts are in folders next to it, or are stubs.
    chart: what upstream's release changes in Chart.yaml.
    """

    name: str
    version: str
    module: str
    folder: str
    chart: Mapping[str, str] = field(default_factory=dict)

    def files(self, module: Path) -> dict[str, bytes]:
        """Return the chart's files for the mirror, from the module's folder."""
        return {path: content for path, content in self.upstream(module).items() if not _is_left_out(path, content)}

    def upstream(self, module: Path) -> dict[str, bytes]:
        """Return the chart's files as in upstream's release, from the module's folder."""
        folder = module / self.folder
        files = archive.folder(folder)
        chart = {**yaml.safe_load(files["Chart.yaml"]), **self.chart}
        for dependency in chart.get("dependencies") or []:
            name, beside = dependency["name"], folder.parent / dependency["name"]
            if f"charts/{name}/Chart.yaml" not in files:
                found = archive.folder(beside) if beside.is_dir() else stub(name, dependency["version"])
                files |= {f"charts/{name}/{path}": content for path, content in found.items()}
        files.pop("Chart.lock", None)
        return {**files, "Chart.yaml": yaml.safe_dump(chart).encode()}


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
    ),
)


def _is_left_out(path: str, content: bytes) -> bool:
    """Tell whether a template declares a webhook, an aggregated API or a hook.

    Their controllers are simulated. With such a webhook the API server would reject all objects of its rules, and a
    hook's Job would not end.
    """
    return "templates/" in path and _UNANSWERED.search(content) is not None


def stubs() -> list[tuple[str, str]]:
    """Return name and version of each stub chart."""
    return sorted((file.parents[1].name, file.parent.name) for file in STUBS.glob(f"*/*/{_VALUES}"))


def stub(name: str, version: str) -> dict[str, bytes]:
    """Return the files of a stub chart: kinds and pods, which all versions share, and the schema of this version."""
    content = (STUBS / name / version / _VALUES).read_bytes()
    known = json.loads(content)
    chart = {"apiVersion": "v2", "name": name, "version": version, "annotations": {STUB_OF: known["$comment"]}}
    return {
        "Chart.yaml": json.dumps(chart).encode(),
        "values.yaml": json.dumps(schema.defaults(known)).encode(),
        schema.KNOWN_VALUES: content,
        "templates/_workload.tpl": (STUBS / "_workload.tpl").read_bytes(),
        **archive.folder(STUBS / name / "crds", "crds/"),
        **archive.folder(STUBS / name / "templates", "templates/"),
    }


def fill(mirror: Path, folder_of: Callable[[str], Path]) -> None:
    """Write archives that the mirror lacks, or whose sources are newer, into it.

    folder_of: source folder of a Go module.
    """
    made_from = (_MODULES, *Path(__file__).parent.glob("*.py"), *STUBS.rglob("*"))
    changed = max(file.stat().st_mtime for file in made_from)
    sources = {(source.name, source.version): source for source in SOURCES}
    for name, version in (*sources, *stubs()):
        file = mirror / f"{name}-{version}.tgz"
        if not file.exists() or file.stat().st_mtime < changed:
            source = sources.get((name, version))
            files = stub(name, version) if source is None else source.files(folder_of(source.module))
            with replacing(file) as unfinished:
                unfinished.write_bytes(archive.pack(name, files))
