"""The definitions of every OpenShift, from their Go modules."""

import re
import shutil
from pathlib import Path
from typing import Final

import yaml

from emulator.cluster.api import Object
from emulator.paths import Paths
from emulator.toolchain import DEFINITIONS, KUBERNETES_1_34, Toolchain
from runner.files import replacing

API: Final = "github.com/openshift/api"
_MONITORING: Final = "github.com/prometheus-operator/prometheus-operator"
FILES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
"""The files and kinds in `definitions.yaml`."""

_EQUALS: Final = re.compile(r"^(\s*- )=$", re.MULTILINE)
"""An operator in a list of values. In YAML 1.1, which PyYAML reads, a plain `=` has a special meaning."""


def read(paths: Paths) -> list[Object]:
    """Return the definitions that `fill` wrote into the mirror."""
    texts = (_EQUALS.sub(r"\1'='", file.read_text()) for file in sorted(_folder(paths).glob("*.yaml")))
    return [yaml.load(text, Loader=yaml.CSafeLoader) for text in texts]


def fill(paths: Paths, toolchain: Toolchain) -> None:
    """Copy the definitions into the mirror. Raises ToolchainError if a module cannot be downloaded."""
    api = toolchain.module_folder(KUBERNETES_1_34, API)
    monitoring = toolchain.module_folder(DEFINITIONS, _MONITORING) / "example" / "prometheus-operator-crd"
    files = [api / name for name in FILES["api"]]
    files += [monitoring / f"monitoring.coreos.com_{kind}.yaml" for kind in FILES["monitoring"]]
    target = _folder(paths)
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        with replacing(target / file.name) as unfinished:
            shutil.copyfile(file, unfinished)
    for stale in {each.name for each in target.iterdir()} - {file.name for file in files}:
        (target / stale).unlink()


def _folder(paths: Paths) -> Path:
    return paths.mirror / "openshift"
