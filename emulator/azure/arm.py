"""The emulated Azure Resource Manager: PUT, GET and DELETE of resources, and the operations that follow.

An operation has a time at which it is over; whoever comes first after that carries it out. So it goes on when the
engine or this process ends, and another process sees it running.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from emulator.azure import faults, nodes
from emulator.azure.cluster_link import ClusterLink
from emulator.azure.errors import ArmError, OperationFailedError, not_found
from emulator.azure.facts import AzureFacts
from emulator.azure.services import KINDS
from emulator.azure.services.base import GROUP, Kind, Request, check_common
from emulator.azure.services.containerservice import CLUSTER, POOL
from emulator.azure.services.resources import REGISTRATION
from emulator.azure.store import Operation, Properties, Record, State, Store

_LONGEST_PAUSE = 0.2
_VERBS = {"create": "Creating", "update": "Updating", "delete": "Deleting", "register": "Registering"}


class Arm:
    """One subscription. Safe for any number of threads and processes on the same store."""

    def __init__(
        self, store: Store, facts: AzureFacts, link: ClusterLink, clock: Callable[[], float] = time.time
    ) -> None:
        self.facts = facts
        self.link = link
        self._store = store
        self._clock = clock

    def of_subscription(self, subscription: str) -> Arm:
        """Return the same store under another subscription id."""
        return Arm(self._store, self.facts.of_subscription(subscription), self.link, self._clock)

    def get(self, resource_id: str) -> Properties | None:
        """Return what a GET answers, None when there is no such resource."""
        with self._read() as state:
            record = state.get(resource_id)
            return None if record is None else KINDS[record.token].to_response(self.facts, state, record)

    def look(self, kind: Kind, names: Mapping[str, str]) -> Properties | None:
        """Return what a GET answers, which for some types is something where there is no resource yet."""
        return self.get(kind.id(self.facts, names)) or kind.absent(self.facts, names)

    def record(self, resource_id: str) -> Record | None:
        """Return a resource with what Azure keeps to itself."""
        with self._read() as state:
            return state.get(resource_id)

    def acknowledge(self, resource_id: str) -> None:
        """Forget for which resource of a program this one was created: an engine has it in its state."""
        found = self._store.read().get(resource_id)
        if found is not None and found.creator:
            with self._store.edit() as state:
                record = state.get(resource_id)
                if record is not None:
                    record.creator, record.inputs = "", {}

    def state(self) -> State:
        """Return everything, operations that are over carried out."""
        with self._read() as state:
            return state

    def put(
        self,
        kind: Kind,
        names: Mapping[str, str],
        body: Properties,
        creator: str = "",
        inputs: Properties | None = None,
    ) -> str:
        """Begin to create or update a resource; return its id. `wait` tells how it ended.

        creator, inputs: see `Record`. Raises ArmError when Azure refuses.
        """
        resource_id = kind.id(self.facts, names)
        with self._settled() as state:
            fault = faults.take(state, _names(kind, resource_id))
        self._fail(fault, resource_id)
        with self._settled() as state:
            before = state.get(resource_id)
            request = Request(self.facts, state, resource_id, names, body, before)
            if before is not None:
                _check_busy(kind, state, before)
            elif kind.type == POOL:
                _check_parent_busy(state, resource_id)
            check_common(kind, request)
            kind.check(request)
            if kind.type == CLUSTER and request.creates:
                self.link.require_free()
            operation = "register" if kind.type == REGISTRATION else "create" if request.creates else "update"
            record = Record(resource_id, kind.token, kind.type, kind.complete(request))
            record.creator, record.inputs = creator, dict(inputs or {})
            if before is not None:
                record.id, record.hidden = before.id, before.hidden
                if not before.creator:
                    record.creator, record.inputs = "", {}
            record.operation = self._operation(kind, operation, fault)
            state.results.pop(resource_id.lower(), None)
            if "provisioningState" in record.properties:
                record.properties["provisioningState"] = _VERBS[operation]
            state.put(record)
            kind.on_started(request, record)
            for begun in record.hidden.pop("begun", []):
                # Registrations that a template asks for go on by themselves.
                state.resources[begun.lower()].operation = self._registration(state, begun)
            self._settle(state)
        return resource_id

    def delete(self, kind: Kind, resource_id: str) -> None:
        """Begin to delete a resource; one that is not there is a success. Raises ArmError when Azure refuses."""
        with self._settled() as state:
            fault = faults.take(state, _names(kind, resource_id)) if state.get(resource_id) else None
        self._fail(fault, resource_id)
        with self._settled() as state:
            record = state.get(resource_id)
            if record is None:
                return
            # A registration that goes on for ever is no reason to keep it.
            if record.operation is None or record.operation.kind != "register":
                _check_busy(kind, state, record)
            names = kind.parse(resource_id) or {}
            kind.check_delete(Request(self.facts, state, resource_id, names, {}, record))
            record.operation = self._operation(kind, "delete", fault)
            state.results.pop(resource_id.lower(), None)
            if "provisioningState" in record.properties:
                record.properties["provisioningState"] = _VERBS["delete"]
            self._settle(state)

    def wait(
        self,
        resource_id: str,
        report: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wait until no operation runs on a resource.

        Raises OperationFailedError when the last one has failed.
        """
        began = self._clock()
        while True:
            with self._settled() as state:
                record = state.get(resource_id)
                current = record.operation if record is not None else None
                failure = state.results.pop(resource_id.lower(), None) if current is None else None
            if current is None:
                if failure is not None:
                    code, message = failure
                    raise OperationFailedError(code, message, status=200)
                return
            report(f"{_VERBS[current.kind]} ({self._clock() - began:.0f} s)")
            left = _LONGEST_PAUSE if current.ends is None else current.ends - self._clock()
            sleep(min(max(left, 0.01), _LONGEST_PAUSE))

    @contextlib.contextmanager
    def edit(self) -> Iterator[State]:
        """Change the state as somebody behind the engine's back; the cluster follows."""
        with self._settled() as state:
            yield state
            self._follow(state)

    @contextlib.contextmanager
    def _read(self) -> Iterator[State]:
        state = self._store.read()
        if self._due(state):
            with self._settled() as state:
                pass
        yield state

    @contextlib.contextmanager
    def _settled(self) -> Iterator[State]:
        with self._store.edit() as state:
            self._settle(state)
            yield state

    def _due(self, state: State) -> list[Record]:
        moment = self._clock()
        running = [each for each in state.resources.values() if each.operation is not None]
        return [
            each
            for each in running
            if each.operation and each.operation.ends is not None and each.operation.ends <= moment
        ]

    def _settle(self, state: State) -> None:
        """Carry out the operations that are over by now."""
        due = self._due(state)
        nodes_change = False
        for record in due:
            nodes_change |= record.type in (CLUSTER, POOL, GROUP)
            self._finish(state, record)
        if nodes_change:
            self._follow(state)

    def _finish(self, state: State, record: Record) -> None:
        operation, record.operation = record.operation, None
        assert operation is not None
        kind = KINDS[record.token]
        if operation.error is not None:
            state.results[record.id.lower()] = operation.error
            if "provisioningState" in record.properties:
                record.properties["provisioningState"] = "Failed"
            kind.on_failed(state, record)
        elif operation.kind == "delete":
            self._remove(state, record)
        else:
            if "provisioningState" in record.properties:
                record.properties["provisioningState"] = "Succeeded"
            kind.on_finished(self.facts, state, record)

    def _remove(self, state: State, record: Record) -> None:
        for each in [*state.below(record.id), record]:
            state.remove(each.id)
            KINDS[each.token].on_deleted(self.facts, state, each)
            if each.type == CLUSTER:
                self.link.empty()
        # What is assigned on a scope goes with it.
        for each in list(state.resources.values()):
            scope = str(each.properties.get("scope", ""))
            if each.token.endswith(":RoleAssignment") and scope.lower() == record.id.lower():
                state.remove(each.id)

    def _follow(self, state: State) -> None:
        if state.of_type(CLUSTER):
            self.link.follow(nodes.desired(self.facts, state))

    def _operation(self, kind: Kind, what: str, fault: str | None) -> Operation:
        seconds = self.facts.duration(kind.duration, what)
        ends = None if fault == faults.STUCK and what == "register" else self._clock() + seconds
        error = None
        if fault == faults.FAILED:
            error = (
                "InternalOperationError",
                f"The {what} operation of a {kind.type} has failed, as a planned fault. Run the command again.",
            )
        return Operation(what, ends, error)

    def _registration(self, state: State, registration_id: str) -> Operation:
        kind = KINDS[state.resources[registration_id.lower()].token]
        return self._operation(kind, "register", faults.take(state, _names(kind, registration_id)))

    def _fail(self, fault: str | None, resource_id: str) -> None:
        if fault == faults.THROTTLE:
            raise ArmError(
                "TooManyRequests",
                "The request is being throttled as the limit has been reached for the operation type.",
                status=429,
                retry_after=self.facts.retry_after,
            )
        if fault == faults.CONFLICT:
            raise _in_progress(resource_id, "PutOperation")


def _names(kind: Kind, resource_id: str) -> list[str]:
    return [resource_id, kind.type, kind.token, kind.token.rpartition(":")[2], resource_id.rpartition("/")[2]]


def _check_busy(kind: Kind, state: State, record: Record) -> None:
    running = kind.operation(state, record)
    if running is not None:
        raise _in_progress(record.id, running.kind)


def _check_parent_busy(state: State, pool_id: str) -> None:
    cluster = state.get(pool_id.rpartition("/agentPools/")[0])
    if cluster is not None and cluster.operation is not None:
        raise _in_progress(cluster.id, cluster.operation.kind)


def _in_progress(resource_id: str, what: str) -> ArmError:
    return ArmError(
        "OperationNotAllowed",
        f"Operation is not allowed because there's an in progress {what} operation on {resource_id}. Please wait "
        "for it to finish before starting a new operation. See https://aka.ms/aks-pending-operation for more details.",
        status=409,
        hint="Run the command again in a while.",
    )


def require(arm: Arm, resource_id: str) -> Any:
    """Return what a GET answers. Raises ArmError where there is nothing."""
    found = arm.get(resource_id)
    if found is None:
        raise not_found(resource_id)
    return found
