"""A stub of the repository of the OSS MLOps platform: its ten overlays with all their objects, by name.

The overlays use Kubeflow's pipelines from their own repository, which has an empty stub. Neither repository is a Go
module, so their files are not available here. A site with internet access downloads the archives that the program's
catalogue names.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from emulator.charts import archive
from emulator.charts.sources import STUB_OF
from runner.files import replacing

NAME: Final = "oss-mlops-platform"
COMMIT: Final = "087a88b2fd8b7c38f349b85efa222b671840ce3b"
SOURCE: Final = f"https://github.com/OSS-MLOPS-PLATFORM/oss-mlops-platform/tree/{COMMIT}"

PIPELINES: Final = ("kubeflow-manifests", "d8d643f1a736b28c525bd9b8ee5c9b2f4a661b39")
"""Name and commit of the repository of Kubeflow's pipelines."""

_CONTENT: Final = Path(__file__).with_name("stub.yaml")
_PARTS: Final = "deployment/stub"
_GROUP: Final = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}


def fill(mirror: Path) -> None:
    """Write archives that are missing or older than their sources into the mirror.

    An archive of the real repository is not replaced.
    """
    pipelines = mirror / f"{'-'.join(PIPELINES)}.tar.gz"
    if not pipelines.exists():
        kustomization = {"applications/pipeline/upstream/base/kustomization.yaml": yaml.safe_dump(_GROUP).encode()}
        pipelines.write_bytes(archive.pack("-".join(PIPELINES), kustomization))
    file = mirror / f"{NAME}-{COMMIT}.tar.gz"
    changed = max(_CONTENT.stat().st_mtime, Path(__file__).stat().st_mtime)
    if not file.exists() or (file.stat().st_mtime < changed and f"{_PARTS}/base/objects.yaml" in archive.unpack(file)):
        with replacing(file) as unfinished:
            unfinished.write_bytes(archive.pack(f"{NAME}-{COMMIT}", files()))


def files() -> dict[str, bytes]:
    """Return the files of the repository that overlays refer to."""
    content = yaml.safe_load(_CONTENT.read_text())
    found: dict[str, bytes] = {}
    for overlay, parts in content["overlays"].items():
        kustomization = {**_GROUP, "resources": [f"../../stub/{part}" for part in parts]}
        found[f"deployment/envs/{overlay}/kustomization.yaml"] = yaml.safe_dump(kustomization).encode()
    for part, namespaces in content["parts"].items():
        objects = [item for namespace, inside in namespaces.items() for item in _objects(namespace, inside)]
        found[f"{_PARTS}/{part}/objects.yaml"] = yaml.safe_dump_all(objects, sort_keys=False).encode()
        kustomization = {**_GROUP, "resources": ["objects.yaml"]}
        found[f"{_PARTS}/{part}/kustomization.yaml"] = yaml.safe_dump(kustomization).encode()
    return found


def _objects(namespace: str, inside: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if inside.get("namespace"):
        yield _object("v1", "Namespace", "", namespace)
    for key, scope in (("definitions", "Namespaced"), ("clusterDefinitions", "Cluster")):
        for group, kinds in inside.get(key, {}).items():
            for kind, (plural, *versions) in kinds.items():
                yield _definition(scope, group, kind, plural, versions)
    for kind, key in (("Deployment", "deployments"), ("StatefulSet", "statefulSets")):
        for name, images in inside.get(key, {}).items():
            yield _object("apps/v1", kind, namespace, name, spec=_workload(kind, name, images))
    for name, ports in inside.get("services", {}).items():
        listed = [{"name": f"port-{port}", "port": port} for port in ports]
        yield _object("v1", "Service", namespace, name, spec={"selector": {"app": name}, "ports": listed})
    for name, size in inside.get("claims", {}).items():
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        yield _object("v1", "PersistentVolumeClaim", namespace, name, spec=claim)
    for name, bound in inside.get("bindings", {}).items():
        role_kind, _, role = bound.partition("/")
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role}
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        yield _object("rbac.authorization.k8s.io/v1", kind, namespace, name, roleRef=reference)
    for versioned, names in inside.get("objects", {}).items():
        version, _, kind = versioned.rpartition("/")
        for name in names:
            yield _object(version, kind, namespace, name, **_least(kind, name))


def _object(version: str, kind: str, namespace: str, name: str, **body: Any) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {STUB_OF: SOURCE}, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}


def _definition(scope: str, group: str, kind: str, plural: str, versions: Sequence[str]) -> dict[str, Any]:
    """Return a definition without validation."""
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = [
        {"name": version, "served": True, "storage": version == versions[0], "schema": schema} for version in versions
    ]
    found = _object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        f"{plural}.{group}",
        spec={"group": group, "scope": scope, "names": names, "versions": served},
    )
    if group.endswith(".k8s.io"):
        # The API server requires it for Kubernetes' own groups (kubernetes/enhancements, KEP 1111).
        found["metadata"]["annotations"]["api-approved.kubernetes.io"] = SOURCE
    return found


def _least(kind: str, name: str) -> dict[str, Any]:
    """Return the smallest body that the API server accepts, without fields that it drops, such as empty lists.

    Webhooks stay empty, because their pods are simulated.
    """
    selector = {"matchLabels": {"app": name}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    bodies: Mapping[str, dict[str, Any]] = {
        "ClusterRole": {"rules": []},
        "Role": {"rules": []},
        "PriorityClass": {"value": 1_000_000},
        "Profile": {"spec": {"owner": {"kind": "User", "name": "user@example.com"}}},
        "PodDisruptionBudget": {"spec": {"minAvailable": "80%", "selector": selector}},
        "HorizontalPodAutoscaler": {"spec": {"scaleTargetRef": target, "maxReplicas": 5}},
    }
    return bodies.get(kind, {})


def _workload(kind: str, name: str, images: list[str]) -> dict[str, Any]:
    containers = [{"name": f"container-{index}", "image": image} for index, image in enumerate(images)]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
    more = {"serviceName": name} if kind == "StatefulSet" else {}
    return {"selector": {"matchLabels": {"app": name}}, "template": template, **more}
