"""OperatorHub: the Operator Lifecycle Manager, and two catalogs.

Real: OLM's two operators, its catalog server, and Open Data Hub's operator 2.21, the base of OpenShift AI 2.16, with
its module's bundle. Stubs: the operators for OpenShift AI 3.4 (`red_hat`), and the GPU operator in the other catalog
(`certified.yaml`). Bundles contain their manifests, so OLM
does not unpack them from an image.
"""

import base64
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from emulator.charts.sources import STUBS
from emulator.cluster.api import Object
from emulator.openshift import operand_manifests
from emulator.openshift.definitions import API, FILES
from emulator.openshift.red_hat import bundles
from emulator.paths import Paths
from emulator.toolchain import KUBERNETES_1_34, OLM, OPENDATAHUB, Toolchain
from runner.files import replacing

VERSION: Final = "2.16.0"
PACKAGE: Final = "rhods-operator"
CSV: Final = f"{PACKAGE}.{VERSION}"
CHANNELS: Final = ("stable", "stable-2.16", "eus-2.16", "fast")

_OBJECTS: Final = Path(__file__).with_suffix(".yaml")
_VERSION_KIND: Final = "ClusterServiceVersion"

_OLM: Final = "github.com/operator-framework/operator-lifecycle-manager"
_OPERATOR: Final = "github.com/opendatahub-io/opendatahub-operator/v2"
_CERTIFIED: Final = Path(__file__).with_name("certified.yaml")


def fill(paths: Paths, toolchain: Toolchain) -> None:
    """Write definitions, catalogs and the operator's manifests into the mirror, unless they exist.

    Raises ToolchainError if a module cannot be downloaded.
    """
    target = folder(paths.mirror)
    if (target / "operands").exists():
        return
    with replacing(target) as unfinished:
        _write(unfinished, toolchain)
        bundles.write_operands(unfinished / "operands", paths, toolchain)
        shutil.rmtree(target, ignore_errors=True)


def _write(unfinished: Path, toolchain: Toolchain) -> None:
    definitions, catalog, other = (unfinished / name for name in ("definitions", "catalog", "certified"))
    for each in (definitions, catalog, other):
        each.mkdir(parents=True)
    api = toolchain.module_folder(KUBERNETES_1_34, API)
    crds = toolchain.module_folder(OLM, _OLM) / "deploy" / "chart" / "crds"
    for file in (*(api / name for name in FILES["operator_hub"]), *sorted(crds.glob("*.yaml"))):
        shutil.copyfile(file, definitions / file.name)
    bundle = toolchain.module_folder(OPENDATAHUB, _OPERATOR) / "bundle" / "manifests"
    manifests = [yaml.load(file.read_text(), Loader=yaml.CSafeLoader) for file in sorted(bundle.glob("*.yaml"))]
    _as_openshift_ai(next(each for each in manifests if each["kind"] == _VERSION_KIND))
    red_hats = [_package(PACKAGE, CHANNELS[0]), *_versions(PACKAGE, VERSION, CHANNELS, manifests)]
    for operator in bundles.OPERATORS:
        channels = operator["channels"]
        if operator["package"] != PACKAGE:
            red_hats.append(_package(operator["package"], channels[0]))
        version, *definitions_of = bundles.bundle(operator, toolchain)
        number = version["spec"]["version"]
        red_hats += _versions(operator["package"], number, channels, [version, *definitions_of])
    _write_catalog(catalog, red_hats)
    policies = json.loads((STUBS / "gpu-operator" / "crds" / "clusterpolicies.nvidia.com.json").read_text())
    gpu_operator = yaml.safe_load(_CERTIFIED.read_text())
    package, version = "gpu-operator-certified", gpu_operator["spec"]["version"]
    _write_catalog(
        other, [_package(package, "v26.3"), *_versions(package, version, ("v26.3",), [gpu_operator, policies])]
    )
    operand_manifests.write(unfinished / "manifests", toolchain)


def folder(mirror: Path) -> Path:
    """Return the folder of OperatorHub in a mirror."""
    return mirror / "operator-hub"


def definitions(paths: Paths) -> list[Object]:
    """Return OLM's definitions, and those that the operator needs in addition to OpenShift's."""
    texts = (file.read_text() for file in sorted((folder(paths.mirror) / "definitions").glob("*.yaml")))
    return [*(yaml.load(text, Loader=yaml.CSafeLoader) for text in texts), *_empty()]


def objects() -> list[Object]:
    """Return the objects that run OLM and the catalogs."""
    return list(yaml.safe_load_all(_OBJECTS.read_text()))


def _write_catalog(folder: Path, documents: Sequence[Object]) -> None:
    """Write a file-based catalog (operator-registry, docs: file-based catalogs)."""
    (folder / "catalog.json").write_text("\n".join(json.dumps(document) for document in documents))


def _package(name: str, channel: str) -> Object:
    return {"schema": "olm.package", "name": name, "defaultChannel": channel}


def _versions(package: str, version: str, channels: Sequence[str], manifests: Sequence[Object]) -> Iterator[Object]:
    """Yield the channels and the bundle of one version of a package."""
    csv = next(each for each in manifests if each["kind"] == _VERSION_KIND)
    name = csv["metadata"]["name"]
    properties: list[dict[str, Any]] = [{"type": "olm.package", "value": {"packageName": package, "version": version}}]
    for owned in csv["spec"]["customresourcedefinitions"]["owned"]:
        kind = {"group": owned["name"].partition(".")[2], "kind": owned["kind"], "version": owned["version"]}
        properties.append({"type": "olm.gvk", "value": kind})
    for manifest in manifests:
        data = base64.b64encode(json.dumps(manifest, default=str).encode()).decode()
        properties.append({"type": "olm.bundle.object", "value": {"data": data}})
    for channel in channels:
        yield {"schema": "olm.channel", "package": package, "name": channel, "entries": [{"name": name}]}
    yield {"schema": "olm.bundle", "package": package, "name": name, "image": "", "properties": properties}


def _as_openshift_ai(csv: Object) -> None:
    """Change Open Data Hub's version into OpenShift AI's: name, image and platform."""
    csv["metadata"]["name"] = CSV
    csv["spec"]["version"] = VERSION
    csv["spec"].pop("replaces", None)
    (deployment,) = csv["spec"]["install"]["spec"]["deployments"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container["image"] = f"registry.redhat.io/rhoai/odh-rhel8-operator:v{VERSION}"
    for variable in container["env"]:
        if variable["name"] == "ODH_PLATFORM_TYPE":
            variable["value"] = "SelfManagedRHOAI"
    # The Subscription sets it.
    container["env"] = [variable for variable in container["env"] if variable["name"] != "DISABLE_DSC_CONFIG"]


def _empty() -> Iterator[Object]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    approved = {"api-approved.kubernetes.io": "https://github.com/openshift/api"}
    for name, (kind, scope) in FILES["aggregated"].items():
        plural, _, group = name.partition(".")
        names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "annotations": approved},
            "spec": {"group": group, "names": names, "scope": scope, "versions": [version]},
        }
