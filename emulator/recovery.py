"""Finishes an update that was killed, so that the stack's state has all that it had created.

The engine of the make targets writes its state at the end of an update (see `Engine.start`), and a killed one does not
get there: what it created exists, the state does not have it, and to create it anew is refused. docs/operations.md has
the same steps for a stack of your own, whose engine writes down each resource at once.

- Objects of Kubernetes are taken over by an update under the provider's own option `upsertExistingObjects`.
- Resources in Azure, which has no such option, are added to the state first: the emulated Azure knows for which of the
  program's resources it has created each, with which inputs. One that was created in place of another takes that one's
  place, and the update that follows deletes the other.
- Resources in OpenStack stay orphans: the user imports or deletes them, as docs/operations.md has it.
- A release that the killed update has installed is uninstalled. Helm installs over none.
- A cluster that the update was replacing is not looked at.

It belongs before an update, never before a command that only looks.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import yaml

from emulator.charts import releases
from emulator.charts.helm import Helm, HelmError
from runner import clusters
from runner.engine import WITHOUT_LOOKING, Engine, EngineError
from runner.report import connect

UPSERT = {"PULUMI_K8S_UPSERT_EXISTING_OBJECTS": "true"}
"""Has the Kubernetes provider take over objects that exist already (pulumi-kubernetes, since 4.29)."""

MASKED = "[secret]"
"""What a preview shows in place of a secret."""

RELEASE = "kubernetes:helm.sh/v3:Release"
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"

CLOCK_SKEW = timedelta(seconds=30)
"""How far the cluster's clock may be behind this machine's."""

State = dict[str, Any]
"""A resource as the engine writes it."""


class Created(Protocol):
    """A resource as it is handed back to the state."""

    @property
    def id(self) -> str: ...
    @property
    def inputs(self) -> dict[str, Any]: ...
    @property
    def outputs(self) -> dict[str, Any]: ...


class Installed:
    """The releases on a cluster."""

    def __init__(self, kubeconfig: Path, helm: Path) -> None:
        self._client = connect(kubeconfig)
        self._helm = Helm(helm, yaml.safe_load(kubeconfig.read_text()))

    def since(self, namespace: str, name: str) -> datetime | None:
        """Return when a release was installed, None when it is not."""
        secrets = self._client.resources.get(api_version="v1", kind="Secret")
        selector = f"{releases.SELECTOR},name={name}"
        found = self._client.get(secrets, namespace=namespace, label_selector=selector).to_dict()["items"]
        return min((datetime.fromisoformat(each["metadata"]["creationTimestamp"]) for each in found), default=None)

    def uninstall(self, namespace: str, name: str) -> None:
        """Uninstall a release and wait until its objects are gone. Raises EngineError."""
        try:
            self._helm.run(["uninstall", name, f"--namespace={namespace}", "--wait", "--no-hooks"])
        except HelmError as error:
            raise EngineError(f"the release {namespace}/{name} of a killed update stays: {error}") from None


@dataclass(frozen=True)
class Unfinished:
    """An update that was killed.

    began: when, None where the engine has only said what it had begun. pending: the URNs of that.
    """

    began: datetime | None
    pending: frozenset[str]


def unfinished(engine: Engine) -> Unfinished | None:
    """Return the last update of the engine's stack where it was killed, else None."""
    pending = frozenset(
        operation["resource"]["urn"] for operation in engine.read_state().get("pending_operations") or ()
    )
    began = engine.killed
    return Unfinished(began, pending) if began is not None or pending else None


