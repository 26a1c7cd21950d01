"""The Kubernetes distribution of a stack's local cluster, its operators, and its cloud."""

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
    """Return the flags of a stack's local cluster, as keyword arguments for toolchain, mirror and cluster.

    See `local/distributions.yaml`. Raises EngineError if the stack's file is not YAML.
    """
    found = next(iter(_meant(root, stack, "distribution")), None)
    return {"openshift": found in (OPENSHIFT, OPERATOR_HUB), "operator_hub": found == OPERATOR_HUB}


def require_brought(root: Path, stack: str) -> None:
    """Reject a stack with a setting that its local cluster does not support. Its update would wait until a timeout.

    Raises EngineError with the setting, its value, and the values that work locally.
    """
    for rule in _rules(root, stack, "distribution"):
        for setting, brought in (rule.get("brings") or {}).items():
            value = _value(read_config(root, stack), setting)
            if value not in brought:
                raise EngineError(
                    f"{setting} is {_said(value)} in Pulumi.{stack}.yaml, but the local cluster supports only "
                    f"{' or '.join(_said(each) for each in brought)}. Change it to try the stack locally"
                )


def _said(value: object) -> str:
    return "unset" if value is None else f"{value!r}"


def has_openstack(root: Path, stack: str) -> bool:
    """Tell whether a stack's local environment has an OpenStack; see `local/clouds.yaml`.

    Raises EngineError if the stack's file is not YAML.
    """
    return OPENSTACK in _meant(root, stack, "cloud")


def has_job_operators(root: Path, stack: str) -> bool:
    """Tell whether a stack enables operators that create the pods of jobs; see `local/operators.yaml`.

    Raises EngineError if the stack's file is not YAML.
    """
    return JOBS in _meant(root, stack, "operator")


def has_older_kueue(root: Path, stack: str) -> bool:
    """Tell whether a stack's settings name the older Kueue; see `local/operators.yaml`.

    Raises EngineError if the stack's file is not YAML.
    """
    return OLDER_KUEUE in _meant(root, stack, "operator")


def _meant(root: Path, stack: str, what: str) -> list[str]:
    """Return the results of the rules in `local/<what>s.yaml` that match a stack's file, in order."""
    return [rule[what] for rule in _rules(root, stack, what)]


def _rules(root: Path, stack: str, what: str) -> list[Mapping[str, Any]]:
    """Return the rules of `local/<what>s.yaml` that match a stack's file."""
    known = root / "local" / f"{what}s.yaml"
    if not known.exists():
        return []
    config = read_config(root, stack)
    return [rule for rule in yaml.safe_load(known.read_text()) if _value(config, rule["setting"]) == rule["value"]]


def read_config(root: Path, stack: str) -> Mapping[str, Any]:
    """Return the settings of a stack's file, none without a file. Raises EngineError if it is not YAML."""
    file = root / f"Pulumi.{stack}.yaml"
    try:
        return StackFile(file.read_text()).config if file.exists() else {}
    except ValueError as error:
        raise EngineError(f"{file}: {error}") from None


def _value(config: Mapping[str, Any], setting: str) -> object:
    """Return the value of a setting in a stack's file; it can be in a section: `project:section.key`."""
    section, *keys = setting.split(".")
    value: Any = config.get(section)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
