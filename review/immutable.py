"""Inputs that a provider cannot change in place: setting one of them replaces the resource (immutable.yaml)."""

import re
from collections.abc import Mapping
from typing import Any, Final

from components.tables import Table  # noqa: TID251 - reads a file, without components
from runner.properties import Path, parse

_Inputs = Mapping[str, tuple[str, ...]]


class _Immutable(Table):
    kubernetes: Mapping[str, _Inputs]
    content: _Inputs
    release: tuple[str, ...]
    azure: _Inputs
    openstack: _Inputs
    own: _Inputs


_IMMUTABLE: Final = _Immutable.load(__name__)
RELEASE: Final = _IMMUTABLE.release
"""Inputs of a Helm release."""
OWN: Final = _IMMUTABLE.own
"""Inputs of resources whose provider is a part of the program, by kind."""
_IDENTITY: Final = ("metadata.name", "metadata.namespace")
_ADDRESS: Final = re.compile(r"^(scope|(?!eventHubName$)[a-z]\w*Name)$")
"""Inputs of Azure resources that are part of their address. An event hub is a target of logs."""


def of_object(
    inputs: Mapping[str, Any], *, patch: bool, config_map_mutable: bool, secret_mutable: bool
) -> tuple[Path, ...]:
    """Return the inputs whose change replaces a Kubernetes object.

    patch: it is a Patch resource, which only a change of identity replaces. config_map_mutable, secret_mutable: the
    provider's settings for objects that are not marked as immutable.
    """
    version, kind = str(inputs.get("apiVersion")).removeprefix("core/"), str(inputs.get("kind"))
    mutable = {"ConfigMap": config_map_mutable, "Secret": secret_mutable}
    fields: tuple[str, ...] = ()
    if not patch and version == "v1" and kind in mutable and (inputs.get("immutable") is True or not mutable[kind]):
        fields = _IMMUTABLE.content[kind]
    elif not patch:
        below = _IMMUTABLE.kubernetes.get(f"{version} {kind}", {})
        fields = tuple(f"{parent}.{name}".lstrip(".") for parent, names in below.items() for name in names)
    return tuple(parse(field) for field in (*_IDENTITY, *fields))


def of_azure(kind: str, top: str) -> tuple[Path, ...]:
    """Return the inputs at or below a top-level one whose change replaces an Azure resource.

    kind: for example `containerservice:AgentPool`. For an unlisted kind, the result is address and location.
    """
    if _ADDRESS.match(top):
        return ((top,),)
    listed = map(parse, _IMMUTABLE.azure.get(kind, ("location",)))
    return tuple(path for path in listed if path[0] == top)


def of_openstack(kind: str) -> tuple[Path, ...]:
    """Return the inputs whose change replaces an OpenStack resource. kind: for example `Instance`."""
    return tuple(parse(name) for name in ("region", "tenantId", *_IMMUTABLE.openstack.get(kind, ())))
