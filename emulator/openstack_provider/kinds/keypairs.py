"""Key pairs."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

from emulator.openstack_provider.call import Call, given
from emulator.openstack_provider.kinds.base import Kind, Values, newest

_OF_A_USER = "2.10"


class Keypair(Kind):
    """An SSH key that servers are created with. Its ID is its name."""

    token = "openstack:compute/keypair:Keypair"

    def create(self, call: Call, inputs: Values) -> None:
        body = given(name=inputs["name"], public_key=inputs.get("publicKey"), user_id=inputs.get("userId"))
        body |= inputs.get("valueSpecs") or {}
        made = call.compute.post("/os-keypairs", {"keypair": body}, _version(inputs))["keypair"]
        call.identifier = made["name"]
        call.made(call.identifier)
        call.kept = {"privateKey": made.get("private_key") or "", "userId": inputs.get("userId") or ""}

    def find(self, call: Call, inputs: Values, since: datetime) -> str | None:
        found = call.compute.find(_path(inputs["name"], inputs), _version(inputs))
        return newest([{**found["keypair"], "id": inputs["name"]}], since) if found is not None else None

    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        found = call.compute.find(_path(identifier, state), _version(state))
        if found is None:
            return None
        keypair = found["keypair"]
        return {
            "name": keypair["name"],
            "publicKey": keypair["public_key"],
            "fingerprint": keypair["fingerprint"],
            **({"userId": keypair["user_id"]} if state.get("userId") else {}),
        }

    def delete(self, call: Call, identifier: str, state: Values) -> None:
        call.compute.delete(_path(identifier, state), _version(state))


def _path(identifier: str, state: Values) -> str:
    user = f"?user_id={quote(state['userId'])}" if state.get("userId") else ""
    return f"/os-keypairs/{quote(identifier, safe='')}{user}"


def _version(values: Values) -> str | None:
    return _OF_A_USER if values.get("userId") else None
