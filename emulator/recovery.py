"""Takes into a stack's state what a killed engine had created on the cluster but not yet written down.

The engine writes its state at the end of an update (see `Engine.run`), and a killed one does not get there. The objects
that it created are then on the cluster, carry its field manager and stand in the program, but not in the state: the
next update would fail, because they exist already. This module finds them by a preview and adds them to the state,
so that the next update, which refreshes first, reads them and carries on. What was there before the killed update
began is somebody else's, whoever manages it, and is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import kubernetes
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

FIELD_MANAGER = "pulumi-kubernetes"
"""Field manager under which the Kubernetes provider creates objects; its updates add a suffix."""

MASKED = "[secret]"
"""What a preview shows in place of a secret."""

CLOCK_SKEW = timedelta(seconds=30)
"""How far the cluster's clock may be behind this machine's."""

State = dict[str, Any]
"""A resource as the engine writes it."""


class Objects:
    """The cluster's objects, as far as recovery asks for them."""

    def __init__(self, client: kubernetes.dynamic.DynamicClient) -> None:
        self._client = client

    def created_by_engine(self, inputs: Mapping[str, Any]) -> datetime | None:
        """Return when the Kubernetes provider created the object that these inputs declare.

        None when there is no such object, or somebody else created it.
        """
        metadata = inputs["metadata"]
        try:
            kind = self._kind(inputs)
            found = self._client.get(kind, name=metadata["name"], namespace=metadata.get("namespace")).to_dict()
        except (NotFoundError, ResourceNotFoundError):
            return None
        managers = [entry["manager"] for entry in found["metadata"].get("managedFields") or ()]
        if not any(manager.startswith(FIELD_MANAGER) for manager in managers):
            return None
        return datetime.fromisoformat(found["metadata"]["creationTimestamp"])

    def delete(self, inputs: Mapping[str, Any]) -> None:
        """Delete the object that these inputs declare."""
        metadata = inputs["metadata"]
        self._client.delete(self._kind(inputs), name=metadata["name"], namespace=metadata.get("namespace"))

    def _kind(self, inputs: Mapping[str, Any]) -> Any:
        return self._client.resources.get(api_version=inputs["apiVersion"], kind=inputs["kind"])


def creations(steps: Iterable[Mapping[str, Any]]) -> list[State]:
    """Return the states that a preview's steps would create, in its order: what is depended on comes first."""
    return [dict(step["newState"]) for step in steps if step["op"] == "create"]


def lost(
    planned: Sequence[State], objects: Objects, *, since: datetime | None, pending: Collection[str]
) -> list[State]:
    """Return those of the planned creations that a killed engine has already carried out.

    since:   when the killed update began; None where only `pending` is known.
    pending: URNs whose creation the engine had written down as begun.

    A Secret among them is deleted, to be created anew: a preview does not show its content, and the state must.
    """
    found = []
    for state in planned:
        inputs = state.get("inputs") or {}
        if not state["type"].startswith("kubernetes:") or "name" not in (inputs.get("metadata") or {}):
            continue
        created = objects.created_by_engine(inputs)
        if created is None or not (state["urn"] in pending or (since is not None and created >= since - CLOCK_SKEW)):
            continue
        if _masked(inputs):
            objects.delete(inputs)
        else:
            found.append(state)
    return found


def adopted(deployment: Mapping[str, Any], planned: Sequence[State], found: Sequence[State]) -> dict[str, Any]:
    """Return the deployment with the found resources, and the components above them, added to its resources.

    The providers they use must be in the deployment. What was pending is settled by this and dropped.
    """
    resources: list[State] = list(deployment.get("resources") or ())
    known = {state["urn"] for state in resources}
    ids = {state["urn"]: state.get("id") for state in resources}
    carried_out = {state["urn"] for state in found}
    for state in planned:
        if state["urn"] in known or (state["custom"] and state["urn"] not in carried_out):
            continue
        resources.append(_recorded(state, known, ids))
        known.add(state["urn"])
    return {**deployment, "resources": resources, "pending_operations": []}


def providers(found: Iterable[State]) -> set[str]:
    """Return the URNs of the provider resources that these resources use."""
    return {state["provider"].rpartition("::")[0] for state in found}


def _recorded(state: State, known: set[str], ids: Mapping[str, str | None]) -> State:
    kept = {key: value for key, value in state.items() if key not in ("stackTrace", "sourcePosition")}
    kept["dependencies"] = [urn for urn in state.get("dependencies") or () if urn in known]
    kept["propertyDependencies"] = {
        name: [urn for urn in urns or () if urn in known]
        for name, urns in (state.get("propertyDependencies") or {}).items()
    }
    if state["custom"]:
        metadata = state["inputs"]["metadata"]
        provider, _, _ = state["provider"].rpartition("::")
        kept["provider"] = f"{provider}::{ids[provider]}"
        kept["id"] = "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)
        kept["outputs"] = dict(state["inputs"])
    return kept


def _masked(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_masked(item) for item in value.values())
    if isinstance(value, list):
        return any(_masked(item) for item in value)
    return bool(value == MASKED)
