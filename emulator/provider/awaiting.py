"""Bounded waits for an object to become ready or to go away, following it with a watch."""

from __future__ import annotations

from emulator.plugin.errors import CancelledError, ProviderError
from emulator.plugin.operation import Deadline, Operation
from emulator.provider import readiness, waitfor
from emulator.provider.errors import NotReadyError
from emulator.provider.objects import SKIP_AWAIT, TIMEOUT_SECONDS, Manifest, annotation, is_true, metadata
from emulator.provider.target import Target

DEFAULT_SECONDS = 600.0

# Kinds whose deletion is not waited for with skipAwait (pulumi-kubernetes, provider/pkg/metadata/overrides.go).
_SKIPPABLE_DELETES = frozenset(
    {"Namespace", "Pod", "ReplicationController", "DaemonSet", "Deployment", "StatefulSet", "Job"}
)


class _Neighbours:
    """Reads of other objects for the readiness rules."""

    def __init__(self, target: Target, operation: Operation) -> None:
        self._target = target
        self._operation = operation

    def list(self, api_version: str, kind: str, namespace: str, labels: dict[str, str]) -> list[Manifest]:
        resource = self._target.discovery.find(api_version, kind, self._operation)
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        answer = self._target.client.request(
            "GET", resource.path(namespace), self._operation, {"labelSelector": selector}
        )
        return answer.get("items") or []

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest | None:
        resource = self._target.discovery.find(api_version, kind, self._operation)
        target = Target(self._target.client, self._target.discovery, resource, namespace, name)
        return target.read(self._operation)


def timeout_seconds(inputs: Manifest, operation: Operation) -> float:
    """How long to wait: the resource option customTimeouts, else the annotation, else ten minutes."""
    text = annotation(inputs, TIMEOUT_SECONDS)
    return operation.timeout or (float(text) if text.isdigit() else 0.0) or DEFAULT_SECONDS


def until_ready(target: Target, inputs: Manifest, live: Manifest, operation: Operation) -> Manifest:
    """Wait until the object is ready by its annotation or by the rule of its kind, and return it as then seen.

    Raises NotReadyError, which holds the live object, when it cannot become ready or the time is over.
    """
    if is_true(inputs, SKIP_AWAIT):
        return live
    try:
        wanted = waitfor.conditions(inputs)
    except ProviderError as error:
        raise NotReadyError(str(error), live, [str(error)]) from None
    rule = None if wanted else readiness.rule_for(live)
    if not wanted and rule is None:
        return live
    neighbours = _Neighbours(target, operation)

    def missing_in(state: Manifest) -> list[str]:
        if rule is not None:
            return rule(state, neighbours)
        return [sentence for sentence in (condition(state) for condition in wanted) if sentence]

    try:
        missing = missing_in(live)
        if not missing:
            return live
        deadline = Deadline(timeout_seconds(inputs, operation))
        for state in target.follow(operation, deadline, poll=rule is not None and readiness.polled(live)):
            if state is None:
                raise NotReadyError("the object was deleted while it was waited for", live, missing)
            live = state
            missing = missing_in(live)
            if not missing:
                operation.clear_status()
                return live
            operation.status(f"waiting: {'; '.join(missing)}")
    except CancelledError:
        # The object exists: the engine has to record it, or the next run would find its name taken.
        raise NotReadyError("the wait for it to become ready was cancelled", live, []) from None
    except readiness.FailedError as failure:
        raise NotReadyError(str(failure), live, [str(failure), *_details(live, neighbours)]) from None
    except NotReadyError:
        raise
    except ProviderError as error:
        raise NotReadyError(f"it cannot be waited for: {error}", live, []) from None
    reasons = [*missing, *_details(live, neighbours)]
    raise NotReadyError(
        f"not ready after {deadline.seconds:.0f} s: {'; '.join(reasons)}. Put right what is missing and run the "
        f"command again, or allow more time with customTimeouts or the annotation {TIMEOUT_SECONDS}",
        live,
        reasons,
    )


def _details(live: Manifest, neighbours: readiness.Neighbours) -> list[str]:
    try:
        return readiness.details(live, neighbours)
    except ProviderError:
        return []  # they only add to a message, which must not be lost for them


def problems_on_read(target: Target, inputs: Manifest, live: Manifest, operation: Operation) -> list[str]:
    """Return what a refresh has to report about an object that exists but is not ready."""
    if is_true(inputs, SKIP_AWAIT) or not readiness.checked_on_read(live):
        return []
    rule = readiness.rule_for(live)
    if rule is None:
        return []
    neighbours = _Neighbours(target, operation)
    try:
        missing = rule(live, neighbours)
    except readiness.FailedError as failure:
        missing = [str(failure)]
    return [*missing, *_details(live, neighbours)] if missing else []


def until_gone(target: Target, inputs: Manifest, operation: Operation) -> None:
    """Wait until a deleted object is gone. Raises NotReadyError naming what holds it."""
    if is_true(inputs, SKIP_AWAIT) and inputs.get("kind") in _SKIPPABLE_DELETES:
        return
    deadline = Deadline(timeout_seconds(inputs, operation))
    live: Manifest = {}
    for state in target.follow(operation, deadline, poll=False):
        if state is None:
            operation.clear_status()
            return
        live = state
        operation.status(_held_by(live))
    raise NotReadyError(
        f"{target.resource.plural} {target.name} is not gone after {deadline.seconds:.0f} s: {_held_by(live)}. Let the "
        "controller that owns the finalizer run, or remove the finalizer by hand, then run the command again",
        live,
        [_held_by(live)],
    )


def _held_by(live: Manifest) -> str:
    finalizers = [*(metadata(live).get("finalizers") or []), *((live.get("spec") or {}).get("finalizers") or [])]
    messages = [
        condition.get("message")
        for condition in (live.get("status") or {}).get("conditions") or []
        if live.get("kind") == "Namespace" and condition.get("status") == "True" and condition.get("message")
    ]
    text = f"deletion waits for the finalizers {', '.join(finalizers)}" if finalizers else "deletion is under way"
    return f"{text} ({'; '.join(messages)})" if messages else text
