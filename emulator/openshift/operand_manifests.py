"""The manifests of OpenShift AI's components, which are in its operator's image (`/opt/manifests`).

Kueue's are those of OpenShift AI 2.16. KubeRay's and the training operator's are upstream's, in the locally built
versions, with the paths and variables of the product's forks. AppWrapper, in the version for this Kueue and with
upstream's configuration, replaces the CodeFlare operator. Components that are always `Removed` here are empty.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import yaml

from emulator.toolchain import KUBERNETES_1_34, KUBERNETES_1_36, OPENDATAHUB_KUEUE, Toolchain

KUEUE: Final = "github.com/opendatahub-io/kueue"
_REGISTRY: Final = "registry.redhat.io/rhoai"
IMAGES: Final = {
    "kueue": f"{_REGISTRY}/odh-kueue-controller-rhel8:v2.16.0",
    "ray": f"{_REGISTRY}/odh-kuberay-operator-controller-rhel8:v2.16.0",
    "trainingoperator": f"{_REGISTRY}/odh-training-operator-rhel8:v2.16.0",
    "codeflare": f"{_REGISTRY}/odh-codeflare-operator-rhel8:v2.16.0",
}
_REMOVED: Final = (
    "dashboard/rhoai/onprem",
    "data-science-pipelines-operator/overlays/rhoai",
    "kserve/overlays/odh",
    "odh-model-controller/base",
    "model-mesh/overlays/odh",
    "model-registry-operator/overlays/odh",
    "model-registry-operator/overlays/odh/extras",
    "trustyai-service-operator/overlays/rhoai",
    "odh-notebook-controller/odh-notebook-controller/base",
    "odh-notebook-controller/kf-notebook-controller/overlays/openshift",
    "notebooks/overlays/additional",
    "monitoring/segment",
    "monitoring/networkpolicy/operator",
    "monitoring/networkpolicy/monitoring",
    "monitoring/networkpolicy/applications",
)
_IMAGE_VARIABLE: Final = {"varReference": [{"path": "spec/template/spec/containers[]/image", "kind": "Deployment"}]}


def write(target: Path, toolchain: Toolchain) -> None:
    """Write all manifests into a folder. Raises ToolchainError if a module cannot be downloaded."""
    kueue = _copy(toolchain.module_folder(OPENDATAHUB_KUEUE, "sigs.k8s.io/kueue") / "config", target / "kueue")
    (kueue / "rhoai" / "params.env").write_text(f"odh-kueue-controller-image={IMAGES['kueue']}\n")
    _ray(toolchain.module_folder(KUBERNETES_1_34, "github.com/ray-project/kuberay/ray-operator"), target / "ray")
    training = toolchain.module_folder(KUBERNETES_1_36, "github.com/kubeflow/training-operator")
    _training_operator(training, target / "trainingoperator")
    wrapper = toolchain.module_folder(OPENDATAHUB_KUEUE, "github.com/project-codeflare/appwrapper")
    _codeflare(wrapper, target / "codeflare")
    for path in _REMOVED:
        _nothing(target / path)
    monitoring = target / "monitoring" / "base"
    _nothing(monitoring, namespace="redhat-ods-monitoring")
    (monitoring / "rhods-servicemonitor.yaml").write_text("# <odh_monitoring_project>\n")


def _ray(module: Path, target: Path) -> None:
    _copy(module / "config", target)
    name, patch = "kuberay-operator", "kuberay-operator-image-patch.yaml"
    _overlay(target / "openshift", ["../default"], "ray", patch)
    _write(target / "openshift" / patch, _patch(name))


def _training_operator(module: Path, target: Path) -> None:
    _copy(module / "manifests", target)
    overlay, patch = target / "rhoai", "manager_config_patch.yaml"
    secret = {"name": "training-operator-webhook-cert", "options": {"disableNameSuffixHash": True}}
    _overlay(overlay, ["../base"], "trainingoperator", patch, secretGenerator=[secret])
    _write(overlay / patch, _patch("training-operator"))


def _codeflare(module: Path, target: Path) -> None:
    """Write AppWrapper's manifests with the names, Deployment and account of the CodeFlare operator."""
    _copy(module / "config", target)
    service = target / "webhook" / "service.yaml"
    service.write_text(service.read_text().replace("control-plane: controller-manager", _SELECTOR))
    mount = {"mountPath": "/tmp/k8s-webhook-server/serving-certs", "name": "cert", "readOnly": True}  # noqa: S108
    patch = _patch("manager", namespace="system")
    pod: dict[str, Any] = patch["spec"]["template"]["spec"]
    arguments = [f"--config={_PREFIX}{_APPWRAPPER_CONFIG}"]
    pod["containers"] = [{"name": "manager", "args": arguments, "volumeMounts": [mount]}]
    pod["volumes"] = [{"name": "cert", "secret": {"defaultMode": 420, "secretName": "webhook-server-cert"}}]
    _write(target / "default" / "kept-config.yaml", _appwrapper_config(module))
    for name in ("editor_role_patch.yaml", "viewer_role_patch.yaml"):
        shutil.copyfile(target / "default" / name, target / "default" / f"kept-{name}")
    resources = ["kept-config.yaml", "../crd", "../rbac", "../manager", "../webhook", "../internalcert"]
    _overlay(
        target / "default",
        resources,
        "codeflare",
        "manager_webhook_patch.yaml",
        "kept-editor_role_patch.yaml",
        "kept-viewer_role_patch.yaml",
        variable="codeflare_operator_controller_image",
        namePrefix=_PREFIX,
    )
    _write(target / "default" / "manager_webhook_patch.yaml", patch)
    _write(target / "manager" / "kustomization.yaml", {"resources": ["manager.yaml"]})