def recover(engine: Engine, orphans: Callable[[], Mapping[str, Created]], helm: Path) -> None:
    """Finish the last update of the engine's stack where it was killed; nothing happens where it was not.

    orphans: returns what was created in a cloud for engines that do not know it, by URN. helm: Helm's command. Raises
    EngineError where the stack cannot be previewed or updated, or a live engine holds its lock.
    """
    killed = unfinished(engine)
    if killed is None:
        return
    print("the last update was killed: finishing it first, with what it had created", flush=True)
    engine.unlock()
    installed = Installed(engine.environment.kubeconfig, helm)
    if killed.began is None:
        # What was pending is the only other sign of it, and is dropped: this recovery may be killed, too.
        engine.doubt(_began(engine, installed.since))
    for name in take_over(engine, orphans()):
        print(f"  taken over: {name}", flush=True)
    for namespace, name in left_behind(_planned_creations(engine), installed.since, killed.began, killed.pending):
        print(f"  uninstalling the release {namespace}/{name}, which is installed anew", flush=True)
        installed.uninstall(namespace, name)
    # Where the cluster is gone nobody answers; what it had comes back with the one in its place, or is created anew.
    looking = [] if clusters.answer(engine) else [WITHOUT_LOOKING]
    arguments = ["--yes", "--skip-preview", "--suppress-outputs", "--suppress-progress", *looking]
    process = engine.start("up", arguments, UPSERT)
    code = engine.finish(process)
    if code < 0 or engine.cancelled:
        raise EngineError("the update that was killed is not finished yet: this one was stopped, too; run it again")
    if code != 0:
        raise EngineError(
            "an update that was killed could not be finished; what `pulumi up` said stands above. Put it right and run "
            "the command again, or forget the whole environment with `make clean`"
        )


def _began(engine: Engine, installed_since: Callable[[str, str], datetime | None]) -> datetime:
    """Return a time since when all releases were installed that are pending: of those, see `left_behind`."""
    pending = [operation["resource"] for operation in engine.read_state().get("pending_operations") or ()]
    names = [(str(each["inputs"]["namespace"]), str(each["inputs"]["name"])) for each in pending if _is_release(each)]
    return min(filter(None, (installed_since(*name) for name in names)), default=datetime.now(UTC))


def _is_release(state: State) -> bool:
    return bool(state["type"] == RELEASE)


def foreseen(engine: Engine, orphans: Callable[[], Mapping[str, Created]], helm: Path) -> list[str]:
    """Return what `recover` would take over in a cloud and uninstall, a line each. Changes nothing.

    Raises EngineError where the stack cannot be previewed.
    """
    killed = unfinished(engine)
    if killed is None:
        return []
    recorded, planned, made = engine.read_state(), _planned_creations(engine), orphans()
    installed = Installed(engine.environment.kubeconfig, helm)
    releases = left_behind(planned, installed.since, killed.began, killed.pending)
    return [
        *(f"take over {name}" for name in taken_over(recorded, handed_back(planned, made), made)),
        *(f"uninstall the release {namespace}/{name}, and install it anew" for namespace, name in releases),
    ]


def take_over(engine: Engine, orphans: Mapping[str, Created]) -> list[str]:
    """Add to the stack's state what a killed update has created in a cloud, and forget what was pending.

    Returns the ids of what was added. Without that no preview can know what is in the cluster.
    """
    deployment, planned = engine.read_state(), _planned_creations(engine)
    found = handed_back(planned, orphans)
    added = taken_over(deployment, found, orphans)
    if added or deployment.get("pending_operations"):
        engine.write_state(imported(replaced(deployment, orphans), planned, found))
    return added


def lost(deployment: Mapping[str, Any], orphans: Mapping[str, Created]) -> list[str]:
    """Return the ids of what was created in a cloud, as new or in place of another, and is not in the deployment."""
    return taken_over(deployment, [{"urn": urn, "id": created.id} for urn, created in orphans.items()], orphans)


def taken_over(deployment: Mapping[str, Any], found: Sequence[State], orphans: Mapping[str, Created]) -> list[str]:
    """Return the ids of what the deployment lacks: of those found for a plan, and of those that replace another."""
    known = {state["urn"] for state in deployment.get("resources") or ()}
    added = [str(state["id"]) for state in found if state["urn"] not in known]
    return added + [
        orphans[state["urn"]].id for state in deployment.get("resources") or () if _gave_way(state, orphans)
    ]


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
    """Return the states that a preview's steps would create, as new or in place of another, in its order.

    What is depended on comes first.
    """
    return [dict(step["newState"]) for step in steps if step["op"] in ("create", "create-replacement")]


def handed_back(planned: Sequence[State], orphans: Mapping[str, Created]) -> list[State]:
    """Return those of the planned creations that were carried out already, as they are there.

    orphans: what was created for engines that do not know it, by URN.
    """
    return [_as_created(state, orphans[state["urn"]]) for state in planned if state["urn"] in orphans]


