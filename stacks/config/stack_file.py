"""Reads a stack's `Pulumi.<stack>.yaml` for programs that run without the engine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from stacks.config import engine_yaml, secrets
from stacks.config.errors import NAMESPACE, listed


def configuration(stack: str, folder: Path) -> dict[str, Any]:
    """Return a stack's configuration by key without the project's name. Of secrets, only the keys are returned.

    Raises ValueError if the folder does not have the stack, or the file is not a stack's.
    """
    file = folder / f"Pulumi.{stack}.yaml"
    if not file.is_file():
        known = sorted(each.name.split(".", 1)[1].removesuffix(".yaml") for each in folder.glob("Pulumi.*.yaml"))
        raise ValueError(f"there is no {file.name} here; stacks with a file: {listed(known)}")
    try:
        whole = value_of(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file.name}: {error}") from None
    found = (whole.get("config") or {}) if isinstance(whole, Mapping) else whole
    if not isinstance(found, Mapping | None):
        raise ValueError(f"{file.name}: it has no mapping `config` of keys such as {NAMESPACE}:target")
    prefix = f"{NAMESPACE}:"
    return {
        name.removeprefix(prefix): secrets.Concealed.SECRET if _has_secret(value) else value
        for name, value in (found or {}).items()
        if isinstance(name, str) and name.startswith(prefix)
    }


def _has_secret(value: object) -> bool:
    """Whether any part of a value is encrypted. The engine then treats the whole value as a secret.

    Source: Pulumi's SDK (`go/common/resource/config/object.go`, isSecureValue).
    """
    if isinstance(value, list):
        return any(map(_has_secret, value))
    if not isinstance(value, Mapping):
        return False
    is_secure = len(value) == 1 and isinstance(value.get("secure"), str)
    return is_secure or any(map(_has_secret, value.values()))


def value_of(text: str) -> Any:
    """Return the value of a YAML text, read as the engine does. Raises ValueError, which names only the place."""
    try:
        return engine_yaml.load(text)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "it has invalid characters"
        raise ValueError(f"{engine_yaml.place(error)} is not valid YAML: {problem}") from None
