"""The bundles of the stubs for OLM's catalog, and the manifests of what they install.

The definitions of cert-manager are upstream's. Those of the operators are in `definitions.yaml`.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from emulator import kustomize
from emulator.cluster.api import Object
from emulator.paths import Paths
from emulator.toolchain import DEFINITIONS, MODULES, Toolchain, pinned_version

_HERE: Final = Path(__file__).resolve().parent
OPERATORS: Final = yaml.safe_load((_HERE / "operators.yaml").read_text())
"""The operators, see `operators.yaml`."""
OPERANDS: Final = yaml.safe_load((_HERE / "operands.yaml").read_text())
_CERT_MANAGER: Final = "github.com/cert-manager/cert-manager"
_MODES: Final = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")


def bundle(operator: Mapping[str, Any], toolchain: Toolchain) -> list[Object]:
    """Return the version and the definitions of an operator. Raises ToolchainError if a module cannot be downloaded."""
    crds = toolchain.module_folder(DEFINITIONS, _CERT_MANAGER) / "deploy" / "crds"
    own = list(yaml.safe_load_all((_HERE / "definitions.yaml").read_text()))
    own += [yaml.load(file.read_text(), Loader=yaml.CSafeLoader) for file in sorted(crds.glob("*.yaml"))]
    return [_version(operator), *(each for each in own if each["metadata"]["name"] in operator["owns"])]


def _version(operator: Mapping[str, Any]) -> Object:
    """Return the ClusterServiceVersion of an operator."""
    name, account = operator["deployment"], operator["account"]
    labels = {"name": name}
    container = {
        "name": name,
        "image": operator["image"],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {"serviceAccountName": account, "securityContext": {"runAsNonRoot": True}, "containers": [container]}
    deployment = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    owned = [{"name": name, "kind": kind, "version": version} for name, (kind, version) in operator["owns"].items()]
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": operator["csv"], "namespace": "placeholder"},
        "spec": {
            "displayName": f"Stub of {operator['package']}",
            "version": operator["csv"].partition(".")[2].removeprefix("v"),
            "installModes": [{"type": mode, "supported": mode == operator["mode"]} for mode in _MODES],
            "customresourcedefinitions": {"owned": owned},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": [{"serviceAccountName": account, "rules": operator["rules"]}],
                    "deployments": [{"name": name, "spec": deployment}],
                },
            },
        },
    }


def write_operands(target: Path, paths: Paths, toolchain: Toolchain) -> None:
    """Write the manifests of what the operators install, a file for each. Raises ToolchainError."""
    target.mkdir()
    for name, operand in OPERANDS.items():
        documents = _manifests(operand, paths, toolchain)
        (target / f"{name}.yaml").write_text(yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False))


def _manifests(operand: Mapping[str, Any], paths: Paths, toolchain: Toolchain) -> Iterator[Object]:
    module, path = MODULES[operand["tool"]], operand["module"]
    source, image = toolchain.module_folder(module, path), f"{operand['image']}:{pinned_version(module, path)}"
    with tempfile.TemporaryDirectory() as folder:
        resources = [os.path.relpath(source / each, os.path.realpath(folder)) for each in operand["folders"]]
        overlay = {"resources": resources, **operand.get("kustomization", {})}
        Path(folder, "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        text = kustomize.render(paths, Path(folder)).replace(operand["replaced"], operand["namespace"])
    for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
        if document["kind"] == "Deployment":
            for container in document["spec"]["template"]["spec"]["containers"]:
                container["image"] = image
        if document["kind"] != "Namespace":
            yield document
