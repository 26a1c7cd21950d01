"""What a killed engine created in Azure is added to the state, with what stands above it, and its releases go."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from emulator import recovery
from runner.engine import Engine, EngineError

STACK = "urn:pulumi:dev::mlbatch::pulumi:pulumi:Stack::mlbatch-dev"
PROVIDER = "urn:pulumi:dev::mlbatch::pulumi:providers:kubernetes::cluster"
TEAM = "urn:pulumi:dev::mlbatch::mlbatch:tenancy:Team::blue"
OTHER = "urn:pulumi:dev::mlbatch::mlbatch:tenancy:Team::red"


BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
"""When the killed update began."""


def component(urn: str) -> dict[str, Any]:
    return {"urn": urn, "custom": False, "type": urn.split("::")[2], "parent": STACK}


def planned_object(kind: str, name: str, parent: str) -> dict[str, Any]:
    return {
        "urn": f"{parent}$kubernetes:core/v1:{kind}::{name}",
        "custom": True,
        "type": f"kubernetes:core/v1:{kind}",
        "parent": parent,
        "provider": f"{PROVIDER}::1",
        "inputs": {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}},
    }


def test_what_the_preview_creates_is_looked_at_as_new_or_in_place_of_another() -> None:
    operations = {"same": TEAM, "create": OTHER, "update": STACK, "create-replacement": VNET, "replace": SUBNET}
    steps = [{"op": operation, "newState": component(urn)} for operation, urn in operations.items()]
    steps.append({"op": "delete-replaced", "oldState": component(VNET)})
    assert [state["urn"] for state in recovery.creations(steps)] == [OTHER, VNET]


RELEASE: dict[str, Any] = {
    "urn": f"{TEAM}$kubernetes:helm.sh/v3:Release::volcano",
    "custom": True,
    "type": recovery.RELEASE,
    "parent": TEAM,
    "provider": f"{PROVIDER}::1",
    "inputs": {"name": "volcano", "namespace": "volcano-system", "chart": "volcano", "version": "1.15.0"},
}


@pytest.mark.parametrize(
    ("installed", "began", "pending", "is_own"),
    [
        (BEGAN + timedelta(seconds=1), BEGAN, (), True),
        (BEGAN - timedelta(minutes=5), BEGAN, (), False),
        (BEGAN - timedelta(minutes=5), None, (), False),
        (BEGAN - timedelta(minutes=5), None, (RELEASE["urn"],), True),
        (None, BEGAN, (RELEASE["urn"],), False),
    ],
    ids=["by the killed update", "before it", "nobody knows", "begun by the engine", "not at all"],
)
def test_a_release_goes_where_the_killed_update_has_installed_it(
    installed: datetime | None, began: datetime | None, pending: tuple[str, ...], is_own: bool
) -> None:
    planned = [component(TEAM), planned_object("ConfigMap", "volcano", TEAM), RELEASE]
    found = recovery.left_behind(planned, lambda namespace, name: installed, began, pending)
    assert found == ([("volcano-system", "volcano")] if is_own else [])


UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What a preview shows in place of what it cannot know."""
AZURE = "urn:pulumi:dev::mlbatch::pulumi:providers:azure-native::azure"
NETWORK = "urn:pulumi:dev::mlbatch::mlbatch:azure:Network::network"
VNET = f"{NETWORK}$azure-native:network:VirtualNetwork::vnet"
SUBNET = f"{NETWORK}$azure-native:network:Subnet::nodes"


@dataclass
class InAzure:
    id: str
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)


def planned_in_azure(urn: str, **inputs: Any) -> dict[str, Any]:
    return {
        "urn": urn,
        "custom": True,
        "type": urn.split("$")[1].split("::")[0],
        "parent": NETWORK,
        "provider": f"{AZURE}::{UNKNOWN}",
        "inputs": inputs,
    }


def test_what_azure_has_created_is_in_the_state_as_azure_has_it() -> None:
    stack = {"urn": STACK, "custom": False, "type": "pulumi:pulumi:Stack"}
    provider = {"urn": AZURE, "custom": True, "type": "pulumi:providers:azure-native", "parent": STACK, "inputs": {}}
    network, subnet = planned_in_azure(VNET, name=UNKNOWN), planned_in_azure(SUBNET)
    layer = {**component(TEAM), "deletedWith": "urn:pulumi:dev::mlbatch::pulumi:providers:kubernetes::cluster"}
    planned = [stack, provider, component(NETWORK), network, subnet, layer]
    there = InAzure("/vnets/mlbatch", {"name": "mlbatch"}, {"name": "mlbatch", "provisioningState": "Succeeded"})
    found = recovery.handed_back(planned, {VNET: there, OTHER: InAzure("/others")})
    result = {
        state["urn"]: state for state in recovery.imported({"pending_operations": [{}]}, planned, found)["resources"]
    }
    assert set(result) == {STACK, AZURE, NETWORK, VNET}
    recorded = result[VNET]
    assert (recorded["id"], recorded["inputs"]) == ("/vnets/mlbatch", {"name": "mlbatch"})
    assert recorded["outputs"] == {"name": "mlbatch", "provisioningState": "Succeeded"}
    assert recorded["provider"] == f"{AZURE}::{result[AZURE]['id']}"
    assert result[AZURE]["id"] != UNKNOWN


