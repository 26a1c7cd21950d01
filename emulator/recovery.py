"""Takes into a stack's state what a killed engine had created but not yet written down.

The engine writes its state at the end of an update (see `Engine.start`), and a killed one does not get there. The
objects that it created are then on the cluster, carry its field manager and stand in the program, but not in the state:
the next update would fail, because they exist already. This module finds them by a preview and adds them to the state,
so that the next update, which refreshes first, reads them and carries on. What was there before the killed update
began is somebody else's, whoever manages it, and is left alone.

Azure resources come first, because without them a preview cannot know what is in the cluster; the emulated Azure knows
for which of the program's resources it has created each, with which inputs. Helm releases are taken in where they are
complete; the emulated provider carries on with others.

It belongs before an update, never before a command that only looks: it writes the state, and may delete a Secret.
Nothing is created by it, so that a destroy after a killed update finds what that has left, and no more.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import kubernetes
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

from runner.engine import Engine, EngineError
from runner.report import connect

FIELD_MANAGER = "pulumi-kubernetes"
"""Field manager under which the Kubernetes provider creates objects; its updates add a suffix."""

MASKED = "[secret]"
"""What a preview shows in place of a secret."""

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What a preview shows in place of what it cannot know (pulumi, sdk/go/common/resource/plugin/rpc.go)."""

RELEASE = "kubernetes:helm.sh/v3:Release"
KUBERNETES_PROVIDER = "pulumi:providers:kubernetes"
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"

CLOCK_SKEW = timedelta(seconds=30)
"""How far the cluster's clock may be behind this machine's."""

State = dict[str, Any]
"""A resource as the engine writes it."""


class Created(Protocol):
    """A resource as the emulated Azure hands it back."""

    @property
    def id(self) -> str: ...
    @property
    def inputs(self) -> dict[str, Any]: ...
    @property
    def outputs(self) -> dict[str, Any]: ...


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

    def installed(self, inputs: Mapping[str, Any]) -> datetime | None:
        """Return when the release that these inputs declare was installed, None when it is not, or not completely."""
        selector = f"owner=helm,status=deployed,version=1,name={inputs['name']}"
        secrets = self._client.resources.get(api_version="v1", kind="Secret")
        found = self._client.get(secrets, namespace=inputs["namespace"], label_selector=selector).to_dict()["items"]
        return datetime.fromisoformat(found[0]["metadata"]["creationTimestamp"]) if found else None

    def delete(self, inputs: Mapping[str, Any]) -> None:
        """Delete the object that these inputs declare."""
        metadata = inputs["metadata"]
        self._client.delete(self._kind(inputs), name=metadata["name"], namespace=metadata.get("namespace"))

    def _kind(self, inputs: Mapping[str, Any]) -> Any:
        return self._client.resources.get(api_version=inputs["apiVersion"], kind=inputs["kind"])


def recover(engine: Engine, orphans_in_azure: Callable[[], Mapping[str, Created]]) -> None:
    """Take over what a killed update of the engine's stack has created; nothing happens where none was killed.

    orphans_in_azure: returns what the emulated Azure has created for engines that do not know it, by URN. Raises
    EngineError where the stack cannot be previewed, or a live engine holds its lock.
    """
    deployment = engine.read_state()
    pending = {operation["resource"]["urn"] for operation in deployment.get("pending_operations") or ()}
    began = engine.killed
    if began is None and not pending:
        return
    engine.unlock()
    kubeconfig = engine.environment.kubeconfig
    planned = _planned_creations(engine)
    in_azure = handed_back(planned, orphans_in_azure())
    if in_azure:
        engine.write_state(imported(deployment, planned, in_azure, kubeconfig.read_text()))
        planned = _planned_creations(engine)
    found = missing_from_state(planned, Objects(connect(kubeconfig)), since=began, pending=pending)
    engine.write_state(imported(engine.read_state(), planned, found, kubeconfig.read_text()))
    engine.settle()


def _planned_creations(engine: Engine) -> list[State]:
    shown = engine.capture("preview", ["--json", "--refresh=false", "--non-interactive"])
    if shown.returncode != 0:
        raise EngineError(f"cannot preview the stack to recover it:\n{_diagnostics(shown.stdout, shown.stderr)}")
    return creations(json.loads(shown.stdout)["steps"])


def _diagnostics(printed: str, errors: str) -> str:
    try:
        messages = [item["message"] for item in json.loads(printed).get("diagnostics") or ()]
    except ValueError:
        messages = [printed]
    return "\n".join(part.strip() for part in [*messages, errors] if part.strip())


def creations(steps: Iterable[Mapping[str, Any]]) -> list[State]:
    """Return the states that a preview's steps would create, in its order: what is depended on comes first."""
    return [dict(step["newState"]) for step in steps if step["op"] == "create"]


