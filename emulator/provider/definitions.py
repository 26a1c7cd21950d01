"""What is different about a CustomResourceDefinition.

The SDK's CustomResourceDefinition type, and with it the official provider's state, spells the extensions of OpenAPI
schemas with underscores, Kubernetes with dashes. The API server drops two fields of what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DASHED = {
    f"x_kubernetes_{name}": f"x-kubernetes-{name.replace('_', '-')}"
    for name in (
        "embedded_resource",
        "int_or_string",
        "list_map_keys",
        "list_type",
        "map_type",
        "preserve_unknown_fields",
        "validations",
    )
}
_UNDERSCORED = {dashed: underscored for underscored, dashed in _DASHED.items()}


def dashed(value: Any) -> Any:
    """Return a definition, or a part of one, as Kubernetes spells it."""
    return _spelt(value, _DASHED)


def underscored(value: Any) -> Any:
    """Return a definition, or a part of one, as the state spells it."""
    return _spelt(value, _UNDERSCORED)


def _spelt(value: Any, spelling: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {spelling.get(key, key): _spelt(item, spelling) for key, item in value.items()}
    if isinstance(value, list):
        return [_spelt(item, spelling) for item in value]
    return value


def normalized(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition as the API server would."""
    found = {key: dashed(value) for key, value in definition.items() if key != "status"}
    spec = found.get("spec")
    if isinstance(spec, dict) and spec.get("preserveUnknownFields") is False:
        del spec["preserveUnknownFields"]
    return found
