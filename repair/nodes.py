"""The steps of a repair that an administrator takes. Each reads the node, checks its state and patches it."""

from datetime import UTC, datetime
from typing import Any

from kubernetes.dynamic.exceptions import NotFoundError

from components.health.repair_state import QUARANTINED, REPORTED, TESTING, WATCHED, Json, change, repair_of
from repair import gate
from runner.report import Client


class RepairError(Exception):
    """The step cannot be taken. The message gives the fix."""


def find(client: Client, name: str) -> Json:
    """Return a node. Raises RepairError if the cluster does not have it."""
    try:
        return dict(client.resources.get(api_version="v1", kind="Node").get(name=name).to_dict())
    except NotFoundError:
        raise RepairError(f"node {name} does not exist. Run `kubectl get nodes`.") from None


def found(node: Json) -> Json:
    """Return the repair of a node. Raises RepairError if it is in service."""
    name, repair = node["metadata"]["name"], repair_of(node)
    if repair is None:
        raise RepairError(
            f"node {name} is not in repair. To take it out, run `mlbatch repair start {name} --reason TEXT`."
        )
    return repair


def start(client: Client, name: str, detail: str, *, move: bool) -> None:
    """Take a node out of service. move: jobs leave it now. Otherwise they run to their end."""
    node = find(client, name)
    before = repair_of(node)
    if before is not None and before["state"] != WATCHED:
        raise RepairError(f"node {name} is already {before['state']}: {before['detail']}")
    new = {
        "state": QUARANTINED,
        "action": "move" if move else "cordon",
        "reason": "manual",
        "category": "Unhealthy.ManualInvestigation",
        **({key: before[key] for key in ("reason", "category")} if before is not None else {}),
        "detail": detail,
        "since": now(),
    }
    _write(client, node, new)


def reported(client: Client, name: str, case: str) -> None:
    """Record that the provider knows of a node, and its case. A test that runs goes on."""
    node = find(client, name)
    repair = found(node)
    state = repair["state"] if repair["state"] in (TESTING, WATCHED) else REPORTED
    _write(client, node, {**repair, "state": state, "case": case})


def test(client: Client, name: str) -> str:
    """Start the health gate on a node in repair; return the name of its Job.

    The repair controller returns the node when the gate has passed.
    """
    node = find(client, name)
    repair = found(node)
    try:
        job, began = gate.start(client, node)
    except gate.NoGateError as error:
        raise RepairError(str(error)) from error
    _write(client, node, {**repair, "state": TESTING, "tested": began})
    return job


def release(client: Client, name: str) -> None:
    """Return a node to service without a test."""
    node = find(client, name)
    found(node)
    _write(client, node, None)


def now() -> str:
    """Return the time in UTC, as a repair has it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _write(client: Client, node: Json, repair: Json | None) -> None:
    patch: dict[str, Any] = change(node, repair)
    client.resources.get(api_version="v1", kind="Node").patch(
        name=node["metadata"]["name"], body=patch, content_type="application/merge-patch+json"
    )
