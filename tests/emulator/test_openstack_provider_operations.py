"""What each operation asks of the services, and what is kept when one of them fails; the services are played."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import provider_pb2_grpc

from emulator.openstack_provider import plugin, recovery, schema
from emulator.openstack_provider.cloud import Cloud, settings
from emulator.openstack_provider.errors import ApiError, NotServedError
from emulator.openstack_provider.journal import Journal
from emulator.openstack_provider.kinds import KINDS
from emulator.openstack_provider.resources import OpenStackResources
from emulator.openstack_provider.server import OpenStack
from emulator.paths import Paths
from emulator.plugin.errors import PartialError, ProviderError
from emulator.plugin.host import Host
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Found
from emulator.plugin.wire import Properties, Secret
from runner.engine import EngineError

INSTANCE = "openstack:compute/instance:Instance"
KEYPAIR = "openstack:compute/keypair:Keypair"
GROUP = "openstack:networking/secGroup:SecGroup"
RULE = "openstack:networking/secGroupRule:SecGroupRule"
ADDRESSES = "openstack:networking/addressGroupV2:AddressGroupV2"
VOLUME = "openstack:blockstorage/volume:Volume"
ATTACHMENT = "openstack:compute/volumeAttach:VolumeAttach"
PORT = "openstack:networking/port:Port"
ASSOCIATION = "openstack:networking/floatingIpAssociate:FloatingIpAssociate"


def rule(identifier: str, port: int, source: str = "192.0.2.1/32") -> dict[str, Any]:
    return {
        "id": identifier,
        "created_at": "2999-01-01T00:00:00Z",
        "description": "",
        "direction": "ingress",
        "ethertype": "IPv4",
        "port_range_max": port,
        "port_range_min": port,
        "protocol": "tcp",
        "remote_group_id": None,
        "remote_ip_prefix": source,
        "security_group_id": "g",
        "tenant_id": "p",
    }


class Played:
    """Services that answer what they are told to: by method and path, one answer after the other, the last for ever.

    An answer is a body, None for nothing there, or an error to raise.
    """

    region = "lab"
    given: Mapping[str, Any] = {"authUrl": "http://127.0.0.1:1/v3", "password": "secret"}

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = {key: list(value) if isinstance(value, tuple) else [value] for key, value in answers.items()}
        self.asked: list[tuple[str, Any]] = []

    def service(self, name: str, region: str) -> Played:
        return self

    def get(self, path: str, version: str | None = None, **query: Any) -> Any:
        found = self.find(path)
        if found is None:
            raise ApiError(f"GET {path}", 404, "not found")
        return found

    def find(self, path: str, version: str | None = None) -> Any:
        return self._answer(f"GET {path}")

    def post(self, path: str, body: Any, version: str | None = None) -> Any:
        return self._answer(f"POST {path}", body)

    def put(self, path: str, body: Any, version: str | None = None) -> Any:
        return self._answer(f"PUT {path}", body)

    def delete(self, path: str, version: str | None = None) -> None:
        self._answer(f"DELETE {path}")

    def _answer(self, key: str, body: Any = None) -> Any:
        if not key.startswith("GET"):
            self.asked.append((key, body))
        answers = self._answers.get(key, [{} if not key.startswith("GET") else None])
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, Exception):
            raise found
        return found


Play = Callable[..., tuple[OpenStackResources, Operation, Played]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    def played(token: str, answers: Mapping[str, Any], timeout: float = 5.0) -> Any:
        services = Played(answers)
        operation = Operation(f"urn:pulumi:stack::project::{token}::thing", Host(""), timeout=timeout)
        monkeypatch.setattr(operation, "sleep", lambda seconds: operation.check())
        cloud = cast(Cloud, services)
        return OpenStackResources(cloud, schema.resources()[token], KINDS[token], Journal(None)), operation, services

    return played


def server(status: str, **more: Any) -> dict[str, Any]:
    found = {
        "id": "s",
        "name": "vm",
        "status": status,
        "created": "",
        "updated": "",
        "addresses": {},
        "metadata": {},
        "key_name": "key",
        "flavor": {"id": "1"},
        "image": {"id": "i"},
        "security_groups": [{"name": "ssh"}],
    }
    return {"server": {**found, **more}}


OF_A_SERVER = {
    "GET /flavors/1": {"flavor": {"id": "1", "name": "standard.small"}},
    "GET /images/i": {"name": "Ubuntu-24.04"},
    "GET /servers/s/tags": {"tags": []},
    "POST /servers": {"server": {"id": "s"}},
}
DECLARED = {"name": "vm", "imageId": "i", "flavorId": "1", "keyPair": "key", "powerState": "active"}


def volume(status: str, size: int = 2, **more: Any) -> dict[str, Any]:
    found = {
        "id": "v",
        "status": status,
        "size": size,
        "description": None,
        "availability_zone": "nova",
        "name": "data",
        "snapshot_id": None,
        "source_volid": None,
        "volume_type": "standard",
        "metadata": {},
        "attachments": [],
    }
    return {"volume": {**found, **more}}


def test_a_server_that_fails_is_recorded_and_says_why(play: Play) -> None:
    fault = {"message": "No valid host was found.", "code": 500}
    answers = {**OF_A_SERVER, "GET /servers/s": (server("BUILD"), server("ERROR", fault=fault))}
    resources, operation, _ = play(INSTANCE, answers)
    with pytest.raises(
        PartialError, match=r"server s \(vm\) went into status ERROR: No valid host was found\."
    ) as caught:
        resources.create(Properties.of(DECLARED), operation)
    assert caught.value.resource_id == "s"
    assert cast(dict[str, Any], caught.value.properties)["keyPair"] == "key"


def test_a_server_that_takes_too_long_is_recorded(play: Play) -> None:
    resources, operation, _ = play(INSTANCE, {**OF_A_SERVER, "GET /servers/s": server("BUILD")}, timeout=0.1)
    with pytest.raises(PartialError, match=r"is not ACTIVE after 0 s but BUILD; .* customTimeouts gives it longer"):
        resources.create(Properties.of(DECLARED), operation)


def test_a_refused_server_is_not_there(play: Play) -> None:
    refused = ApiError("POST compute/servers", 403, "Quota exceeded for cores")
    resources, operation, _ = play(INSTANCE, {**OF_A_SERVER, "POST /servers": refused})
    with pytest.raises(ProviderError, match="Quota exceeded for cores") as caught:
        resources.create(Properties.of(DECLARED), operation)
    assert not isinstance(caught.value, PartialError)


def test_what_a_server_is_created_with(play: Play) -> None:
    answers = {
        **OF_A_SERVER,
        "GET /servers/s": server("ACTIVE"),
        "GET /ports": {"ports": [{"network_id": "n"}]},
        "GET /networks": {"networks": [{"id": "n", "name": "net"}]},
    }
    resources, operation, services = play(INSTANCE, answers)
    device = {"sourceType": "image", "destinationType": "volume", "uuid": "i", "volumeSize": 80, "bootIndex": 0}
    inputs = {**DECLARED, "userData": "#cloud-config", "networks": [{"port": "p"}], "blockDevices": [device]}
    identifier, state = resources.create(Properties.of(inputs), operation)
    ((_, body),) = services.asked
    assert body["server"] == {
        "name": "vm",
        "flavorRef": "1",
        "key_name": "key",
        "config_drive": False,
        "user_data": "I2Nsb3VkLWNvbmZpZw==",
        "networks": [{"uuid": "n", "port": "p"}],
        "block_device_mapping_v2": [
            {
                "source_type": "image",
                "destination_type": "volume",
                "uuid": "i",
                "volume_size": 80,
                "boot_index": 0,
                "delete_on_termination": False,
            }
        ],
    }
    assert identifier == "s"
    assert cast(dict[str, Any], state)["imageId"] == "Attempt to boot from volume - no image supplied"


def test_a_changed_flavor_is_a_resize_that_is_confirmed(play: Play) -> None:
    states = (server("RESIZE"), server("VERIFY_RESIZE"), server("VERIFY_RESIZE"), server("ACTIVE"))
    resources, operation, services = play(INSTANCE, {**OF_A_SERVER, "GET /servers/s": states})
    state = {**DECLARED, "flavorName": "standard.small"}
    resources.update("s", Properties.of(state), Properties.of({**DECLARED, "flavorId": "2"}), operation)
    assert services.asked == [
        ("POST /servers/s/action", {"resize": {"flavorRef": "2"}}),
        ("POST /servers/s/action", {"confirmResize": None}),
    ]


def test_a_changed_image_is_a_rebuild(play: Play) -> None:
    states = (server("REBUILD"), server("ACTIVE"))
    resources, operation, services = play(INSTANCE, {**OF_A_SERVER, "GET /servers/s": states})
    resources.update("s", Properties.of(DECLARED), Properties.of({**DECLARED, "imageId": "j"}), operation)
    assert services.asked == [("POST /servers/s/action", {"rebuild": {"imageRef": "j"}})]


def test_a_server_is_stopped_before_it_is_deleted_where_it_should_be(play: Play) -> None:
    states = (server("ACTIVE"), server("SHUTOFF"), server("SHUTOFF"), None)
    resources, operation, services = play(INSTANCE, {"GET /servers/s": states})
    resources.delete("s", Properties.of({**DECLARED, "stopBeforeDestroy": True}), operation)
    assert services.asked == [("POST /servers/s/action", {"os-stop": None}), ("DELETE /servers/s", None)]


def test_a_volume_grows_attached_only_where_that_is_enabled(play: Play) -> None:
    answers = {"GET /volumes/v": (volume("in-use"), volume("extending"), volume("in-use", 3))}
    before = Properties.of({"name": "data", "size": 2, "availabilityZone": "nova"})
    resources, operation, services = play(VOLUME, answers)
    with pytest.raises(ProviderError, match="attached to a server, and resizing it there is not enabled"):
        resources.update("v", before, Properties.of({"name": "data", "size": 3}), operation)
    assert services.asked == []
    resources, operation, services = play(VOLUME, answers)
    news = Properties.of({"name": "data", "size": 3, "enableOnlineResize": True})
    state = resources.update("v", before, news, operation)
    assert services.asked[0] == ("POST /volumes/v/action", {"os-extend": {"new_size": 3}})
    assert cast(dict[str, Any], state)["size"] == 3


def test_a_volume_is_detached_before_it_is_deleted(play: Play) -> None:
    attached = volume("in-use", attachments=[{"id": "v", "server_id": "s", "device": "/dev/vdb"}])
    states = (attached, volume("detaching"), volume("available"), volume("deleting"), None)
    resources, operation, services = play(VOLUME, {"GET /volumes/v": states})
    resources.delete("v", Properties.of({"size": 2}), operation)
    assert [key for key, _ in services.asked] == ["DELETE /servers/s/os-volume_attachments/v", "DELETE /volumes/v"]


def test_an_attachment_that_does_not_come_about_is_an_orphan_as_upstream(play: Play) -> None:
    path = "/servers/s/os-volume_attachments"
    answers = {
        f"POST {path}": {"volumeAttachment": {"id": "v"}},
        f"GET {path}/v": {"volumeAttachment": {"serverId": "s", "volumeId": "v", "device": "/dev/vdb"}},
        "GET /volumes/v": (volume("attaching"), volume("error")),
    }
    resources, operation, _ = play(ATTACHMENT, answers)
    with pytest.raises(ProviderError, match="volume v went into error status") as caught:
        resources.create(Properties.of({"instanceId": "s", "volumeId": "v"}), operation)
    assert not isinstance(caught.value, PartialError)


def test_a_security_group_in_use_is_waited_for(play: Play) -> None:
    busy = ApiError("DELETE network/security-groups/g", 409, "in use")
    resources, operation, services = play(GROUP, {"DELETE /security-groups/g": (busy, busy, None)})
    resources.delete("g", Properties.of({"name": "ssh"}), operation)
    assert len(services.asked) == 3


def test_addresses_come_and_go_in_place(play: Play) -> None:
    group = {"name": "ops", "description": "", "project_id": "p", "addresses": ["192.0.2.2/32"]}
    resources, operation, services = play(ADDRESSES, {"GET /address-groups/g": {"address_group": group}})
    before = Properties.of({"name": "ops", "addresses": ["192.0.2.1/32"]})
    resources.update("g", before, Properties.of({"name": "ops", "addresses": ["192.0.2.2/32"]}), operation)
    assert services.asked == [
        ("PUT /address-groups/g/remove_addresses", {"addresses": ["192.0.2.1/32"]}),
        ("PUT /address-groups/g/add_addresses", {"addresses": ["192.0.2.2/32"]}),
    ]


def test_tags_of_others_are_left_alone(play: Play) -> None:
    group = {"name": "ssh", "description": "", "tenant_id": "p", "stateful": True, "tags": ["mine", "theirs"]}
    resources, operation, services = play(GROUP, {"GET /security-groups/g": {"security_group": group}})
    before = {"name": "ssh", "tags": ["mine"], "allTags": ["mine", "theirs"]}
    state = resources.update("g", Properties.of(before), Properties.of({"name": "ssh", "tags": ["new"]}), operation)
    assert services.asked == [("PUT /security-groups/g/tags", {"tags": ["new", "theirs"]})]
    assert cast(dict[str, Any], state)["tags"] == []


def read(resources: OpenStackResources, operation: Operation, state: Any, inputs: Any, identifier: str = "id") -> Found:
    found = resources.read(identifier, Properties.of(state), Properties.of(inputs), operation)
    assert found is not None
    return found


ASSOCIATED = {"floating_ip_address": "203.0.113.5", "port_id": None, "fixed_ip_address": None}


def test_a_refresh_shows_an_address_that_was_taken_away(play: Play) -> None:
    resources, operation, _ = play(ASSOCIATION, {"GET /floatingips/id": {"floatingip": ASSOCIATED}})
    inputs = {"floatingIp": "203.0.113.5", "portId": "p"}
    found = read(resources, operation, {**inputs, "fixedIp": "10.0.0.5"}, inputs)
    assert found.inputs == {"floatingIp": "203.0.113.5", "portId": ""}
    state, news = Properties.of(cast(dict[str, Any], found.state)), Properties.of(inputs)
    assert list(resources.diff("id", state, Properties.of({}), news, operation).changes) == ["portId"]


@pytest.mark.parametrize("token", sorted(KINDS))
def test_a_refresh_says_that_a_resource_is_gone(play: Play, token: str) -> None:
    resources, operation, _ = play(token, {})
    assert resources.read("s/v", Properties.of({"name": "x"}), Properties.of({"name": "x"}), operation) is None


@pytest.mark.parametrize("token", sorted(KINDS.keys() - {ASSOCIATION}))
def test_to_delete_what_is_gone_succeeds(play: Play, token: str) -> None:
    resources, operation, _ = play(token, {})
    resources.delete("s/v", Properties.of({"name": "x"}), operation)


def test_a_refresh_keeps_secrets_and_hashes_out_of_what_has_not_changed(play: Play) -> None:
    resources, operation, _ = play(INSTANCE, {**OF_A_SERVER, "GET /servers/s": server("SHUTOFF")})
    inputs = {**DECLARED, "userData": Secret("#cloud-config")}
    state = {**DECLARED, "userData": schema.resources()[INSTANCE].properties["userData"].in_state("#cloud-config")}
    found = cast(dict[str, Any], read(resources, operation, state, inputs, "s").inputs)
    assert isinstance(found["userData"], Secret)
    assert found["powerState"] == "shutoff"


def test_an_import_has_the_inputs_that_would_make_the_resource(play: Play) -> None:
    rule = {
        "description": "",
        "direction": "ingress",
        "ethertype": "IPv4",
        "port_range_max": 22,
        "port_range_min": 22,
        "protocol": "tcp",
        "remote_group_id": None,
        "remote_ip_prefix": "192.0.2.1/32",
        "security_group_id": "g",
        "tenant_id": "p",
    }
    resources, operation, _ = play(RULE, {"GET /security-group-rules/id": {"security_group_rule": rule}})
    found = cast(dict[str, Any], read(resources, operation, {}, {}).inputs)
    expected = {
        "direction": "ingress",
        "ethertype": "IPv4",
        "portRangeMax": 22,
        "portRangeMin": 22,
        "protocol": "tcp",
        "remoteIpPrefix": "192.0.2.1/32",
        "securityGroupId": "g",
        "tenantId": "p",
        "region": "lab",
    }
    assert {name: value for name, value in found.items() if name != "__defaults"} == expected


def test_a_made_private_key_is_secret(play: Play) -> None:
    keypair = {"name": "key", "public_key": "ssh-rsa x", "fingerprint": "00", "user_id": "u"}
    answers = {
        "POST /os-keypairs": {"keypair": {**keypair, "private_key": "BEGIN"}},
        "GET /os-keypairs/key": {"keypair": keypair},
    }
    resources, operation, _ = play(KEYPAIR, answers)
    identifier, state = resources.create(Properties.of({"name": "key"}), operation)
    assert identifier == "key"
    assert cast(dict[str, Any], state)["privateKey"] == Secret("BEGIN")


def test_a_type_that_is_not_served_is_named_with_those_that_are() -> None:
    provider = OpenStack().configure({"authUrl": "http://127.0.0.1:1/v3"}, Operation("", Host("")))
    with pytest.raises(NotServedError, match=r"does not serve openstack:dns/zone:Zone; it serves openstack:compute/"):
        provider.resources("openstack:dns/zone:Zone")
    with pytest.raises(NotServedError, match=r"does not serve openstack:dns/getDnsZone:getDnsZone; it serves"):
        provider.invoke("openstack:dns/getDnsZone:getDnsZone", {})


def test_without_an_openstack_the_error_says_what_to_source(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OS_AUTH_URL", "OS_CLOUD"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ProviderError, match="source the openrc file of an application credential"):
        OpenStack().configure({}, Operation("", Host("")))


@pytest.mark.parametrize("given", [{"authUrl": "https://pouta.csc.fi:5001/v3"}, {"cloud": "pouta"}])
def test_the_local_environment_reaches_no_other_openstack(given: dict[str, str]) -> None:
    operation = Operation("", Host(""))
    with pytest.raises(ProviderError, match="is not on this machine, and the local environment reaches no other"):
        OpenStack(local=True).configure(given, operation)
    OpenStack().configure(given, operation)
    OpenStack(local=True).configure({"authUrl": "http://127.0.0.1:5000/v3"}, operation)


def test_an_input_of_the_provider_comes_before_its_variable() -> None:
    variables = {"OS_AUTH_URL": "http://a/v3", "OS_REGION_NAME": "one", "OS_PROJECT_ID": "p", "OS_AUTH_TYPE": "ignored"}
    found = settings({"region": "two"}, variables)
    assert found == {"region": "two", "authUrl": "http://a/v3", "tenantId": "p"}


def test_an_input_of_the_provider_that_is_not_understood_is_refused() -> None:
    ((name, reason),) = OpenStack().check_config({"authUrl": "http://a/v3", "systemScope": "true"})
    assert name == "systemScope"
    assert "official plugin" in reason


def test_a_function_says_what_it_has_looked_for() -> None:
    provider = OpenStack().configure({"authUrl": "http://127.0.0.1:1/v3"}, Operation("", Host("")))
    with pytest.raises(ProviderError, match="getSubnet: 'ipVersion' is 5; allowed are 4, 6"):
        provider.invoke("openstack:networking/getSubnet:getSubnet", {"ipVersion": 5})


class TestJournal:
    """What a killed engine leaves is kept until an engine knows it."""

    URN = f"urn:pulumi:stack::project::{VOLUME}::thing"
    ANSWERS: Mapping[str, Any] = {
        "POST /volumes": {"volume": {"id": "v"}},
        "GET /volumes/v": volume("available"),
    }

    def created(self, play: Play, folder: Path) -> OpenStackResources:
        _, operation, services = play(VOLUME, self.ANSWERS)
        cloud = cast(Cloud, services)
        resources = OpenStackResources(cloud, schema.resources()[VOLUME], KINDS[VOLUME], Journal(folder))
        resources.create(Properties.of({"name": "data", "size": 2}), operation)
        return resources

    def test_it_holds_what_was_created_without_credentials(self, play: Play, tmp_path: Path) -> None:
        self.created(play, tmp_path)
        (found,) = Journal(tmp_path).entries()
        assert (found.urn, found.token, found.identifier) == (self.URN, VOLUME, "v")
        assert found.provider == {"authUrl": "http://127.0.0.1:1/v3"}
        (file,) = tmp_path.iterdir()
        assert file.stat().st_mode & 0o077 == 0

    @pytest.mark.parametrize(("identifier", "left"), [("v", 0), ("another", 1)])
    def test_it_forgets_what_an_engine_knows(self, play: Play, tmp_path: Path, identifier: str, left: int) -> None:
        resources = self.created(play, tmp_path)
        nothing = Properties.of({})
        resources.diff(identifier, nothing, nothing, nothing, Operation(self.URN, Host("")))
        assert len(list(Journal(tmp_path).entries())) == left

    def test_an_orphan_is_handed_back_as_it_is(
        self, play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        paths = Paths.of(state=tmp_path)
        assert plugin.orphans(paths, {}) == {}
        self.created(play, plugin.journal(paths))
        monkeypatch.setattr(recovery, "Cloud", lambda given: Played(self.ANSWERS))
        ((urn, found),) = plugin.orphans(paths, {}).items()
        assert (urn, found.id, found.inputs) == (self.URN, "v", {"name": "data", "size": 2})
        assert (found.outputs["availabilityZone"], found.outputs["id"]) == ("nova", "v")

    @pytest.mark.parametrize(
        ("token", "inputs", "answers"),
        [
            (
                VOLUME,
                {"name": "data", "size": 2},
                {
                    "GET /volumes/detail": {
                        "volumes": [
                            {
                                **volume("available")["volume"],
                                "id": "older",
                                "created_at": "2026-01-01T00:00:00.000000",
                            },
                            {**volume("available", 3)["volume"], "id": "larger", "created_at": "2999-01-01T00:00:00.0"},
                            {**volume("available")["volume"], "created_at": "2999-01-01T00:00:00.000000"},
                        ]
                    },
                    "GET /volumes/v": volume("available"),
                },
            ),
            (
                INSTANCE,
                {**DECLARED, "metadata": {"cluster": "kind"}},
                {
                    **OF_A_SERVER,
                    "GET /servers/detail": {
                        "servers": [
                            {**server("ACTIVE")["server"], "id": "others", "created": "2999-01-01T00:00:00Z"},
                            server("ACTIVE", created="2999-01-01T00:00:00Z", metadata={"cluster": "kind"})["server"],
                        ]
                    },
                    "GET /servers/s": server("ACTIVE"),
                },
            ),
        ],
        ids=["volume", "server"],
    )
    def test_what_was_created_by_a_call_whose_answer_got_lost_is_handed_back(
        self,
        play: Play,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        token: str,
        inputs: Mapping[str, Any],
        answers: Mapping[str, Any],
    ) -> None:
        """By a proxy, say, which did not wait for it."""
        paths = Paths.of(state=tmp_path)
        posted = {INSTANCE: "POST /servers", VOLUME: "POST /volumes"}[token]
        lost = {**answers, posted: ApiError(posted, 504, "Gateway Timeout")}
        with pytest.raises(ApiError, match="504"):
            self.begun(play, plugin.journal(paths), token, inputs, lost)
        monkeypatch.setattr(recovery, "Cloud", lambda given: Played(answers))
        ((urn, found),) = plugin.orphans(paths, {}).items()
        assert (urn.split("::")[2], found.id) == (token, {INSTANCE: "s", VOLUME: "v"}[token])

    def test_what_was_refused_is_not_looked_for(self, play: Play, tmp_path: Path) -> None:
        refused = {"POST /volumes": ApiError("POST /volumes", 413, "over the quota")}
        with pytest.raises(ApiError, match="413"):
            self.begun(play, tmp_path, VOLUME, {"name": "data", "size": 2}, refused)
        assert list(Journal(tmp_path).entries()) == []

    @pytest.mark.parametrize(
        ("token", "inputs", "answers", "expected"),
        [
            (
                KEYPAIR,
                {"name": "vm"},
                {"GET /os-keypairs/vm": {"keypair": {"name": "vm", "created_at": "2999-01-01T00:00:00.000000"}}},
                "vm",
            ),
            (
                KEYPAIR,
                {"name": "vm"},
                {"GET /os-keypairs/vm": {"keypair": {"name": "vm", "created_at": "2026-01-01T00:00:00.000000"}}},
                None,
            ),
            (KEYPAIR, {"name": "vm"}, {}, None),
            (
                GROUP,
                {"name": "vm", "description": "Who may reach vm"},
                {"GET /security-groups": {"security_groups": [{"id": "g", "created_at": "2999-01-01T00:00:00Z"}]}},
                "g",
            ),
            (
                RULE,
                {
                    "securityGroupId": "g",
                    "direction": "ingress",
                    "ethertype": "IPv4",
                    "protocol": "tcp",
                    "portRangeMin": 22,
                    "portRangeMax": 22,
                    "remoteIpPrefix": "192.0.2.1/32",
                },
                {
                    "GET /security-group-rules": {
                        "security_group_rules": [rule("others", 443), rule("r", 22), rule("wider", 22, "0.0.0.0/0")]
                    }
                },
                "r",
            ),
            (
                ATTACHMENT,
                {"instanceId": "s", "volumeId": "v"},
                {
                    "GET /servers/s/os-volume_attachments": {
                        "volumeAttachments": [{"id": "boot", "volumeId": "b"}, {"id": "a", "volumeId": "v"}]
                    }
                },
                "s/a",
            ),
            (ATTACHMENT, {"instanceId": "gone", "volumeId": "v"}, {}, None),
        ],
    )
    def test_what_else_lost_its_answer_is_found_for_a_second_one_is_refused_or_one_too_many(
        self, play: Play, token: str, inputs: Mapping[str, Any], answers: Mapping[str, Any], expected: str | None
    ) -> None:
        resources, _, _ = play(token, answers)
        assert resources.find(inputs, datetime(2026, 11, 23, tzinfo=UTC).timestamp()) == expected

    @pytest.mark.parametrize("answer", [{"volume": {"id": "v"}}, ApiError("POST /volumes", 504, "Gateway Timeout")])
    def test_what_is_refused_does_not_hide_what_was_created_before(
        self, play: Play, tmp_path: Path, answer: Any
    ) -> None:
        """A VM that a killed update has left is why Nova makes no second one at its port."""
        with contextlib.suppress(ApiError):
            self.begun(play, tmp_path, VOLUME, {"name": "data", "size": 2}, {**self.ANSWERS, "POST /volumes": answer})
        (before,) = Journal(tmp_path).entries()
        refused = {"POST /volumes": ApiError("POST /volumes", 409, "is still in use")}
        with pytest.raises(ApiError, match="409"):
            self.begun(play, tmp_path, VOLUME, {"name": "data", "size": 3}, refused)
        assert list(Journal(tmp_path).entries()) == [before]

    def begun(
        self, play: Play, folder: Path, token: str, inputs: Mapping[str, Any], answers: Mapping[str, Any]
    ) -> None:
        _, operation, services = play(token, answers)
        cloud = cast(Cloud, services)
        resources = OpenStackResources(cloud, schema.resources()[token], KINDS[token], Journal(folder))
        resources.create(Properties.of(dict(inputs)), operation)

    def test_an_openstack_that_cannot_be_asked_is_an_error(self, play: Play, tmp_path: Path) -> None:
        paths = Paths.of(state=tmp_path)
        self.created(play, plugin.journal(paths))
        with pytest.raises(EngineError, match=r"has created cannot be looked up: there is no credential for http"):
            plugin.orphans(paths, {})


def test_the_engine_can_start_and_end_the_plugin(tmp_path: Path) -> None:
    folder = plugin.install(Paths.of(state=tmp_path))
    assert folder.name == f"resource-openstack-v{version('pulumi-openstack')}"
    with subprocess.Popen(
        [folder / "pulumi-resource-openstack", "-v=3", "127.0.0.1:1"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
            information = provider_pb2_grpc.ResourceProviderStub(channel).GetPluginInfo(Empty())
        process.terminate()
    assert information.version == version("pulumi-openstack")
    assert process.returncode == 0
