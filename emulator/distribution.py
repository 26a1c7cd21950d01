"""Which distribution of Kubernetes a stack's local cluster is, what runs on it, and which cloud is beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from runner.engine import EngineError
from runner.stack_file import StackFile

OPENSHIFT = "openshift"
OPENSTACK = "openstack"
JOBS = "jobs"
OLDER_KUEUE = "kueue-0.18"
OPERATOR_HUB = "openshift-operator-hub"
"""An OpenShift that installs operators from a catalog."""


def parts(root: Path, stack: str) -> dict[str, bool]:
    """Return what of a stack's local cluster is no plain Kubernetes', as the toolchain, the mirror and it take it.

    See `local/distributions.yaml`. Raises EngineError where the stack's file is not YAML.
    """
    found = next(iter(_meant(root, stack, "distribution")), None)
    return {"openshift": found in (OPENSHIFT, OPERATOR_HUB), "operator_hub": found == OPERATOR_HUB}


def require_brought(root: Path, stack: str) -> None:
    """Refuse a stack whose file asks for what its local cluster does not have: an update would wait for it in vain.

    Raises EngineError with the setting, its value there, and those that are here.
    """
    for rule in _rules(root, stack, "distribution"):
        for setting, brought in (rule.get("brings") or {}).items():
            value = _value(_config(root, stack), setting)
            if value not in brought:
                raise EngineError(
                    f"{setting} is {_said(value)} in Pulumi.{stack}.yaml, and the local cluster brings "
                    f"{' or '.join(_said(each) for each in brought)} alone: change it there to try the stack here"
                )


def _said(value: object) -> str:
    return "no key" if value is None else f"{value!r}"


def has_openstack(root: Path, stack: str) -> bool:
    """Tell whether a stack's local environment has an OpenStack; see `local/clouds.yaml`.

    Raises EngineError where the stack's file is not YAML.
    """
    return OPENSTACK in _meant(root, stack, "cloud")


def has_job_operators(root: Path, stack: str) -> bool:
    """Tell whether a stack's settings have operators make the pods of jobs; see `local/operators.yaml`.

    Raises EngineError where the stack's file is not YAML.
    """
    return JOBS in _meant(root, stack, "operator")


def has_older_kueue(root: Path, stack: str) -> bool:
    """Tell whether a stack's settings name the older Kueue; see `local/operators.yaml`.

    Raises EngineError where the stack's file is not YAML.
    """
    return OLDER_KUEUE in _meant(root, stack, "operator")


def _meant(root: Path, stack: str, what: str) -> list[str]:
    """Return what the rules of `local/<what>s.yaml`, in their order, say of a stack whose file has their settings."""
    return [rule[what] for rule in _rules(root, stack, what)]


def _rules(root: Path, stack: str, what: str) -> list[Mapping[str, Any]]:
    """Return the rules of `local/<what>s.yaml` that hold for a stack."""
    known = root / "local" / f"{what}s.yaml"
    if not known.exists():
        return []
    config = _config(root, stack)
    return [rule for rule in yaml.safe_load(known.read_text()) if _value(config, rule["setting"]) == rule["value"]]


def _config(root: Path, stack: str) -> Mapping[str, Any]:
    """Return the settings of a stack's file, none where there is no file."""
    file = root / f"Pulumi.{stack}.yaml"
    try:
        return StackFile(file.read_text()).config if file.exists() else {}
    except ValueError as error:
        raise EngineError(f"{file}: {error}") from None


def _value(config: Mapping[str, Any], setting: str) -> object:
    """Return what a stack's file has for a setting, which may be in a section: `project:section.key`."""
    section, *keys = setting.split(".")
    value: Any = config.get(section)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