def _appwrapper_config(module: Path) -> dict[str, Any]:
    """Return AppWrapper's own configuration, with the local names of its webhooks."""
    document: dict[str, Any] = yaml.safe_load((module / "config" / "default" / "config.yaml").read_text())
    names = {
        "mutatingWebhookConfigName": "mutating-webhook-configuration",
        "validatingWebhookConfigName": "validating-webhook-configuration",
        "webhookServiceName": "webhook-service",
        "webhookSecretName": "webhook-server-cert",
    }
    settings = yaml.safe_load(document["data"]["config.yaml"])
    settings["certManagement"] = {key: f"{_PREFIX}{name}" for key, name in names.items()}
    document["metadata"]["name"] = _APPWRAPPER_CONFIG
    document["data"]["config.yaml"] = yaml.safe_dump(settings)
    return document


_PREFIX: Final = "codeflare-operator-"
_APPWRAPPER_CONFIG: Final = "appwrapper-config"
_SELECTOR: Final = "app.kubernetes.io/name: codeflare-operator"


def _overlay(
    folder: Path, resources: list[str], component: str, *patches: str, variable: str = "image", **more: object
) -> None:
    """Write a kustomization whose Deployments have the component's image in place of $(<variable>)."""
    parameters = f"{component}-parameters"
    reference = {"kind": "ConfigMap", "name": parameters, "apiVersion": "v1"}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "opendatahub",
        "resources": resources,
        "configMapGenerator": [{"name": parameters, "literals": [f"image={IMAGES[component]}"]}],
        "generatorOptions": {"disableNameSuffixHash": True},
        "vars": [{"name": variable, "objref": reference, "fieldref": {"fieldpath": "data.image"}}],
        "configurations": ["params.yaml"],
        "patches": [{"path": patch} for patch in patches],
        **more,
    }
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "kustomization.yaml", kustomization)
    _write(folder / "params.yaml", _IMAGE_VARIABLE)


def _patch(name: str, **metadata: str) -> dict[str, Any]:
    containers = [{"name": name, "image": "$(image)"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, **metadata},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


def _nothing(folder: Path, **metadata: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = "nothing-" + "-".join(folder.parts[-3:])
    empty = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name.lower(), **metadata}}
    _write(folder / "nothing.yaml", empty)
    _write(folder / "kustomization.yaml", {"resources": ["nothing.yaml"]})


def _copy(source: Path, target: Path) -> Path:
    """Copy a folder of Go's read-only module cache, and make the copy writable."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def _write(file: Path, document: object) -> None:
    file.write_text(yaml.safe_dump(document, sort_keys=False))
