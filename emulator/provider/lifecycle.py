"""Check, diff, create, read, update and delete of Kubernetes objects, as the official provider does them."""

from __future__ import annotations

from typing import NoReturn

from emulator.plugin.diffing import Difference
from emulator.plugin.errors import PartialError, ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Checked, Found, Naming
from emulator.plugin.wire import Properties, Values
from emulator.provider import awaiting, definitions, diffing, ownership
from emulator.provider.check import checked, with_namespace
from emulator.provider.cluster import Cluster
from emulator.provider.errors import ApiError, NoMatchError, NotReadyError
from emulator.provider.normal import canonical_quantities, normalized
from emulator.provider.objects import (
    DELETION_PROPAGATION,
    Manifest,
    Type,
    annotation,
    is_crd,
    metadata,
    object_id,
    prune,
)
from emulator.provider.secrecy import secret_as
from emulator.provider.state import FIELD_MANAGER, INITIAL_API_VERSION, INPUTS, imported, recorded
from emulator.provider.target import Target
from emulator.provider.writing import Writer, create_failure, foreseen_as_inputs


class Objects:
    """The operations on objects of every kind, and on Patch resources, of one configured provider resource."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._writer = Writer(cluster)
        self._rules = diffing.Rules(cluster.settings.config_map_mutable, cluster.settings.secret_mutable)

    def check(self, olds: Properties, news: Properties, naming: Naming, operation: Operation) -> Checked:
        """Return the inputs with identity, name and namespace, in normal form."""
        kind = Type.of_token(operation.token)
        inputs = checked(olds, news, kind, naming)
        if is_crd(inputs) and not news.has_unknowns:
            self._cluster.discovery.plan(inputs)
        if metadata(inputs).get("namespace") is None and self._cluster.is_namespaced(kind, operation):
            inputs = with_namespace(inputs, self._cluster.namespace)
        inputs = secret_as(news, inputs)
        return Checked(news if inputs is news.plain else inputs)

    def diff(
        self, identifier: str, state: Properties, inputs: Properties, news: Properties, operation: Operation
    ) -> Difference:
        """Compare the state with the new inputs, without asking the API server."""
        kind = Type.of_token(operation.token)
        before = state.part(INPUTS)
        old = normalized(before.plain)
        new = old
        if news.message != before.message:
            new = news.plain if news.has_unknowns else normalized(news.plain)
        live = state.only(old)
        live = canonical_quantities(prune(definitions.dashed(live) if is_crd(old) else live, old))
        namespace, name = state.text("metadata", "namespace"), state.text("metadata", "name")
        live_id = f"{namespace}/{name}" if namespace else name
        return diffing.compare(live, live_id, new, patch=kind.patch, rules=self._rules, ignore=operation.ignore)

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Values]:
        """Create the object and wait until it is ready; at preview do a dry run where one is possible.

        At preview the inputs are given for a state that cannot be foreseen: unknown inputs, a kind that does not exist
        yet, and what `foreseen_as_inputs` lists.
        """
        kind = Type.of_token(operation.token)
        if not operation.preview:
            self._cluster.require()
        elif inputs.has_unknowns or kind.patch or not self._cluster.serves(kind, operation):
            return "", inputs
        manifest = inputs.plain
        initial, manager = str(manifest["apiVersion"]), ownership.manager_for(manifest, "")
        try:
            target, live = self._writer.create(kind, manifest, manager, operation)
        except ApiError as error:
            if operation.preview and foreseen_as_inputs(error):
                return "", inputs
            raise create_failure(error, f"{manifest['kind']} {object_id(manifest)}") from None
        except NoMatchError as error:
            raise ProviderError(
                f"{error}: create its CustomResourceDefinition first, and let this resource depend on it"
            ) from None
        if operation.preview:
            live.pop("status", None)
            return "", recorded(live, inputs, inputs, initial, manager)
        try:
            live = self._settled(kind, target, manifest, live, operation)
        except NotReadyError as error:
            state = recorded(error.live, inputs, inputs, initial, manager)
            _fail_partially(error, f"{manifest['kind']} {object_id(error.live)} was created, but", state)
        return object_id(live), recorded(live, inputs, inputs, initial, manager)

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        """Return the live state of an object; inputs follow the live object in what they name.

        Without recorded inputs (import) the inputs are taken from the live object.
        """
        if self._cluster.leaves_state(operation):
            return None
        self._cluster.require(deleting=True)
        kind = Type.of_token(operation.token)
        old = normalized(inputs.plain)
        known = bool(old.get("apiVersion") and old.get("kind"))
        if not known:
            old = {**old, **_identity(kind, state)}
        try:
            target = self._cluster.target(old, identifier, operation)
        except NoMatchError:
            return None
        live = target.read(operation)
        if live is None:
            return None
        followed = prune(live, old) if known else imported(live)
        manager = ownership.manager_for(followed, state.text(FIELD_MANAGER))
        new: Values = inputs if followed == inputs.plain else secret_as(inputs, followed)
        now: Values = state
        if new is not inputs or not _is_recorded(live, inputs, manager, state):
            initial = state.text(INITIAL_API_VERSION) or str(old["apiVersion"])
            now = recorded(live, new, inputs, initial, manager)
        problems = awaiting.problems_on_read(target, followed, live, operation) if known and not kind.patch else []
        if problems:
            message = f"{live['kind']} {identifier} is not ready: {'; '.join(problems)}"
            raise PartialError(message, identifier, now, new, [message])
        return Found(identifier, now, new)

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Values:
        """Bring the object to the new inputs and wait until it is ready; at preview do a dry run where possible."""
        kind = Type.of_token(operation.token)
        if not operation.preview:
            self._cluster.require()
        elif news.has_unknowns or not self._cluster.serves(kind, operation):
            return news
        manifest = normalized(news.plain)
        inputs: Values = news if manifest is news.plain else secret_as(news, manifest)
        previous = ownership.manager_for(state.part(INPUTS).plain, state.text(FIELD_MANAGER))
        manager = ownership.manager_for(manifest, state.text(FIELD_MANAGER) or previous)
        initial = state.text(INITIAL_API_VERSION) or str(manifest["apiVersion"])
        try:
            target = self._cluster.target(manifest, identifier, operation)
            live = self._writer.apply(kind, target, manifest, manager, operation)
        except ApiError as error:
            if operation.preview and error.forbidden:
                return news
            raise ProviderError(f"{manifest['kind']} {identifier} was not updated: {error}") from None
        except NoMatchError as error:
            raise ProviderError(f"{error}: create its CustomResourceDefinition first") from None
        if operation.preview:
            return recorded(live, inputs, news, initial, manager)
        try:
            live = self._settled(kind, target, manifest, live, operation)
        except NotReadyError as error:
            partial = recorded(error.live, inputs, news, initial, manager)
            _fail_partially(error, f"{manifest['kind']} {identifier} was updated, but", partial)
        if previous != manager:
            self._writer.relinquish(target, live["apiVersion"], live["kind"], previous, operation)
        return recorded(live, inputs, news, initial, manager)

    def delete(self, identifier: str, state: Properties, operation: Operation) -> None:
        """Delete the object and wait until it is gone; one that is gone already, or whose kind is, is a success."""
        if self._cluster.leaves_state(operation):
            return
        self._cluster.require(deleting=True)
        kind = Type.of_token(operation.token)
        inputs = state.part(INPUTS).plain
        identity = _identity(kind, state)
        try:
            target = self._cluster.target(identity, identifier, operation)
            if kind.patch:
                manager = ownership.manager_for(inputs, state.text(FIELD_MANAGER))
                self._writer.relinquish(target, identity["apiVersion"], identity["kind"], manager, operation)
                return
            policy = annotation(inputs, DELETION_PROPAGATION).capitalize()
            body = {"propagationPolicy": policy if policy in ("Orphan", "Background") else "Foreground"}
            answer = self._cluster.client.request("DELETE", target.path, operation, None, body)
        except NoMatchError:
            return
        except ApiError as error:
            if error.not_found:
                return
            raise
        if answer.get("kind") != "Status":
            awaiting.until_gone(target, inputs, operation)
        if identity["kind"] == "CustomResourceDefinition":
            self._cluster.discovery.forget(inputs)

    def _settled(self, kind: Type, target: Target, inputs: Manifest, live: Manifest, operation: Operation) -> Manifest:
        """Wait until a written object is ready. Patch resources are not waited for."""
        if not kind.patch:
            live = awaiting.until_ready(target, inputs, live, operation)
        if is_crd(live):
            self._cluster.discovery.declare(live)
        return live


def _identity(kind: Type, state: Properties) -> Manifest:
    """Return apiVersion and kind under which an object was recorded, else those of the resource type."""
    return {
        "apiVersion": state.text("apiVersion") or kind.api_version,
        "kind": state.text("kind") or kind.kind,
    }


def _is_recorded(live: Manifest, inputs: Properties, manager: str, state: Properties) -> bool:
    """Tell whether the state says already what would be recorded."""
    return (
        state.text(FIELD_MANAGER) == manager
        and all(state.text("metadata", key) == metadata(live).get(key) for key in ("resourceVersion", "uid"))
        and state.part(INPUTS).message == inputs.message
    )


def _fail_partially(error: NotReadyError, what: str, state: Values) -> NoReturn:
    message = f"{what} {error}"
    raise PartialError(message, object_id(error.live), state, None, [message]) from None
