"""The emulated Azure Resource Manager: PUT, GET and DELETE of resources, and the operations that they start.

An operation has an end time. The first caller after that time completes it. So operations continue when the engine or
this process ends, and other processes see them running.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from emulator.azure import faults, nodes
from emulator.azure.errors import ArmError, OperationFailedError, refused
from emulator.azure.facts import AzureFacts
from emulator.azure.services import KINDS
from emulator.azure.services.base import CLUSTER, DEPLOYMENT, GROUP, POOL, Kind, Request, check_common
from emulator.azure.services.resources import FEATURE, REGISTRATION
from emulator.azure.store import Operation, Properties, Record, State, Store
from emulator.cluster.credentials import Account

_LONGEST_PAUSE = 0.2
_RETRY_SECONDS = 0.8
"""Seconds until a failed call is repeated (azcore v1.19.1, runtime/policy_retry.go, setDefaults)."""
_VERBS = {"create": "Creating", "update": "Updating", "delete": "Deleting", "register": "Registering"}


class ClusterLink(Protocol):
    """The cluster behind the only managed cluster. Its methods raise ProviderError if it cannot be reached."""

    def require_free(self) -> None:
        """Raise ArmError if the cluster already has objects of another owner."""

    def follow(self, nodes: Sequence[nodes.Node]) -> None:
        """Make these nodes the nodes of the cluster."""

    def unsatisfiable_budgets(self) -> list[str]:
        """Return why AKS refuses an upgrade, for each PodDisruptionBudget that blocks it."""

    def drain(self, nodes: Sequence[nodes.Node]) -> None:
        """Drain one node after the other. Raises ArmError if a pod cannot be evicted."""

    def empty(self) -> None:
        """Remove everything that users created in the cluster."""

    def credentials(self) -> Account:
        """Return the administrator's account."""


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

    def state(self) -> State:
        """Return the whole state, after completing operations that are due."""
        state = self._store.read()
        if not self._due(state):
            return state
        with self._settled() as state:
            return state

    def record(self, resource_id: str) -> Record | None:
        """Return a resource with its hidden values, or None."""
        return self.state().get(resource_id)

    def get(self, resource_id: str) -> Properties | None:
        """Return the response to a GET, or None if the resource does not exist."""
        state = self.state()
        record = state.get(resource_id)
        return KINDS[record.token].to_response(state, record) if record else None

    def look(self, kind: Kind, names: Mapping[str, str]) -> Properties | None:
        """Return the response to a GET. Some types answer before the resource exists."""
        return self.get(kind.id(self.facts, names)) or kind.absent(self.facts, names)

    def acknowledge(self, resource_id: str) -> None:
        """Forget the creator of a resource, because an engine has it in its state."""
        found = self._store.read().get(resource_id)
        if found is not None and found.creator:
            with self._store.edit() as state:
                record = state.get(resource_id)
                if record is not None:
                    record.creator, record.inputs = "", {}

    def put(
        self,
        kind: Kind,
        names: Mapping[str, str],
        body: Properties,
        creator: str = "",
        inputs: Properties | None = None,
    ) -> str:
        """Start to create or update a resource and return its id. `wait` reports the result.

        creator, inputs: see `Record`. Raises ArmError if Azure would reject the request.
        """
        resource_id = kind.id(self.facts, names)
        with self._settled() as state:
            fault = faults.take(state, _names(kind, resource_id))
        self._fail(fault, resource_id)
        with self._settled() as state:
            before = state.get(resource_id)
            request = Request(self.facts, state, resource_id, names, body, before)
            # A new pool also waits for its cluster.
            _check_free(kind, state, before or Record(resource_id, kind.token, kind.type, {}))
            check_common(kind, request)
            kind.check(request)
            if kind.type == CLUSTER and request.creates:
                self.link.require_free()
            had = _versions(state)
            record = Record(resource_id, kind.token, kind.type, kind.complete(request))
            record.creator, record.inputs = creator, dict(inputs or {})
            if before is not None:
                record.id, record.hidden = before.id, before.hidden
                if not before.creator:
                    record.creator, record.inputs = "", {}
            self._start(state, record, "create" if request.creates else "update", fault)
            state.put(record)
            kind.on_started(request, record)
            self._upgrade(state, record, had)
            self._start_registrations(state)
            self._settle(state)
        _lose_answer(fault, kind)
        return resource_id

    def delete(self, kind: Kind, resource_id: str) -> None:
        """Start to delete a resource, if it exists. Raises ArmError if Azure would reject the request."""
        with self._settled() as state:
            fault = faults.take(state, _names(kind, resource_id)) if state.get(resource_id) else None
        self._fail(fault, resource_id)
        with self._settled() as state:
            record = state.get(resource_id)
            if record is None:
                return
            # A registration that never ends must not prevent its deletion.
            if record.type != REGISTRATION:
                _check_free(kind, state, record)
            names = kind.parse(resource_id) or {}
            kind.check_delete(Request(self.facts, state, resource_id, names, {}, record))
            self._start(state, record, "delete", fault)
            self._settle(state)
        _lose_answer(fault, kind)

    def upgrade_images(self, pool: str = "") -> None:
        """Install a new node image in one pool or all, like `az aks nodepool upgrade --node-image-only`.

        Raises ArmError if AKS refuses the upgrade, or if a node cannot be drained.
        """
        with self._settled() as state:
            self._check_budgets()
            pools = [each for each in state.of_type(POOL) if pool in ("", each.name)]
            failure = self._drain(state, pools)
            for each in pools:
                _show(each, "Failed" if failure else "Succeeded")
                (KINDS[each.token].on_failed if failure else KINDS[each.token].on_finished)(state, each)
        if failure is not None:
            raise failure

    def wait(
        self,
        resource_id: str,
        report: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wait until no operation runs on a resource.

        Raises OperationFailedError if the last operation failed.
        """
        began = self._clock()
        while True:
            with self._settled() as state:
                record = state.get(resource_id)
                current = record.operation if record is not None else None
                failure = state.results.pop(resource_id.lower(), None) if current is None else None
            if current is None:
                if failure is not None:
                    raise OperationFailedError(*failure, status=200)
                return
            report(f"{_VERBS[current.kind]} ({self._clock() - began:.0f} s)")
            left = _LONGEST_PAUSE if current.ends is None else current.ends - self._clock()
            sleep(min(max(left, 0.01), _LONGEST_PAUSE))

    @contextlib.contextmanager
    def edit(self) -> Iterator[State]:
        """Change the state without the engine; the cluster follows."""
        with self._settled() as state:
            yield state
            self._follow(state)

    @contextlib.contextmanager
    def _settled(self) -> Iterator[State]:
        with self._store.edit() as state:
            self._settle(state)
            yield state

    def _due(self, state: State) -> list[Record]:
        moment = self._clock()
        return [each for each in state.resources.values() if each.operation and each.operation.over(moment)]

    def _settle(self, state: State) -> None:
        """Complete the operations that are due."""
        due = self._due(state)
        for record in due:
            self._finish(state, record)
        if any(record.type in (CLUSTER, POOL, GROUP, DEPLOYMENT) for record in due):
            self._follow(state)

    def _finish(self, state: State, record: Record) -> None:
        operation, record.operation = record.operation, None
        if operation is None:
            return
        kind = KINDS[record.token]
        if operation.error is not None:
            state.results[record.id.lower()] = operation.error
            _show(record, "Failed")
            kind.on_failed(state, record)
        elif operation.kind == "delete":
            self._remove(state, record)
        else:
            _show(record, "Succeeded")
            kind.on_finished(state, record)

    def _remove(self, state: State, record: Record) -> None:
        for each in [*state.below(record.id), record]:
            state.remove(each.id)
            KINDS[each.token].on_deleted(self.facts, state, each)
            if each.type == CLUSTER:
                self.link.empty()

    def _follow(self, state: State) -> None:
        if state.of_type(CLUSTER):
            self.link.follow(nodes.desired(self.facts, state))

    def _start(self, state: State, record: Record, what: str, fault: str | None) -> None:
        ends = self._clock() + self.facts.duration(KINDS[record.token].duration, what)
        record.operation = Operation(what, None if fault == faults.STUCK else ends)
        if fault == faults.FAILED:
            text = f"The {what} operation of a {record.type} has failed, as a planned fault. Run the command again."
            record.operation.error = ("InternalOperationError", text)
        state.results.pop(record.id.lower(), None)
        _show(record, _VERBS[what])

    def _upgrade(self, state: State, record: Record, had: Mapping[str, str]) -> None:
        """Drain the pools that get another Kubernetes version. A failed drain fails the operation.

        had: versions before the request. Raises ArmError if AKS refuses the upgrade.
        """
        upgraded = [key for key, version in _versions(state).items() if had.get(key, version) != version]
        if not upgraded:
            return
        self._check_budgets()
        failure = self._drain(state, [each for each in state.of_type(POOL) if each.id in upgraded])
        if failure is not None and record.operation is not None:
            record.operation.error = (failure.code, failure.message)

    def _check_budgets(self) -> None:
        if found := self.link.unsatisfiable_budgets():
            raise refused("UnsatisfiablePDB", details="; ".join(found))

    def _drain(self, state: State, pools: Sequence[Record]) -> ArmError | None:
        """Drain the nodes of user pools, and return the failure. Pods of a system pool have no other node here."""
        names = {each.name for each in pools if each.properties["mode"] == "User"}
        try:
            self.link.drain([each for each in nodes.desired(self.facts, state) if each.labels["agentpool"] in names])
        except ArmError as error:
            return error
        return None

    def _start_registrations(self, state: State) -> None:
        """Start the registrations that a template has just requested."""
        for record in state.of_type(REGISTRATION):
            if record.operation is None and record.properties["properties"]["state"] == "Registering":
                self._start(state, record, "register", faults.take(state, _names(FEATURE, record.id)))

    def _fail(self, fault: str | None, resource_id: str) -> None:
        if fault == faults.THROTTLE:
            raise refused("TooManyRequests", retry_after=self.facts.retry_after)
        if fault == faults.CONFLICT:
            raise _in_progress(resource_id, "PutOperation")
        if fault == faults.UNAVAILABLE:
            raise refused("ServiceUnavailable", retry_after=_RETRY_SECONDS)


def _lose_answer(fault: str | None, kind: Kind) -> None:
    """Raise Azure Resource Manager's error for a service that accepted an operation and did not respond."""
    if fault == faults.TIMEOUT:
        raise refused("GatewayTimeout", service=kind.type.partition("/")[0], retry_after=_RETRY_SECONDS)


def _versions(state: State) -> dict[str, str]:
    """Return the Kubernetes versions of clusters and pools by id."""
    keys = {CLUSTER: "currentKubernetesVersion", POOL: "currentOrchestratorVersion"}
    return {each.id: each.properties[key] for kind, key in keys.items() for each in state.of_type(kind)}


def _show(record: Record, provisioning_state: str) -> None:
    if "provisioningState" in record.properties:
        record.properties["provisioningState"] = provisioning_state


def _names(kind: Kind, resource_id: str) -> list[str]:
    return [resource_id, kind.type, kind.token, kind.token.rpartition(":")[2], resource_id.rpartition("/")[2]]


def _check_free(kind: Kind, state: State, record: Record) -> None:
    running = kind.operation(state, record)
    if running is not None:
        raise _in_progress(record.id, running.kind)


def _in_progress(resource_id: str, what: str) -> ArmError:
    return refused("OperationInProgress", what=what, id=resource_id)
