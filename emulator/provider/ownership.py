"""Field managers: who owns which field of a live object, and what an apply may send.

An object is created by a plain create under the manager `pulumi-kubernetes`; its first update hands those fields
over to the object's own manager `pulumi-kubernetes-<8 hex digits>`, which the state keeps, and applies under that one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from emulator.plugin import paths
from emulator.plugin.errors import ProviderError
from emulator.provider.errors import ApiError
from emulator.provider.objects import PATCH_FIELD_MANAGER, PATCH_FORCE, Manifest, annotation, is_true, metadata

CREATE_MANAGER = "pulumi-kubernetes"

# Managers whose fields the first update takes over: client-side creates of this provider, and kubectl.
_OURS_BEFORE_TRANSFER = frozenset({"pulumi-kubernetes", "pulumi-kubernetes.exe", "pulumi-resource-kubernetes"})
_TAKEN_OVER = frozenset({*_OURS_BEFORE_TRANSFER, "kubectl", "before-first-apply"})


def manager_for(inputs: Manifest, recorded: str) -> str:
    """Return the manager of an object: its annotation, else the one in the state, else a new random one."""
    return annotation(inputs, PATCH_FIELD_MANAGER) or recorded or f"{CREATE_MANAGER}-{os.urandom(4).hex()}"


def transfer(live: Manifest, manager: str) -> list[dict[str, Any]]:
    """Return the JSON patch that hands the fields of earlier managers to `manager`; empty when there are none."""
    entries: list[dict[str, Any]] = metadata(live).get("managedFields") or []
    taken = [entry for entry in entries if _is_taken_over(entry)]
    if not taken:
        return []
    kept = [entry for entry in entries if entry not in taken]
    own = next((entry for entry in kept if _is_own(entry, manager)), None)
    fields: dict[str, Any] = {}
    for entry in [*taken, *([own] if own else [])]:
        fields = _union(fields, entry.get("fieldsV1") or {})
    last = own or taken[-1]
    merged = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": last.get("apiVersion") or live["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if last.get("time"):
        merged["time"] = last["time"]
    value = [entry for entry in kept if entry is not own] + [merged]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": value},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata(live).get("resourceVersion")},
    ]


def _is_taken_over(entry: dict[str, Any]) -> bool:
    manager, operation = entry.get("manager"), entry.get("operation")
    if entry.get("subresource"):
        return False
    return manager in _TAKEN_OVER if operation == "Update" else (manager, operation) == ("kubectl", "Apply")


def _is_own(entry: dict[str, Any], manager: str) -> bool:
    return not entry.get("subresource") and entry.get("manager") == manager and entry.get("operation") == "Apply"


def _union(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    result = dict(left)
    for key, value in right.items():
        result[key] = _union(result[key], value) if key in result else value
    return result


def forced(inputs: Manifest, live: Manifest | None, *, always: bool, preview: bool) -> bool:
    """Decide whether an apply may take fields from other managers.

    At preview it may where the update itself would first take them over (`transfer`), or where a replacement would
    make a new object. Objects without any managed field are older than server-side apply.
    """
    if always or is_true(inputs, PATCH_FORCE):
        return True
    if live is None:
        return preview
    entries = metadata(live).get("managedFields") or []
    if preview and any(
        entry.get("operation") == "Update" and entry.get("manager") in _OURS_BEFORE_TRANSFER for entry in entries
    ):
        return True
    return not entries


def honour_ignored(inputs: Manifest, live: Manifest, manager: str, ignore: Sequence[str]) -> Manifest:
    """Adjust the object to apply for `ignoreChanges`.

    A field that only others own is left out, so that it neither conflicts nor becomes ours; any other is sent with
    its live value, so that it does not change. Paths into lists are left as the engine sends them, with the values
    of the state.
    """
    for text in ignore:
        path = paths.parse(text)
        keys = [part for part in path if isinstance(part, str) and part != paths.WILDCARD]
        if not keys or len(keys) != len(path):
            continue
        mine, theirs = _owners(live, manager, keys)
        inputs = _changed(inputs, live, keys, remove=theirs and not mine)
    return inputs


def _owners(live: Manifest, manager: str, keys: list[str]) -> tuple[bool, bool]:
    mine = theirs = False
    for entry in metadata(live).get("managedFields") or []:
        node: Any = entry.get("fieldsV1") or {}
        for key in keys:
            node = node.get(f"f:{key}") if isinstance(node, dict) else None
            if node is None:
                break
        else:
            if entry.get("manager") == manager:
                mine = True
            else:
                theirs = True
    return mine, theirs


def _changed(value: Manifest, live: Any, keys: list[str], *, remove: bool) -> Manifest:
    """Return the value with what is at the path of keys as in the live object, or without it."""
    key, rest = keys[0], keys[1:]
    if not isinstance(live, dict) or key not in live:
        return value  # what is not there cannot be ignored
    if not rest:
        others = {name: item for name, item in value.items() if name != key}
        return others if remove else {**value, key: live[key]}
    below = value.get(key, {})
    if not isinstance(below, dict):
        raise ProviderError(f"ignoreChanges: {key!r} is no map in the inputs, so nothing below it can be ignored")
    inner = _changed(below, live[key], rest, remove=remove)
    return {**value, key: inner} if inner is not below else value


def explained(error: ApiError, manager: str) -> ProviderError:
    """Turn a conflict into a message that names fields and managers and says what to do; return others as they are."""
    if not error.conflict:
        return error
    causes = error.details.get("causes") or []
    fields = [
        f"  {cause.get('field')}: {cause.get('message')}"
        for cause in causes
        if cause.get("reason") == "FieldManagerConflict"
    ]
    listed = "\n".join(fields) if fields else f"  {error}"
    return ProviderError(
        f"server-side apply as field manager {manager!r} conflicts with other managers of the object:\n{listed}\n"
        "Either take the field out of the program, or list it in ignoreChanges, or set the annotation "
        f'{PATCH_FORCE}: "true" on the resource to take the field over. See https://www.pulumi.com/registry/packages/'
        "kubernetes/how-to-guides/managing-resources-with-server-side-apply/#handle-field-conflicts-on-existing-resources"
    )
