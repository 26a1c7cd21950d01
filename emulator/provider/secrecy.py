"""Which parts of an object the engine has to keep secret.

The rules are those of the official provider: secretness is copied from the inputs to the same paths of the outputs,
a list with any secret is secret as a whole, and the contents of a Secret object always are.
"""

from __future__ import annotations

from typing import Any

from emulator.plugin.wire import Properties, Secret, contains_secret


def annotate(values: dict[str, Any], marked: dict[str, Any]) -> dict[str, Any]:
    """Return `values` with `Secret` wrappers where `marked` has them; shares what is not secret.

    `data` and `stringData` of a kind named Secret are secret whether or not the inputs say so.
    """
    if values.get("kind") == "Secret":
        return {
            key: Secret(value) if key in ("data", "stringData") and not isinstance(value, Secret) else value
            for key, value in values.items()
        }
    result = None
    for key, source in marked.items():
        if key not in values:
            continue
        value = values[key]
        if isinstance(value, dict) and isinstance(source, dict):
            new: Any = annotate(value, source)
        elif not isinstance(value, Secret) and contains_secret(source):
            new = Secret(value)
        else:
            continue
        if new is not value:
            if result is None:
                result = dict(values)
            result[key] = new
    return values if result is None else result


def secret_as(given: Properties, values: dict[str, Any]) -> dict[str, Any]:
    """Return `values` with what is secret in `given`; the very same object when there is nothing."""
    return annotate(values, given.marked) if given.has_secrets or values.get("kind") == "Secret" else values
