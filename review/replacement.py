"""Decide which changed inputs make a provider replace a resource, without a call to the provider's Diff.

A plan has no real objects, so no provider can compare them. The rules of pulumi-kubernetes, pulumi-azure-native and
pulumi-openstack apply to objects, Azure resources and OpenStack resources, as far as `immutable` has them.
"""

from collections.abc import Mapping
from typing import Any, Final

from review import immutable
from runner.properties import WILDCARD, Path, contains, parse

_RELEASE: Final = "kubernetes:helm.sh/v3:Release"
_KUBERNETES: Final = "kubernetes:"
_KUBERNETES_PROVIDER: Final = "pulumi:providers:kubernetes"
_AZURE: Final = "azure-native:"
_OPENSTACK: Final = "openstack:"
_RANDOM: Final = "random:"
_OWN: Final = "pulumi-python:dynamic/mlbatch:"
_CONNECTION: Final = frozenset({"kubeconfig", "context", "cluster"})


def azure_type(token: str) -> str | None:
    """Return `containerservice:AgentPool` for the type of an azure-native resource of any API version, else None."""
    if not token.startswith(_AZURE):
        return None
    module, _, kind = token.removeprefix(_AZURE).rpartition(":")
    return f"{module.partition('/')[0]}:{kind}"


def is_cloud(token: str) -> bool:
    """Return whether the resource type is in a cloud, where other resources can be part of its identity."""
    return token.startswith((_AZURE, _OPENSTACK))


def forces(token: str, path: Path, value: Any, inputs: Mapping[str, Any], provider: Mapping[str, Any]) -> bool:
    """Return whether setting an input to a value makes the provider replace the resource.

    token: its type. value: the new value, None for a removed input. inputs: all of the new inputs.
    provider: the inputs of its provider resource.
    """
    if token == _KUBERNETES_PROVIDER:
        return path[0] == "clusterIdentifier" or (path[0] in _CONNECTION and "clusterIdentifier" not in inputs)
    if token == _RELEASE:
        return path[0] in immutable.RELEASE
    if token.startswith(_RANDOM):
        return True
    if token.startswith(_OWN):
        return path[0] in immutable.OWN[token.removeprefix(_OWN)]
    if (kind := azure_type(token)) is not None:
        forcing = immutable.of_azure(kind, str(path[0]))
    elif token.startswith(_OPENSTACK):
        forcing = immutable.of_openstack(token.rpartition(":")[2])
    elif token.startswith(_KUBERNETES):
        forcing = immutable.of_object(
            inputs,
            patch=token.endswith(f":{inputs.get('kind')}Patch"),
            config_map_mutable=_is_true(provider.get("enableConfigMapMutable")),
            secret_mutable=_is_true(provider.get("enableSecretMutable")),
        )
    else:
        return False
    return any(touches(path, value, each) for each in forcing)


def touches(changed: Path, value: Any, path: Path) -> bool:
    """Return whether setting `changed` changes a path: at it, below it, or above it if the value contains it."""
    for mine, theirs in zip(changed, path, strict=False):
        if not (isinstance(mine, int) if theirs == WILDCARD else mine == theirs):
            return False
    return len(changed) >= len(path) or _has(value, path[len(changed) :])


def overlaps(pattern: str, path: Path) -> bool:
    """Return whether a changed path is at, below or above a property path of the engine's options."""
    listed = parse(pattern)
    return contains(listed, path) or contains(path, listed)


def covers(pattern: str, path: Path) -> bool:
    """Return whether a changed path is at or below a property path of the engine's options."""
    return contains(parse(pattern), path)


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _has(value: Any, path: Path) -> bool:
    if not path:
        return True
    head, rest = path[0], path[1:]
    if head == WILDCARD:
        return isinstance(value, list) and any(_has(item, rest) for item in value)
    return isinstance(value, dict) and head in value and _has(value[head], rest)
