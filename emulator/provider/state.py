"""What the engine keeps of an object.

The state of a resource is its live object plus `__inputs`, `__initialApiVersion` and `__fieldManager`, as the
official provider keeps it, so that either can carry on with the other's stack. Managed fields are left out of it:
nothing reads them from there, and they are a third of an object.
"""

from __future__ import annotations

from typing import Any

from emulator.plugin.wire import Properties, Values
from emulator.provider import definitions
from emulator.provider.objects import READ_ONLY_METADATA, Manifest, is_crd, metadata
from emulator.provider.secrecy import secret_as

INPUTS, INITIAL_API_VERSION, FIELD_MANAGER = "__inputs", "__initialApiVersion", "__fieldManager"
_NOT_INPUTS_OF_IMPORTS = ("deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration")


def recorded(live: Manifest, inputs: Values, given: Properties, initial: str, manager: str) -> dict[str, Any]:
    """Return the state of a live object.

    inputs: those that made it. given: as they came from the engine, with what is secret in them. initial: the
    apiVersion under which it was created. manager: its own field manager.
    """
    outputs = dict(live)
    if "managedFields" in metadata(outputs):
        outputs["metadata"] = {key: value for key, value in metadata(live).items() if key != "managedFields"}
    if is_crd(outputs):
        outputs = definitions.underscored(outputs)
        inputs = definitions.underscored(inputs.marked if isinstance(inputs, Properties) else inputs)
    return {**secret_as(given, outputs), INPUTS: inputs, INITIAL_API_VERSION: initial, FIELD_MANAGER: manager}


def imported(live: Manifest) -> Manifest:
    """Return the inputs that would have made a live object."""
    meta = {key: value for key, value in metadata(live).items() if key not in READ_ONLY_METADATA}
    annotations = {
        key: value for key, value in (meta.pop("annotations", None) or {}).items() if key not in _NOT_INPUTS_OF_IMPORTS
    }
    if annotations:
        meta["annotations"] = annotations
    return {**{key: value for key, value in live.items() if key not in ("status", "metadata")}, "metadata": meta}
