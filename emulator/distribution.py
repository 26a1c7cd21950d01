"""Which distribution of Kubernetes a stack's local cluster is."""

from __future__ import annotations

from pathlib import Path

import yaml

from runner.engine import EngineError
from runner.stack_file import StackFile

OPENSHIFT = "openshift"


def is_openshift(root: Path, stack: str) -> bool:
    """Tell whether a stack's local cluster is an OpenShift; see `local/distributions.yaml`.

    Raises EngineError where the stack's file is no YAML.
    """
    file = root / f"Pulumi.{stack}.yaml"
    known = root / "local" / "distributions.yaml"
    if not file.exists() or not known.exists():
        return False
    try:
        config = StackFile(file.read_text()).config
    except ValueError as error:
        raise EngineError(f"{file}: {error}") from None
    return any(
        rule["distribution"] == OPENSHIFT and config.get(rule["setting"]) == rule["value"]
        for rule in yaml.safe_load(known.read_text())
    )
