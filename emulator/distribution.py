"""Which distribution of Kubernetes a stack's local cluster is, and which cloud its local environment has."""

from __future__ import annotations

from pathlib import Path

import yaml

from runner.engine import EngineError
from runner.stack_file import StackFile

OPENSHIFT = "openshift"
OPENSTACK = "openstack"


def is_openshift(root: Path, stack: str) -> bool:
    """Tell whether a stack's local cluster is an OpenShift; see `local/distributions.yaml`.

    Raises EngineError where the stack's file is no YAML.
    """
    return OPENSHIFT in _meant(root, stack, "distribution")


def has_openstack(root: Path, stack: str) -> bool:
    """Tell whether a stack's local environment has an OpenStack; see `local/clouds.yaml`.

    Raises EngineError where the stack's file is no YAML.
    """
    return OPENSTACK in _meant(root, stack, "cloud")


def _meant(root: Path, stack: str, what: str) -> set[str]:
    """Return what the rules of `local/<what>s.yaml` say of a stack whose file has their settings."""
    file = root / f"Pulumi.{stack}.yaml"
    known = root / "local" / f"{what}s.yaml"
    if not file.exists() or not known.exists():
        return set()
    try:
        config = StackFile(file.read_text()).config
    except ValueError as error:
        raise EngineError(f"{file}: {error}") from None
    rules = yaml.safe_load(known.read_text())
    return {rule[what] for rule in rules if config.get(rule["setting"]) == rule["value"]}