def test_what_was_not_created_replaces_nothing_that_was() -> None:
    """The engine reads no state that names a resource which is missing there (Pulumi, `stack import`)."""
    planned = [{**planned_in_azure(VNET), "replaceWith": [SUBNET]}, planned_in_azure(SUBNET)]
    provider = {"urn": AZURE, "custom": True, "type": "pulumi:providers:azure-native", "inputs": {}}
    found = recovery.handed_back(planned, {VNET: InAzure("/vnets/mlbatch")})
    *_, recorded = recovery.imported({}, [provider, *planned], found)["resources"]
    assert (recorded["urn"], recorded["replaceWith"]) == (VNET, [])


RECORDED = {**planned_in_azure(SUBNET, principalId="gone"), "id": "/roles/gone", "outputs": {"principalId": "gone"}}
"""A resource of the state, which a preview that does not ask Azure finds unchanged."""


def test_what_was_created_in_place_of_another_takes_its_place_and_the_other_is_deleted() -> None:
    stack = {"urn": STACK, "custom": False, "type": "pulumi:pulumi:Stack"}
    above, below = component(NETWORK), {**component(TEAM), "dependencies": [SUBNET]}
    before = {"resources": [stack, above, {**RECORDED, "pendingReplacement": True}, below]}
    made = {SUBNET: InAzure("/roles/new", {"principalId": "new"}, {"principalId": "new", "name": "n"})}
    assert recovery.taken_over(before, [], made) == ["/roles/new"]
    found = recovery.imported(recovery.replaced(before, made), [], [])["resources"]
    new = {**RECORDED, "id": "/roles/new", "inputs": {"principalId": "new"}, "outputs": made[SUBNET].outputs}
    assert found == [stack, above, new, {**RECORDED, "delete": True}, below]
    assert recovery.taken_over({"resources": found}, [], made) == [], "once"


def test_what_was_created_under_the_id_of_what_was_deleted_before_is_not_to_be_created_again() -> None:
    """As a pool of GPU nodes, whose name stays."""
    before = {"resources": [{**RECORDED, "pendingReplacement": True}]}
    made = {SUBNET: InAzure("/Roles/GONE", {"principalId": "new"}, {"principalId": "new"})}
    assert recovery.taken_over(before, [], made) == ["/Roles/GONE"]
    (found,) = recovery.replaced(before, made)["resources"]
    assert found == {**RECORDED, "id": "/Roles/GONE", "inputs": made[SUBNET].inputs, "outputs": made[SUBNET].outputs}


def test_what_is_in_the_state_under_the_id_that_azure_has_stays_as_it_is() -> None:
    before = {"resources": [RECORDED]}
    made = {SUBNET: InAzure("/Roles/GONE", {"principalId": "other"})}
    assert recovery.replaced(before, made) == before
    assert recovery.taken_over(before, recovery.handed_back([RECORDED], made), made) == []


def test_a_secret_of_what_took_anothers_place_stays_one() -> None:
    kept = {**RECORDED, "inputs": {"key": {**recovery.secret("old"), "ciphertext": "v1:a:b"}}}
    made = {SUBNET: InAzure("/roles/new", {"key": "1234"})}
    found = recovery.replaced({"resources": [kept]}, made)["resources"][0]
    assert found["inputs"] == {"key": recovery.secret("1234")}