def handed_back(planned: Sequence[State], orphans: Mapping[str, Created]) -> list[State]:
    """Return those of the planned creations that the emulated Azure has already carried out, as they are there.

    orphans: what it has created for engines that do not know it, by URN.
    """
    found = []
    for state in planned:
        created = orphans.get(state["urn"])
        if created is not None:
            shown = state.get("inputs") or {}
            inputs = {key: secret(value) if _masked(shown.get(key)) else value for key, value in created.inputs.items()}
            found.append({**state, "id": created.id, "inputs": inputs, "outputs": dict(created.outputs)})
    return found


def missing_from_state(
    planned: Sequence[State], objects: Objects, *, since: datetime | None, pending: Collection[str]
) -> list[State]:
    """Return those of the planned creations that a killed engine has already carried out.

    since:   when the killed update began; None where only `pending` is known.
    pending: URNs whose creation the engine had written down as begun.

    A Secret among them is deleted, to be created anew: a preview does not show its content, and the state must. What a
    preview cannot know is left to the emulated provider, which knows what it has created.
    """
    found = []
    for state in planned:
        inputs = state.get("inputs") or {}
        created = _created(state, inputs, objects)
        if created is None or not (state["urn"] in pending or (since is not None and created >= since - CLOCK_SKEW)):
            continue
        if not _contains(inputs, {MASKED, UNKNOWN}):
            found.append(state)
        elif state["type"] != RELEASE and _masked(inputs):
            objects.delete(inputs)
    return found


def _created(state: State, inputs: Mapping[str, Any], objects: Objects) -> datetime | None:
    if state["type"] == RELEASE:
        return objects.installed(inputs)
    if not state["type"].startswith("kubernetes:") or "name" not in (inputs.get("metadata") or {}):
        return None
    return objects.created_by_engine(inputs)


def imported(
    deployment: Mapping[str, Any], planned: Sequence[State], found: Sequence[State], kubeconfig: str
) -> dict[str, Any]:
    """Return the deployment with the found resources, what is above them and their providers added to its resources.

    kubeconfig: the text that a provider of Kubernetes objects starts with; the next update gives it the program's own.
    What was pending is settled by this and dropped.
    """
    resources: list[State] = list(deployment.get("resources") or ())
    known = {state["urn"] for state in resources}
    ids = {state["urn"]: state.get("id") for state in resources}
    carried_out = {state["urn"]: state for state in found}
    used = providers(found)
    for state in planned:
        urn = state["urn"]
        if urn in known or (state["custom"] and urn not in carried_out and urn not in used):
            continue
        recorded = carried_out.get(urn, state)
        if urn in used:
            recorded = _provider(state, kubeconfig)
            ids[urn] = recorded["id"]
        resources.append(_recorded(recorded, known, ids))
        known.add(urn)
    return {**deployment, "resources": resources, "pending_operations": []}


def providers(found: Iterable[State]) -> set[str]:
    """Return the URNs of the provider resources that these resources use."""
    return {state["provider"].rpartition("::")[0] for state in found}


def secret(value: Any) -> dict[str, str]:
    """Return a value as an import takes a secret, which the engine then encrypts."""
    return {_SIGNATURE: _SECRET, "plaintext": json.dumps(value)}


def _provider(state: State, kubeconfig: str) -> State:
    inputs = dict(state.get("inputs") or {})
    if state["type"] == KUBERNETES_PROVIDER:
        inputs["kubeconfig"] = secret(kubeconfig)
    return {**state, "id": str(uuid.uuid4()), "inputs": inputs, "outputs": inputs}


def _recorded(state: State, known: set[str], ids: Mapping[str, str | None]) -> State:
    kept = {key: value for key, value in state.items() if key not in ("stackTrace", "sourcePosition")}
    kept["dependencies"] = [urn for urn in state.get("dependencies") or () if urn in known]
    kept["propertyDependencies"] = {
        name: [urn for urn in urns or () if urn in known]
        for name, urns in (state.get("propertyDependencies") or {}).items()
    }
    if state["custom"] and state.get("provider"):
        provider, _, _ = state["provider"].rpartition("::")
        kept["provider"] = f"{provider}::{ids[provider]}"
    if state["type"] == RELEASE:
        kept["id"] = f"{state['inputs']['namespace']}/{state['inputs']['name']}"
        kept["outputs"] = {**state["inputs"], "__inputs": state["inputs"]}
    elif state["type"].startswith("kubernetes:"):
        metadata = state["inputs"]["metadata"]
        kept["id"] = "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)
        kept["outputs"] = dict(state["inputs"])
    return kept


def _masked(value: Any) -> bool:
    return _contains(value, {MASKED})


def _contains(value: Any, wanted: Collection[str]) -> bool:
    if isinstance(value, Mapping):
        return any(_contains(item, wanted) for item in value.values())
    if isinstance(value, list):
        return any(_contains(item, wanted) for item in value)
    return isinstance(value, str) and value in wanted
