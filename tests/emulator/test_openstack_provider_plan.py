"""The plan for each property that changes, by the facts of the official schema; no OpenStack is needed for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pulumi_openstack
import pytest

from emulator.azure.schema import Field, fields_of
from emulator.openstack_provider import planning, schema
from emulator.openstack_provider.cloud import Cloud
from emulator.openstack_provider.journal import Journal
from emulator.openstack_provider.kinds import KINDS
from emulator.openstack_provider.resources import OpenStackResources
from emulator.openstack_provider.schema import Property
from emulator.plugin.diffing import Difference
from emulator.plugin.host import Host
from emulator.plugin.operation import Operation
from emulator.plugin.paths import render
from emulator.plugin.provider import Naming
from emulator.plugin.wire import UNKNOWN, Properties, Secret

INSTANCE = "openstack:compute/instance:Instance"
KEYPAIR = "openstack:compute/keypair:Keypair"
RULE = "openstack:networking/secGroupRule:SecGroupRule"
VOLUME = "openstack:blockstorage/volume:Volume"
ATTACHMENT = "openstack:compute/volumeAttach:VolumeAttach"
PORT = "openstack:networking/port:Port"

UPDATED: Mapping[str, set[str]] = {
    KEYPAIR: set(),
    INSTANCE: {
        *("name", "imageId", "imageName", "flavorId", "flavorName", "securityGroups", "metadata", "adminPass"),
        *("personalities", "stopBeforeDestroy", "forceDelete", "powerState", "tags", "vendorOptions"),
    },
    ATTACHMENT: {"device"},
    VOLUME: {
        *("size", "enableOnlineResize", "name", "description", "metadata", "volumeType", "volumeRetypePolicy"),
    },
    PORT: {
        *("name", "description", "adminStateUp", "securityGroupIds", "noSecurityGroups", "fixedIps", "noFixedIp"),
        *("allowedAddressPairs", "extraDhcpOptions", "tags", "portSecurityEnabled", "binding", "dnsName"),
        "qosPolicyId",
    },
    "openstack:networking/floatingIp:FloatingIp": {
        *("description", "portId", "fixedIp", "subnetId", "subnetIds", "tags"),
    },
    "openstack:networking/floatingIpAssociate:FloatingIpAssociate": {"portId", "fixedIp"},
    "openstack:networking/secGroup:SecGroup": {"name", "description", "stateful", "tags"},
    RULE: set(),
    "openstack:networking/addressGroupV2:AddressGroupV2": {"name", "description", "addresses"},
}
"""What is updated in place: every other input replaces the resource. Read from terraform-provider-openstack v3.4.0, by
hand: an input without ForceNew, nor with it on what is inside of it."""


def resources(token: str) -> OpenStackResources:
    return OpenStackResources(
        Cloud({"authUrl": "http://127.0.0.1:1/v3"}), schema.resources()[token], KINDS[token], Journal(None)
    )


def operation(token: str, *ignored: str, preview: bool = False) -> Operation:
    return Operation(f"urn:pulumi:stack::project::{token}::thing", Host(""), preview=preview, ignore=ignored)


def plan(token: str, state: Mapping[str, Any], news: Mapping[str, Any], *ignored: str) -> Difference:
    return resources(token).diff(
        "id",
        Properties.of(dict(state)),
        Properties.of({}),
        Properties.of(dict(news)),
        operation(token, *ignored),
    )


def check(token: str, given: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> tuple[Any, list[str]]:
    naming = Naming("thing", seed=b"0" * 32)
    found = resources(token).check(
        Properties.of(dict(before or {})), Properties.of(dict(given)), naming, operation(token)
    )
    return found.inputs, [reason for _, reason in found.failures]


def value(of: Property, number: int) -> Any:
    """Return a value for a property; another one for another number."""
    if of.of:
        inside = {name: value(each, number) for name, each in of.of.items() if each.is_input}
        return inside if of.single else [inside]
    kind = (of.items or "string") if of.single else of.kind
    if of.values:
        return of.values[number % len(of.values)]
    single: Mapping[str, Any] = {
        "string": f"value-{number}",
        "integer": number,
        "boolean": number == 1,
        "number": number,
    }
    return {"map": {"key": f"value-{number}"}, "list": [f"value-{number}"], "set": [f"value-{number}"], **single}[kind]


def cases() -> Iterator[tuple[str, str]]:
    for token in sorted(UPDATED):
        for name in schema.resources()[token].inputs:
            yield token, name


def test_what_is_served_is_what_there_are_facts_of() -> None:
    assert KINDS.keys() == schema.resources().keys() == UPDATED.keys()


@pytest.mark.parametrize(("token", "name"), list(cases()))
@pytest.mark.parametrize("after", ["another", "none yet", "unknown"])
def test_a_changed_property_replaces_or_updates_as_the_official_schema_says(token: str, name: str, after: str) -> None:
    of = schema.resources()[token].properties[name]
    before = None if after == "none yet" else of.in_state(value(of, 1))
    found = plan(token, {name: before} if before else {}, {name: UNKNOWN if after == "unknown" else value(of, 2)})
    if not found.changes:
        # A boolean that goes from nothing to false.
        assert (after, of.kind) == ("none yet", "boolean")
        return
    assert {path.split(".")[0].split("[")[0] for path in found.changes} == {name}
    assert bool(found.replaces) is (name not in UPDATED[token])


@pytest.mark.parametrize(("token", "name"), list(cases()))
def test_a_property_that_is_given_no_more_is_a_change_unless_the_service_decides_it(token: str, name: str) -> None:
    of = schema.resources()[token].properties[name]
    found = plan(token, {name: of.in_state(value(of, 1))}, {})
    assert bool(found.changes) is not of.computed
    if found.changes:
        assert bool(found.replaces) is (name not in UPDATED[token])


@pytest.mark.parametrize("token", sorted(UPDATED))
def test_the_facts_name_the_inputs_of_the_sdk_with_their_types(token: str) -> None:
    module, _, name = token.removeprefix("openstack:").partition("/")
    arguments = getattr(getattr(pulumi_openstack, module), f"{name.partition(':')[2]}Args")
    assert kinds(schema.resources()[token].inputs) == kinds_of_sdk(fields_of(arguments))


def kinds(properties: Mapping[str, Property]) -> dict[str, Any]:
    def kind(of: Property) -> Any:
        inside = kinds(of.of) if of.of else None
        if of.single:
            return inside or of.items
        if of.kind in ("list", "set"):
            return [inside or of.items]
        return of.kind

    return {name: kind(each) for name, each in properties.items()}


def kinds_of_sdk(fields: Mapping[str, Field]) -> dict[str, Any]:
    def kind(shape: Any) -> Any:
        if shape.kind == "object":
            return kinds_of_sdk(shape.fields)
        return [kind(shape.of)] if shape.kind == "list" else shape.kind

    return {name: kind(field.shape) for name, field in fields.items()}


@pytest.mark.parametrize("token", sorted(UPDATED))
def test_what_is_missing_is_named(token: str) -> None:
    module, _, name = token.removeprefix("openstack:").partition("/")
    arguments = fields_of(getattr(getattr(pulumi_openstack, module), f"{name.partition(':')[2]}Args"))
    _, failures = check(token, {})
    # A pool may come from the environment (OS_POOL_NAME), which the SDK leaves to the provider.
    required = {"pool", *(each for each, field in arguments.items() if field.required)}
    assert failures == [
        f"missing required property '{each}'" for each in schema.resources()[token].inputs if each in required
    ]


RECORDED = {
    "name": "vm",
    "flavorId": "1",
    "flavorName": "standard.small",
    "imageId": "i",
    "imageName": "Ubuntu-24.04",
    "keyPair": "key",
    "networks": [
        {
            "uuid": "n",
            "name": "net",
            "port": "p",
            "fixedIpV4": "10.0.0.5",
            "fixedIpV6": "",
            "mac": "fa:16:3e",
            "accessNetwork": False,
        }
    ],
    "userData": "f6c3e6cf066eeeef3eb2dad41a725bffff4ba5a5",
    "powerState": "active",
    "tags": ["b", "a"],
    "securityGroups": ["ssh"],
    "accessIpV4": "10.0.0.5",
}
DECLARED = {
    "name": "vm",
    "flavorName": "standard.small",
    "imageId": "i",
    "keyPair": "key",
    "networks": [{"port": "p", "accessNetwork": False}],
    "powerState": "active",
    "tags": ["a", "b"],
}


@pytest.mark.parametrize(
    ("state", "news", "expected"),
    [
        ({}, {}, {"userData": True}),
        ({}, {"userData": "#cloud-config"}, {}),
        ({"userData": None}, {}, {}),
        ({"userData": None}, {"userData": "#cloud-config"}, {"userData": True}),
        ({"userData": None}, {"networks": [{"port": "q"}]}, {"networks[0].port": True}),
        ({"userData": None}, {"networks": [{"port": UNKNOWN}]}, {"networks[0].port": True}),
        ({"userData": None}, {"networks": [{"port": "p"}, {"port": "q"}]}, {"networks[1]": True}),
        ({"userData": None}, {"flavorName": "gpu.1.1gpu"}, {"flavorName": False}),
        ({"userData": None, "flavorName": ""}, {}, {"flavorName": True}),
        ({"userData": None}, {"imageId": "j"}, {"imageId": False}),
        ({"userData": None, "powerState": "shutoff"}, {}, {"powerState": False}),
        ({"userData": None, "powerState": "error"}, {}, {}),
        ({"userData": None}, {"tags": ["a", "c"]}, {"tags[0]": False, "tags[1]": False}),
        ({"userData": None}, {"blockDevices": [{"sourceType": "volume", "uuid": "v"}]}, {"blockDevices[0]": True}),
        ({"userData": None, "availabilityZone": "nova"}, {"availabilityZone": "nova:host"}, {}),
    ],
)
def test_the_plan_of_an_instance(state: dict[str, Any], news: dict[str, Any], expected: dict[str, bool]) -> None:
    before = {name: each for name, each in {**RECORDED, **state}.items() if each is not None}
    found = plan(INSTANCE, before, {**DECLARED, **news})
    assert {path: change.replaces for path, change in found.changes.items()} == expected
    assert found.delete_before_replace is any(expected.values())


def test_user_data_is_recorded_by_its_hash() -> None:
    assert (
        planning.planned(None, {"userData": "#cloud-config"}, schema.resources()[INSTANCE].properties)["userData"]
        == (RECORDED["userData"])
    )


def test_a_changed_address_is_that_one_property_and_the_new_rule_comes_first() -> None:
    state = {"direction": "ingress", "ethertype": "IPv4", "remoteIpPrefix": "192.0.2.1/32", "portRangeMin": 22}
    found = plan(RULE, state, {**state, "remoteIpPrefix": "192.0.2.2/32"})
    assert {path: change.replaces for path, change in found.changes.items()} == {"remoteIpPrefix": True}
    assert not found.delete_before_replace
    assert not plan(
        RULE, {**state, "remoteIpPrefix": "2001:db8::/64"}, {**state, "remoteIpPrefix": "2001:DB8::/64"}
    ).changes


def test_ignored_changes_are_no_changes() -> None:
    assert not plan(INSTANCE, {"imageId": "i", "name": "vm"}, {"imageId": "j", "name": "vm"}, "imageId").changes


def test_a_preview_of_a_creation_knows_the_inputs_and_nothing_else() -> None:
    _, found = resources(INSTANCE).create(Properties.of(DECLARED), operation(INSTANCE, preview=True))
    assert isinstance(found, dict)
    assert found["name"] == "vm"
    assert found["networks"][0]["port"] == "p"
    assert found["networks"][0]["fixedIpV4"] is UNKNOWN
    assert found["accessIpV4"] is UNKNOWN
    assert "userData" not in found


def test_a_preview_of_an_update_keeps_what_was_known() -> None:
    news = Properties.of({**DECLARED, "flavorName": "gpu.1.1gpu", "networks": [{"port": "p"}]})
    found = resources(INSTANCE).update("id", Properties.of(RECORDED), news, operation(INSTANCE, preview=True))
    assert isinstance(found, dict)
    assert (found["flavorName"], found["accessIpV4"], found["id"]) == ("gpu.1.1gpu", "10.0.0.5", "id")
    assert found["networks"][0]["mac"] == "fa:16:3e"


@pytest.mark.parametrize(
    ("token", "given", "failure"),
    [
        (
            RULE,
            {"remoteIpPrefix": "::/0", "remoteGroupId": "g"},
            "'remoteGroupId' and 'remoteIpPrefix' exclude each other",
        ),
        (RULE, {"portRangeMin": 22}, "'portRangeMin' needs 'protocol'"),
        (RULE, {"direction": "in"}, "'direction' is 'in'; allowed are ingress, egress"),
        (RULE, {"portRangeMax": 70000}, "'portRangeMax' is 70000; allowed is 0 to 65535"),
        (VOLUME, {"size": "big"}, "'size' should be an integer but is a string"),
        (VOLUME, {"sise": 2}, "unknown property 'sise'; did you mean 'size'?"),
        (INSTANCE, {"networks": [{"prot": "p"}]}, "unknown property 'networks[0].prot'; did you mean 'port'?"),
        (INSTANCE, {"blockDevices": [{}]}, "missing required property 'blockDevices[0].sourceType'"),
        (INSTANCE, {"accessIpV4": "10.0.0.1"}, "unknown property 'accessIpV4'"),
        (
            INSTANCE,
            {"powerState": "off"},
            "'powerState' is 'off'; allowed are active, shutoff, shelved_offloaded, paused",
        ),
    ],
)
def test_bad_inputs_are_named(token: str, given: dict[str, Any], failure: str) -> None:
    _, failures = check(token, given)
    assert any(each.startswith(failure) for each in failures), failures


def test_a_name_is_made_up_once_and_kept() -> None:
    inputs, _ = check(VOLUME, {"size": 1})
    assert inputs["name"].startswith("thing-")
    assert len(inputs["name"]) == len("thing-") + 7
    again, _ = check(VOLUME, {"size": 2}, inputs)
    assert again["name"] == inputs["name"]
    named, _ = check(VOLUME, {"size": 2, "name": "data"}, inputs)
    assert named["name"] == "data"
    assert plan(KEYPAIR, {"name": "a", "publicKey": "x"}, {"name": "a", "publicKey": "y"}).delete_before_replace
    made_up = {"name": "a", "publicKey": "y", "__defaults": ["name"]}
    assert not plan(KEYPAIR, {"name": "a", "publicKey": "x"}, made_up).delete_before_replace


def test_defaults_are_those_of_the_schema_and_secrets_stay_secret() -> None:
    given = {"userData": Secret("#cloud-config"), "blockDevices": [{"sourceType": "image", "uuid": "i"}]}
    inputs, _ = check(INSTANCE, given)
    assert (inputs["powerState"], inputs["forceDelete"]) == ("active", False)
    assert inputs["blockDevices"][0]["deleteOnTermination"] is False
    assert isinstance(inputs["userData"], Secret)


def test_every_path_of_a_change_is_one_that_the_engine_can_read() -> None:
    changes = planning.changes(
        {"metadata": {"a.b": "1"}}, {"metadata": {"a.b": "2"}}, schema.resources()[VOLUME].properties
    )
    assert [render(path) for path in changes] == ['metadata["a.b"]']
