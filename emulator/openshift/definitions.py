"""OpenShift's own definitions, from the Go module that holds them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from emulator.paths import Paths
from emulator.toolchain import OPENSHIFT, Toolchain

_MODULE: Final = "github.com/openshift/api"
_FILES: Final = (
    "security/v1/zz_generated.crd-manifests/0000_03_config-operator_01_securitycontextconstraints.crd.yaml",
    "route/v1/zz_generated.crd-manifests/routes.crd.yaml",
    "config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
    "config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
    "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-Default.crd.yaml",
    "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_ingresses.crd.yaml",
    "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_oauths.crd.yaml",
)


def folder(paths: Paths) -> Path:
    """Return the folder of a state's definitions."""
    return paths.mirror / "openshift"


def fill(paths: Paths, toolchain: Toolchain) -> None:
    """Copy the definitions into the mirror. Raises ToolchainError when the module cannot be had."""
    target = folder(paths)
    target.mkdir(parents=True, exist_ok=True)
    module = toolchain.module_folder(OPENSHIFT, _MODULE)
    for name in _FILES:
        unfinished = target / f"{Path(name).name}.unfinished"
        shutil.copyfile(module / name, unfinished)
        os.replace(unfinished, unfinished.with_suffix(""))
    for file in target.glob("*.yaml"):
        if file.name not in {Path(name).name for name in _FILES}:
            file.unlink()
