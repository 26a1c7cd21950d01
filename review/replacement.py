"""Which changed inputs make a provider replace a resource, by type: what its Diff would say, asked without a provider.

A plan has no real objects behind it, so that no provider can be asked. Objects and Azure resources are judged by the
rules of the stand-in providers, which are those of pulumi-kubernetes and pulumi-azure-native.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from emulator.azure.services import KINDS
from emulator.plugin import paths
from emulator.plugin.errors import ProviderError
from emulator.plugin.paths import Path
from emulator.provider import replacement
from emulator.provider.objects import Type

_RELEASE: Final = "kubernetes:helm.sh/v3:Release"
_KUBERNETES_PROVIDER: Final = "pulumi:providers:kubernetes"
_AZURE: Final = "azure-native:"
_RANDOM: Final = "random:"

_OF_RELEASES: Final = frozenset({"name", "namespace"})
"""pulumi-kubernetes, `provider/pkg/provider/helm_release.go`, forceNewFields."""

_AZURE_ADDRESS: Final = re.compile(r"^(scope|location|[a-z]\w*Name)$")
"""Top-level inputs that are a part of the address of most Azure resources, or their location."""


def azure_type(token: str) -> str | None:
    """Return `containerservice:AgentPool` for the type of an azure-native resource of any API version, else None."""
    if not token.startswith(_AZURE):
        return None
    module, _, kind = token.removeprefix(_AZURE).rpartition(":")
    return f"{module.partition('/')[0]}:{kind}"


def forces(token: str, path: Path, value: Any, inputs: Mapping[str, Any], provider: Mapping[str, Any]) -> bool:
    """Tell whether setting an input to a value makes the provider replace the resource.

    token: its type. value: the new value, None for an input that is taken out. inputs: all of the new inputs.
    provider: the inputs of its provider resource.
    """
    if token == _KUBERNETES_PROVIDER:
        return path[0] == "clusterIdentifier" or (path[0] in _CONNECTION and "clusterIdentifier" not in inputs)
    if token == _RELEASE:
        return path[0] in _OF_RELEASES
    if token.startswith(_RANDOM):
        return True
    if (kind := azure_type(token)) is not None:
        return _azure_forces(kind, path, value)
    try:
        kubernetes = Type.of_token(token)
    except ProviderError:
        return False
    forcing = replacement.forcing_paths(
        dict(inputs),
        patch=kubernetes.patch,
        config_map_mutable=str(provider.get("enableConfigMapMutable")).lower() == "true",
        secret_mutable=str(provider.get("enableSecretMutable")).lower() == "true",
    )
    return replacement.forces(path, value, forcing)


_CONNECTION: Final = frozenset({"kubeconfig", "context", "cluster"})


def overlaps(pattern: str, path: Path) -> bool:
    """Tell whether a changed path lies at, below or above a property path of the engine's options."""
    listed = paths.parse(pattern)
    return paths.contains(listed, path) or paths.contains(path, listed)


def covers(pattern: str, path: Path) -> bool:
    """Tell whether a changed path lies at or below a property path of the engine's options."""
    return paths.contains(paths.parse(pattern), path)


def _azure_forces(kind: str, path: Path, value: Any) -> bool:
    """Answer for an Azure resource. Listed inputs are written `networkProfile.podCidr`, items of lists with `[]`."""
    played = KINDS.get(f"{_AZURE}{kind}")
    if played is None:
        return len(path) == 1 and _AZURE_ADDRESS.match(str(path[0])) is not None
    forcing = {*played.parameters, *played.replaces}
    key = ""
    for part in path:
        key = f"{key}[]" if isinstance(part, int) else f"{key}.{part}" if key else part
        if key in forcing:
            return True
    return any(_has(value, each.removeprefix(f"{key}.")) for each in forcing if each.startswith(f"{key}."))


def _has(value: Any, key: str) -> bool:
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return False
        value = value[part]
    return True