def replaced(deployment: Mapping[str, Any], orphans: Mapping[str, Created]) -> dict[str, Any]:
    """Return the deployment with what was created in place of a resource that it has.

    One under another id stays behind it, to be deleted, as an engine records it that lives on (`delete`,
    apitype.ResourceV3); that it may be gone by now is no error. A preview that does not ask the cloud cannot tell: it
    finds that one unchanged. One that was deleted before (`pendingReplacement`) may have had the same id, as a pool.
    """
    resources: list[State] = []
    for state in deployment.get("resources") or ():
        if _gave_way(state, orphans):
            created = orphans[state["urn"]]
            old = {key: value for key, value in state.items() if key not in ("initErrors", "pendingReplacement")}
            resources += [_as_created(old, created), *([] if _is(state, created) else [{**old, "delete": True}])]
        else:
            resources.append(state)
    return {**deployment, "resources": resources}


def _gave_way(state: State, orphans: Mapping[str, Created]) -> bool:
    created = orphans.get(state["urn"])
    if created is None or state.get("delete"):
        return False
    return bool(state.get("pendingReplacement")) or not _is(state, created)


def _is(state: State, created: Created) -> bool:
    """Whether a resource of the state has the id of one in a cloud. Azure's ids ignore case."""
    return str(state.get("id")).lower() == created.id.lower()


def _as_created(state: State, created: Created) -> State:
    shown = state.get("inputs") or {}
    inputs = {key: secret(value) if _masked(shown.get(key)) else value for key, value in created.inputs.items()}
    return {**state, "id": created.id, "inputs": inputs, "outputs": dict(created.outputs)}


def left_behind(
    planned: Sequence[State],
    installed_since: Callable[[str, str], datetime | None],
    began: datetime | None,
    pending: Collection[str],
) -> list[tuple[str, str]]:
    """Return namespace and name of the planned releases that a killed update has installed.

    What was there before it began is somebody else's. began: when the update did; None where only what was `pending`
    is known, the URNs of what the engine had begun.
    """
    found = []
    for state in planned:
        if _is_release(state):
            release = str(state["inputs"]["namespace"]), str(state["inputs"]["name"])
            since = installed_since(*release)
            own = state["urn"] in pending or (began is not None and since is not None and since >= began - CLOCK_SKEW)
            if since is not None and own:
                found.append(release)
    return found


def imported(deployment: Mapping[str, Any], planned: Sequence[State], found: Sequence[State]) -> dict[str, Any]:
    """Return the deployment with the found resources, what is above them and their providers added to its resources.

    What was pending is settled by this, and by the update that follows, and dropped.
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
        if state.get("deletedWith") and state["deletedWith"] not in known:
            continue  # the engine reads no such state, and nothing in this component was created
        recorded = carried_out.get(urn, state)
        if urn in used:
            recorded = {**state, "id": str(uuid.uuid4()), "outputs": dict(state.get("inputs") or {})}
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


def _recorded(state: State, known: set[str], ids: Mapping[str, str | None]) -> State:
    kept = {key: value for key, value in state.items() if key not in ("stackTrace", "sourcePosition")}
    kept["dependencies"] = [urn for urn in state.get("dependencies") or () if urn in known]
    kept["propertyDependencies"] = {
        name: [urn for urn in urns or () if urn in known]
        for name, urns in (state.get("propertyDependencies") or {}).items()
    }
    if "replaceWith" in state:
        kept["replaceWith"] = [urn for urn in state["replaceWith"] or () if urn in known]
    if state["custom"] and state.get("provider"):
        provider, _, _ = state["provider"].rpartition("::")
        kept["provider"] = f"{provider}::{ids[provider]}"
    return kept


def _masked(value: Any) -> bool:
    """Tell whether a value is a secret, or holds one, as a preview or the state shows it."""
    if isinstance(value, Mapping):
        return value.get(_SIGNATURE) == _SECRET or any(_masked(item) for item in value.values())
    if isinstance(value, list):
        return any(_masked(item) for item in value)
    return bool(value == MASKED)