class KilledEngine:
    """An engine whose last update was killed as it created a network, on a state without it; remembers its calls."""

    killed: datetime | None = BEGAN
    cancelled = False
    environment = SimpleNamespace(kubeconfig=Path("kubeconfig"))

    def __init__(self, code: int = 0) -> None:
        self.calls: list[str] = []
        self._code = code
        self._planned = [component(STACK), planned_in_azure(VNET), RELEASE]
        self._planned[1]["provider"] = self._planned[2]["provider"] = f"{AZURE}::1"

    def unlock(self) -> None:
        self.calls.append("unlock")

    def read_state(self) -> dict[str, Any]:
        provider = {"urn": AZURE, "custom": True, "type": "pulumi:providers:azure-native", "id": "1"}
        return {"resources": [provider]}

    def write_state(self, deployment: dict[str, Any]) -> None:
        self.calls.append("write " + ", ".join(state["id"] for state in deployment["resources"] if "id" in state))

    def capture(self, command: str, arguments: list[str]) -> SimpleNamespace:
        self.calls.append(command)
        steps = [{"op": "create", "newState": state} for state in self._planned]
        return SimpleNamespace(returncode=0, stdout=json.dumps({"steps": steps}), stderr="")

    def start(self, command: str, arguments: list[str], variables: dict[str, str]) -> str:
        self.calls.append(f"{command} {' '.join([*variables, *(each for each in arguments if 'refresh' in each)])}")
        return command

    def finish(self, process: str) -> int:
        return self._code


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A cluster, which answers, on which the killed update has installed every release; returns the uninstalled."""
    gone: list[str] = []

    class Releases:
        def __init__(self, kubeconfig: Path, helm: Path) -> None: ...

        def since(self, namespace: str, name: str) -> datetime:
            return BEGAN

        def uninstall(self, namespace: str, name: str) -> None:
            gone.append(f"{namespace}/{name}")

    monkeypatch.setattr(recovery, "Installed", Releases)
    monkeypatch.setattr(recovery.clusters, "answer", lambda engine: True)
    return gone


MADE = {VNET: InAzure("/vnets/mlbatch")}


def test_a_recovery_says_first_that_there_is_one_and_then_what_it_does(
    installed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    engine = KilledEngine()
    recovery.recover(cast(Engine, engine), lambda: MADE, Path("helm"))
    assert capsys.readouterr().out.splitlines() == [
        "the last update was killed: finishing it first, with what it had created",
        "  taken over: /vnets/mlbatch",
        "  uninstalling the release volcano-system/volcano, which is installed anew",
    ]
    assert installed == ["volcano-system/volcano"]
    upsert = "up PULUMI_K8S_UPSERT_EXISTING_OBJECTS"
    assert engine.calls == ["unlock", "preview", "write 1, /vnets/mlbatch", "preview", upsert]


def test_a_recovery_does_not_look_at_a_cluster_that_the_killed_update_took_away(
    installed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery.clusters, "answer", lambda engine: False)
    engine = KilledEngine()
    recovery.recover(cast(Engine, engine), lambda: MADE, Path("helm"))
    assert engine.calls[-1] == "up PULUMI_K8S_UPSERT_EXISTING_OBJECTS --refresh=false"


def test_a_recovery_of_a_plain_update_is_remembered_before_what_was_pending_is_dropped(installed: list[str]) -> None:
    """The engine's import of a state drops it, and a recovery may be killed, too."""
    operations = [{"type": "creating", "resource": each} for each in (planned_in_azure(VNET), RELEASE)]

    class Plain(KilledEngine):
        killed = None

        def read_state(self) -> dict[str, Any]:
            return {**super().read_state(), "pending_operations": operations}

        def doubt(self, began: datetime) -> None:
            self.calls.append(f"doubt {began == BEGAN}")

    engine = Plain(-9)
    with pytest.raises(EngineError, match="run it again"):
        recovery.recover(cast(Engine, engine), lambda: MADE, Path("helm"))
    assert engine.calls[:4] == ["unlock", "doubt True", "preview", "write 1, /vnets/mlbatch"]


def test_a_preview_foresees_what_a_recovery_does_and_does_nothing(installed: list[str]) -> None:
    engine = KilledEngine()
    assert recovery.foreseen(cast(Engine, engine), lambda: MADE, Path("helm")) == [
        "take over /vnets/mlbatch",
        "uninstall the release volcano-system/volcano, and install it anew",
    ]
    assert (installed, engine.calls) == ([], ["preview"])
    engine.killed = None
    assert recovery.foreseen(cast(Engine, engine), lambda: MADE, Path("helm")) == []


def test_a_recovery_that_is_killed_itself_does_not_ask_to_put_anything_right(installed: list[str]) -> None:
    with pytest.raises(EngineError, match="not finished yet: this one was stopped, too; run it again"):
        recovery.recover(cast(Engine, KilledEngine(-9)), lambda: MADE, Path("helm"))


def test_a_secret_of_a_resource_in_azure_stays_one() -> None:
    planned = planned_in_azure(VNET, name="mlbatch", key="[secret]")
    (found,) = recovery.handed_back([planned], {VNET: InAzure("/vnets/mlbatch", {"name": "mlbatch", "key": "1234"})})
    assert found["inputs"]["name"] == "mlbatch"
    assert json.loads(found["inputs"]["key"]["plaintext"]) == "1234"
