"""The manifests of OpenShift AI's components, which are in its operator's image (`/opt/manifests`).

Kueue's are those of OpenShift AI 2.16. KubeRay's and the training operator's are upstream's, in the locally built
versions, with the paths and variables of the product's forks (`operands`). AppWrapper, in the version for this Kueue
and with upstream's configuration, replaces the CodeFlare operator. Components that are always `Removed` here are empty.
"""

import shutil
from pathlib import Path
from typing import Any, Final

import yaml

from emulator.toolchain import KUBERNETES_1_34, KUBERNETES_1_36, OPENDATAHUB_KUEUE, Toolchain

_OVERLAYS: Final = Path(__file__).with_name("operands")
_REMOVED: Final = Path(__file__).with_suffix(".yaml")
_PREFIX: Final = "codeflare-operator-"
_SELECTOR: Final = "app.kubernetes.io/name: codeflare-operator"


def write(target: Path, toolchain: Toolchain) -> None:
    """Write all manifests into a folder. Raises ToolchainError if a module cannot be downloaded."""
    kuberay = toolchain.module_folder(KUBERNETES_1_34, "github.com/ray-project/kuberay/ray-operator")
    training = toolchain.module_folder(KUBERNETES_1_36, "github.com/kubeflow/training-operator")
    wrapper = toolchain.module_folder(OPENDATAHUB_KUEUE, "github.com/project-codeflare/appwrapper")
    _copy(toolchain.module_folder(OPENDATAHUB_KUEUE, "sigs.k8s.io/kueue") / "config", target / "kueue")
    _copy(kuberay / "config", target / "ray")
    _copy(training / "manifests", target / "trainingoperator")
    _copy(wrapper / "config", target / "codeflare")
    _as_codeflare(target / "codeflare")
    shutil.copytree(_OVERLAYS, target, dirs_exist_ok=True)
    for path in yaml.safe_load(_REMOVED.read_text()):
        _nothing(target / path)


def _as_codeflare(target: Path) -> None:
    """Give AppWrapper's manifests the names, Deployment and account of the CodeFlare operator."""
    service = target / "webhook" / "service.yaml"
    service.write_text(service.read_text().replace("control-plane: controller-manager", _SELECTOR))
    config = yaml.safe_load((target / "default" / "config.yaml").read_text())
    _write(target / "default" / "kept-config.yaml", _with_local_names(config))
    for name in ("editor_role_patch.yaml", "viewer_role_patch.yaml"):
        shutil.copyfile(target / "default" / name, target / "default" / f"kept-{name}")


def _with_local_names(config: dict[str, Any]) -> dict[str, Any]:
    """Return AppWrapper's own configuration with the local names of its webhooks."""
    names = {
        "mutatingWebhookConfigName": "mutating-webhook-configuration",
        "validatingWebhookConfigName": "validating-webhook-configuration",
        "webhookServiceName": "webhook-service",
        "webhookSecretName": "webhook-server-cert",
    }
    settings = yaml.safe_load(config["data"]["config.yaml"])
    settings["certManagement"] = {key: f"{_PREFIX}{name}" for key, name in names.items()}
    config["metadata"]["name"] = "appwrapper-config"
    config["data"]["config.yaml"] = yaml.safe_dump(settings)
    return config


def _nothing(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = "nothing-" + "-".join(folder.parts[-3:])
    _write(folder / "nothing.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name.lower()}})
    _write(folder / "kustomization.yaml", {"resources": ["nothing.yaml"]})


def _copy(source: Path, target: Path) -> None:
    """Copy a folder of Go's read-only module cache, and make the copy writable."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _write(file: Path, document: object) -> None:
    file.write_text(yaml.safe_dump(document, sort_keys=False))
