"""The schemas of the kinds that the program declares and others define, closed: a field that they do not know is wrong.

An API server drops such a field with a warning, or refuses the object. Sources: Kueue's and AppWrapper's manifests and
the chart kube-prometheus-stack, from the mirror of a local OpenShift; the stubs of the charts of NVIDIA's network
operator and Volcano.
"""

import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

FILE: Final = Path(__file__).with_name("definitions.yaml")
STUBS: Final = Path(__file__).resolve().parents[3] / "emulator" / "charts" / "stubs"
KINDS: Final = frozenset(
    {
        "AppWrapper",
        "ClusterQueue",
        "LocalQueue",
        "PodMonitor",
        "PodGroup",
        "PrometheusRule",
        "ResourceFlavor",
        "SecurityContextConstraints",
        "ServiceMonitor",
        "Topology",
    }
)
_SAID_ELSEWHERE: Final = frozenset({"description", "x-kubernetes-validations", "default", "example"})

CONSTRAINTS: Final = "security.openshift.io/v1/SecurityContextConstraints"
"""Which the mirror of an OpenShift alone has."""

Schemas = Mapping[str, Mapping[str, Any]]
"""A kind's schema, by `<group>/<version>/<kind>`."""


def of_mirror(mirror: Path) -> Schemas:
    """Return the schemas that a mirror has."""
    found: dict[str, Mapping[str, Any]] = {}
    for text in _texts(mirror):
        if any(f"kind: {kind}\n" in text for kind in KINDS):
            for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
                if document and document["kind"] == "CustomResourceDefinition":
                    found |= _schemas(document) if document["spec"]["names"]["kind"] in KINDS else {}
    return dict(sorted(found.items()))


def _texts(mirror: Path) -> Iterator[str]:
    for file in (*sorted(mirror.glob("*.yaml")), *mirror.glob("openshift/*_securitycontextconstraints.crd.yaml")):
        yield file.read_text()
    (chart,) = mirror.glob("kube-prometheus-stack-*.tgz")
    with tarfile.open(chart) as archive:
        for member in archive.getmembers():
            if "/crds/crd-" in member.name:
                content = archive.extractfile(member)
                assert content is not None
                yield content.read().decode()


def stored() -> Schemas:
    """Return the schemas in this folder."""
    return dict(yaml.load(FILE.read_text(), Loader=yaml.CSafeLoader))


def known() -> Schemas:
    """Return all schemas: those in this folder, and those of the stubs of upstream's charts."""
    found = dict(stored())
    for file in STUBS.rglob("*.json"):
        document = json.loads(file.read_text())
        if document.get("kind") == "CustomResourceDefinition":
            found |= _schemas(document)
    return found


def _schemas(definition: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    spec = definition["spec"]
    return {
        f"{spec['group']}/{version['name']}/{spec['names']['kind']}": _object(version["schema"]["openAPIV3Schema"])
        for version in spec["versions"]
        if version["served"]
    }


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = closed(schema)
    found["properties"] = {
        **found.get("properties", {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    return found


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as JSON Schema. An object may have only its declared fields."""
    found: dict[str, Any] = {key: value for key, value in schema.items() if key not in _SAID_ELSEWHERE}
    if "properties" in schema:
        found["properties"] = {name: closed(field) for name, field in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            found.setdefault("additionalProperties", False)
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = closed(found[key])
    if found.pop("x-kubernetes-int-or-string", False):
        found = {"type": ["integer", "string"]}
    return {key: value for key, value in found.items() if not key.startswith("x-kubernetes-")}
