"""Charts made from records: a record says what upstream's chart takes and brings, and is packed as a small chart.

The keys of a record:

name, version, appVersion: as in upstream's Chart.yaml at that release.
source:    the repository, tag and folder that the facts were read from.
values:    the values and their types, see `emulator.charts.values.Shape`.
defaults:  upstream's defaults of those values that the record's own objects use.
crds:      custom resources: group, kind, plural, scope, and for each version its schema, see `schema`.
crdsWithRelease: whether they go with the release; otherwise they stay when it is uninstalled.
workloads: what the chart starts: kind, name, image, when (a value that has to be true), labels, nodeSelector,
           tolerations.
objects:   custom resources that the chart itself creates: when, manifest.

In names, labels and manifests `$release` stands for the release's name, and a text `$values.<path>` for that value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from emulator.charts.values import RECORD, Shape

FOLDER = Path(__file__).with_name("recorded")
ANNOTATION = "emulator/recorded"
"""Annotation of a recorded chart's Chart.yaml; its value is the record's source."""

_VALUE = re.compile(r'"\$values\.([\w.]+)"')
_TYPES = ("string", "integer", "number", "boolean")


@dataclass(frozen=True)
class Record:
    """The content of one record."""

    name: str
    version: str
    content: Mapping[str, Any]

    @classmethod
    def of(cls, file: Path) -> Record:
        """Read a record."""
        content = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
        return cls(content["name"], str(content["version"]), content)

    @property
    def values(self) -> Mapping[str, Shape]:
        """The values that the chart knows."""
        found: Mapping[str, Shape] = self.content.get("values") or {}
        return found

    def files(self) -> dict[str, bytes]:
        """Return the files of the chart that stands for the record."""
        source = self.content["source"]
        chart = {
            "apiVersion": "v2",
            "name": self.name,
            "version": self.version,
            "appVersion": str(self.content.get("appVersion") or self.version),
            "description": f"recorded from {source}",
            "annotations": {ANNOTATION: source},
        }
        facts = {"source": source, "values": self.values}
        found = {
            "Chart.yaml": yaml.safe_dump(chart, sort_keys=False).encode(),
            "values.yaml": yaml.safe_dump(self.content.get("defaults") or {}, sort_keys=False).encode(),
            RECORD: json.dumps(facts, sort_keys=True).encode(),
        }
        place = "templates" if self.content.get("crdsWithRelease") else "crds"
        for crd in self.content.get("crds") or []:
            found[f"{place}/{crd['group']}_{crd['plural']}.yaml"] = json.dumps(definition(crd), indent=1).encode()
        for number, workload in enumerate(self.content.get("workloads") or []):
            found[f"templates/workload-{number}.yaml"] = template(workload_manifest(self.name, workload), workload)
        for number, item in enumerate(self.content.get("objects") or []):
            found[f"templates/object-{number}.yaml"] = template(item["manifest"], item)
        return found


def records() -> list[Record]:
    """Return every record, by file name."""
    return [Record.of(file) for file in sorted(FOLDER.glob("*.yaml"))]


def template(manifest: Mapping[str, Any], options: Mapping[str, Any]) -> bytes:
    """Return a manifest as a Helm template; JSON, which YAML contains, so that indentation does not matter."""
    text = json.dumps(manifest, indent=1)
    text = _VALUE.sub(lambda found: f"{{{{ toJson .Values.{found[1]} }}}}", text)
    text = text.replace("$release", "{{ .Release.Name }}").replace("$namespace", "{{ .Release.Namespace }}")
    condition = options.get("when")
    return (f"{{{{- if .Values.{condition} }}}}\n{text}\n{{{{- end }}}}\n" if condition else f"{text}\n").encode()


def workload_manifest(chart: str, workload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Deployment, DaemonSet or StatefulSet with what the record knows of it."""
    name = workload["name"]
    labels = {
        "app.kubernetes.io/name": chart,
        "app.kubernetes.io/instance": "$release",
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/component": name,
        **(workload.get("labels") or {}),
    }
    pod: dict[str, Any] = {"containers": [{"name": chart, "image": workload["image"]}]}
    pod |= {key: workload[key] for key in ("nodeSelector", "tolerations", "affinity") if workload.get(key)}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if workload["kind"] == "StatefulSet":
        spec["serviceName"] = name
    return {
        "apiVersion": "apps/v1",
        "kind": workload["kind"],
        "metadata": {"name": name, "namespace": "$namespace", "labels": labels},
        "spec": spec,
    }


def definition(crd: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a record's entry; the last version is the stored one."""
    kind, plural = crd["kind"], crd["plural"]
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == list(crd["versions"])[-1],
            "schema": {"openAPIV3Schema": schema(fields)},
            "subresources": {"status": {}},
        }
        for name, fields in crd["versions"].items()
    ]
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{crd['group']}",
            "annotations": dict(crd.get("annotations") or {}),
        },
        "spec": {"group": crd["group"], "names": names, "scope": crd["scope"], "versions": versions},
    }


def schema(fields: Any) -> dict[str, Any]:
    """Return the OpenAPI schema of a record's short form.

    A type's name (string, integer, number, boolean, int-or-string, any); `string(a|b)` for an enumeration; a list of
    one item for an array; an object's fields, where a name that ends with `!` is required; `{"*": item}` for a map.
    """
    if isinstance(fields, list):
        return {"type": "array", "items": schema(fields[0])}
    if isinstance(fields, Mapping):
        if set(fields) == {"*"}:
            return {"type": "object", "additionalProperties": schema(fields["*"])}
        found: dict[str, Any] = {"type": "object"}
        if fields:
            found["properties"] = {key.removesuffix("!"): schema(item) for key, item in fields.items()}
        required = [key.removesuffix("!") for key in fields if key.endswith("!")]
        return {**found, "required": required} if required else found
    kind, opened, rest = str(fields).partition("(")
    if opened:
        return {"type": kind, "enum": rest.removesuffix(")").split("|")}
    if kind == "int-or-string":
        return {"x-kubernetes-int-or-string": True}
    if kind in _TYPES:
        return {"type": kind}
    return {"x-kubernetes-preserve-unknown-fields": True}
