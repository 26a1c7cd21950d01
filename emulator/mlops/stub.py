"""A stub of the repository of the OSS MLOps platform: its ten overlays, with the workloads that they really have.

The repository is no Go module, so that nothing of it can be had here. A site with internet access fetches the archive
that the catalogue of the program names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from emulator.charts import archive
from emulator.charts.sources import STUB_OF

NAME: Final = "oss-mlops-platform"
COMMIT: Final = "087a88b2fd8b7c38f349b85efa222b671840ce3b"
SOURCE: Final = f"https://github.com/OSS-MLOPS-PLATFORM/oss-mlops-platform/tree/{COMMIT}"

_CONTENT: Final = Path(__file__).with_name("stub.yaml")
_PARTS: Final = "deployment/stub"
_GROUP: Final = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}


def fill(mirror: Path) -> None:
    """Put the archive into the mirror where it is missing, or older than what it is made from.

    The archive of the repository itself is left alone, whoever has put it there.
    """
    file = mirror / f"{NAME}-{COMMIT}.tar.gz"
    changed = max(_CONTENT.stat().st_mtime, Path(__file__).stat().st_mtime)
    if not file.exists() or (file.stat().st_mtime < changed and f"{_PARTS}/base/objects.yaml" in archive.unpack(file)):
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_bytes(archive.pack(f"{NAME}-{COMMIT}", files()))
        unfinished.replace(file)


def files() -> dict[str, bytes]:
    """Return the files of the repository, as far as overlays refer to them."""
    content = yaml.safe_load(_CONTENT.read_text())
    found: dict[str, bytes] = {}
    for overlay, made in content["overlays"].items():
        resources = [f"../../stub/{part}" for part in made["parts"]]
        note = {"emulator/stub-of-objects": str(made["objects"])}
        kustomization = {**_GROUP, "resources": resources, "commonAnnotations": note}
        found[f"deployment/envs/{overlay}/kustomization.yaml"] = yaml.safe_dump(kustomization).encode()
    for part, namespaces in content["parts"].items():
        objects = [item for namespace, inside in namespaces.items() for item in _objects(namespace, inside)]
        found[f"{_PARTS}/{part}/objects.yaml"] = yaml.safe_dump_all(objects, sort_keys=False).encode()
        kustomization = {**_GROUP, "resources": ["objects.yaml"]}
        found[f"{_PARTS}/{part}/kustomization.yaml"] = yaml.safe_dump(kustomization).encode()
    return found


def _objects(namespace: str, inside: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if inside.get("namespace"):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    for kind, key in (("Deployment", "deployments"), ("StatefulSet", "statefulSets")):
        for name, images in inside.get(key, {}).items():
            yield _object("apps/v1", kind, namespace, name, _workload(kind, name, images))
    for name, ports in inside.get("services", {}).items():
        listed = [{"name": f"port-{port}", "port": port} for port in ports]
        yield _object("v1", "Service", namespace, name, {"selector": {"app": name}, "ports": listed})
    for name, size in inside.get("claims", {}).items():
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        yield _object("v1", "PersistentVolumeClaim", namespace, name, claim)


def _object(version: str, kind: str, namespace: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "annotations": {STUB_OF: SOURCE}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def _workload(kind: str, name: str, images: list[str]) -> dict[str, Any]:
    containers = [{"name": f"container-{index}", "image": image} for index, image in enumerate(images)]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
    more = {"serviceName": name} if kind == "StatefulSet" else {}
    return {"selector": {"matchLabels": {"app": name}}, "template": template, **more}
