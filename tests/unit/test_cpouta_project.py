"""What the project is asked before anything is made, and what is told of the answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
from keystoneauth1 import exceptions as signing
from openstack import exceptions as answers
from requests import RequestException

from stacks.config import inputs, parsing
from stacks.config.errors import ConfigError, SettingsError, key
from stacks.targets.cpouta import project_facts, project_rules
from stacks.targets.cpouta.project_facts import (
    FlavorFacts,
    ProjectError,
    ProjectFacts,
    Room,
    RuleFacts,
    ServerFacts,
    VolumeFacts,
)
from stacks.targets.cpouta.settings import OpenstackSettings
from stacks.validation import rules as every
from tests.unit.configurations import ROOT, settings_of
from tests.unit.test_cpouta_settings import shipped

VOLUME = "11111111-2222-3333-4444-555555555555"
FACTS = ProjectFacts(
    flavors={
        "standard.xxlarge": FlavorFacts(cores=8, memory_mib=31_744),
        "standard.3xlarge": FlavorFacts(cores=8, memory_mib=63_488),
        "standard.tiny": FlavorFacts(cores=1, memory_mib=900),
    },
    images={"Ubuntu-22.04": "image-1", "Ubuntu-24.04": "image-2"},
    networks={"project_2001234": "network-1"},
    pools=frozenset({"public"}),
    volume_types=frozenset({"standard", "capacity"}),
    zones=frozenset({"nova"}),
    quotas={
        "instances": Room(limit=8, used=0),
        "cores": Room(limit=8, used=0),
        "memory": Room(limit=32_768, used=0),
        "volumes": Room(limit=10, used=0),
        "gigabytes": Room(limit=1000, used=0),
        "floating addresses": Room(limit=2, used=0),
        "security groups": Room(limit=None, used=3),
        "security group rules": Room(limit=100, used=8),
        "ports": Room(limit=500, used=2),
    },
)


ANOTHER = "name another volume, or remove the key for a new one"


def openstack(**values: Any) -> OpenstackSettings:
    section: OpenstackSettings = settings_of(shipped(**values)).openstack
    return section


def refused(facts: ProjectFacts, **values: Any) -> list[ConfigError]:
    wanted = openstack(**values)
    return [*project_rules.offers(wanted, facts), *project_rules.room(wanted, facts)]


def test_a_fresh_project_of_cpouta_suffices() -> None:
    assert refused(FACTS) == []


@pytest.mark.parametrize(
    ("field", "value", "there"),
    [
        ("flavor", "gpu.1.1gpu", "standard.xxlarge, standard.3xlarge"),
        ("image", "our-ubuntu", "Ubuntu-22.04, Ubuntu-24.04"),
        ("network", "project_2009999", "project_2001234"),
        ("pool", "internet", "public"),
        ("availabilityZone", "mars", "nova"),
    ],
)
def test_what_the_project_does_not_have_is_refused_with_what_it_has(field: str, value: str, there: str) -> None:
    release = {"ubuntu": "22.04"} if field == "image" else {}
    (error,) = [one for one in refused(FACTS, **{**release, field: value}) if one.path[-1] == field]
    assert key(error.path) == f"mlbatch:openstack.{field}"
    assert error.value == value
    assert error.expected == there


def test_a_network_that_no_router_joins_to_the_pool_is_refused_before_an_address_is_made() -> None:
    inside = {"project_2001234": frozenset({""}), "other": frozenset({"public"})}
    (error,) = refused(replace(FACTS, routes=inside))
    assert (key(error.path), error.value) == ("mlbatch:openstack.network", "project_2001234")
    assert (
        error.message == "no router leads from this network to public, so that no floating address would reach the VM"
    )
    assert error.expected == "other"
    assert "openstack router create --external-gateway public project_2001234-router" in error.hint
    assert refused(replace(FACTS, routes={"project_2001234": frozenset({"public"})})) == []
    assert refused(replace(FACTS, routes={})) == [], "nobody knows the routers of another project's network"


def test_a_key_that_nobody_could_sign_in_by_is_told_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_facts, "ask", lambda environment, **_: FACTS)
    with pytest.raises(SettingsError) as caught:
        inputs.interpret(shipped(privateKeyFile="/nowhere/key"), base=ROOT, environment={})
    (error,) = caught.value.problems
    assert (key(error.path), error.value) == ("mlbatch:openstack.privateKeyFile", "/nowhere/key")
    assert error.message == "there is no file /nowhere/key on this machine"


@pytest.mark.parametrize(("field", "name"), [("network", "project_2001234"), ("pool", "public")])
def test_a_name_that_several_networks_have_is_refused(field: str, name: str) -> None:
    (error,) = refused(replace(FACTS, ambiguous=frozenset({name, "elsewhere"})))
    assert (key(error.path), error.value) == (f"mlbatch:openstack.{field}", name)
    assert error.message == "the project sees several networks of this name, and nothing says which one is meant"


def test_a_flavor_that_csc_has_to_grant_is_told_so() -> None:
    (error,) = refused(FACTS, flavor="gpu.1.1gpu")
    assert error.hint == "ask CSC's service desk for it; until then take one of those"


@pytest.mark.parametrize(
    ("what", "room", "path", "said"),
    [
        (
            "instances",
            Room(limit=8, used=8),
            "name",
            "instances is 1 too small: the stack takes 1, and of 8 8 are used",
        ),
        ("cores", Room(limit=8, used=3), "flavor", "cores is 3 too small: the stack takes 8, and of 8 3 are used"),
        ("memory", Room(limit=32_768, used=2048), "flavor", "memory is 1024 MiB too small: the stack takes 31744 MiB"),
        ("volumes", Room(limit=2, used=2), "volume.size", "volumes is 1 too small"),
        ("gigabytes", Room(limit=1000, used=600), "volume.size", "gigabytes is 100 GiB too small"),
        ("floating addresses", Room(limit=2, used=2), "pool", "floating addresses is 1 too small"),
        ("security groups", Room(limit=10, used=10), "name", "security groups is 1 too small"),
        (
            "security group rules",
            Room(limit=100, used=98),
            "sshFrom",
            "security group rules is 1 too small: the stack takes 3",
        ),
        ("ports", Room(limit=5, used=5), "name", "ports is 1 too small"),
    ],
)
def test_a_quota_that_does_not_suffice_is_told_with_what_is_missing(
    what: str, room: Room, path: str, said: str
) -> None:
    (error,) = refused(replace(FACTS, quotas={**FACTS.quotas, what: room}))
    assert key(error.path) == f"mlbatch:openstack.{path}"
    assert said in error.message


def test_more_than_the_quota_leaves_no_room_at_all() -> None:
    (error,) = refused(replace(FACTS, quotas={"ports": Room(limit=5, used=7)}))
    assert error.message == ("the project's quota of ports is 3 too small: the stack takes 1, and of 5 7 are used")
    assert error.expected == "at most 0 more, or a larger quota"


NOTHING = dict.fromkeys(FACTS.quotas, 0)
FRESH = {
    "instances": 1,
    "cores": 8,
    "memory": 31_744,
    "volumes": 1,
    "gigabytes": 500,
    "floating addresses": 1,
    "security groups": 1,
    "security group rules": 3,
    "ports": 1,
}
BOOTED = ServerFacts(flavor="standard.xxlarge", boot_volume_gib=80)
BESIDE_A_VM = {**FRESH, "instances": 0, "cores": 0, "memory": 0}


@pytest.mark.parametrize(
    ("changed", "values", "amounts"),
    [
        ({}, {}, FRESH),
        ({}, {"bootVolume": 80}, {**FRESH, "volumes": 2, "gigabytes": 580}),
        ({}, {"volume": {"existing": VOLUME}}, {**FRESH, "volumes": 0, "gigabytes": 0}),
        ({}, {"volume": {"existing": VOLUME}, "bootVolume": 80}, {**FRESH, "volumes": 1, "gigabytes": 80}),
        ({}, {"flavor": "standard.3xlarge"}, {**FRESH, "memory": 63_488}),
        ({}, {"flavor": "gpu.1.1gpu"}, {**FRESH, "cores": 0, "memory": 0}),
        ({"has_group": True}, {}, {**FRESH, "security groups": 0, "security group rules": 1}),
        (None, {}, NOTHING),
        (None, {"bootVolume": 80}, {**NOTHING, "volumes": 1, "gigabytes": 80}),
        ({"server": BOOTED}, {"bootVolume": 80}, BESIDE_A_VM),
        ({"server": BOOTED}, {"bootVolume": 100}, {**BESIDE_A_VM, "gigabytes": 520}),
        ({"server": BOOTED}, {"bootVolume": 40}, BESIDE_A_VM),
        ({"server": BOOTED}, {}, BESIDE_A_VM),
        (None, {"volume": {"size": 620}}, {**NOTHING, "gigabytes": 120}),
        (None, {"flavor": "standard.3xlarge"}, {**NOTHING, "memory": 31_744}),
    ],
)
def test_what_a_stack_takes_that_it_has_not_yet(
    changed: dict[str, Any] | None, values: dict[str, Any], amounts: dict[str, int]
) -> None:
    """changed: of a fresh project; None for one that has the whole stack."""
    facts = TestWhatIsThere.FULL if changed is None else replace(FACTS, **changed)
    assert {what: need.amount for what, need in project_rules.needs(openstack(**values), facts).items()} == amounts


@pytest.mark.parametrize(
    ("source", "is_wide"),
    [
        (None, True),
        ("0.0.0.0/0", True),
        ("::/0", True),
        ("203.0.113.7/32", False),
        ("11111111-2222-3333-4444-555555555555", False),
    ],
)
def test_a_rule_lets_in_everybody_by_its_source_alone(source: str | None, is_wide: bool) -> None:
    assert RuleFacts(ports="22", source=source, description="a group").is_wide is is_wide


def test_an_image_of_cscs_name_that_is_not_cscs_is_told() -> None:
    (said,) = project_rules.warnings(openstack(), replace(FACTS, own_images=frozenset({"Ubuntu-22.04"})))
    assert said.startswith("mlbatch:openstack.image: Ubuntu-22.04 is the name of an image of CSC's, and the one that")
    assert "`openstack image show image-1` says whose it is" in said
    own = replace(FACTS, images={"ours": "image-9"}, own_images=frozenset({"ours"}))
    assert list(project_rules.warnings(openstack(image="ours", ubuntu="22.04"), own)) == []


def test_of_several_images_of_a_name_the_newest_public_one_is_taken_whatever_was_uploaded_since() -> None:
    found = [
        SimpleNamespace(name="Ubuntu-22.04", id="retired", visibility="public"),
        SimpleNamespace(name="Ubuntu-22.04", id="cscs", visibility="public"),
        SimpleNamespace(name="Ubuntu-22.04", id="uploaded", visibility="private"),
        SimpleNamespace(name="ours", id="first", visibility="private"),
        SimpleNamespace(name="ours", id="second", visibility="shared"),
    ]
    assert dict(project_facts._images(found)) == {"Ubuntu-22.04": "cscs", "ours": "second"}


def test_a_volume_of_another_stack_is_told_to_have_that_ones_password() -> None:
    noted = VolumeFacts(size_gib=500, status="available", has_system=False, cluster="Kubernetes 1.34.0, port 6443")
    raw = {**shipped(volume={"existing": VOLUME}, sshFrom={"me": "86.50.1.1/32"}), "mlops": {"enabled": True}}

    def told(raw: dict[str, Any], *secrets: str, **facts: Any) -> list[str]:
        partial, _ = parsing.read(raw, frozenset(secrets))
        partial.site = replace(FACTS, **{"existing": noted, **facts})
        return [text for text in every.warnings(partial) if "password" in text]

    (text,) = told(raw)
    assert text.startswith("mlbatch:openstack.volume.existing names a volume with a cluster on it")
    assert "`pulumi config set --secret mlbatch:mlopsPassword` takes it" in text
    own = ServerFacts(flavor="standard.xxlarge", id="vm")
    for fine in (
        told(raw, "mlopsPassword"),
        told(raw, existing=replace(noted, cluster="")),
        told(raw, existing=replace(noted, servers=frozenset({"vm"}), status="in-use"), server=own),
        told({**raw, "mlops": {"enabled": False}}),
    ):
        assert fine == []


def test_what_the_project_has_twice_is_told_for_nobody_else_knows_of_it() -> None:
    doubles = {"floating ip": ("a1", "a2"), "volume": ("v1", "v2", "v3")}
    address, volume = project_rules.warnings(openstack(), replace(FACTS, doubles=doubles))
    assert "more than one floating ip in the project, of which the stack has one at most: a1, a2; an update" in address
    assert address.endswith("`openstack floating ip delete` takes another one away")
    assert volume.endswith("`openstack volume delete` takes another one away; look first what is on it")


def test_a_key_pair_of_the_users_that_is_in_the_way_is_refused_before_anything_is_made() -> None:
    (error,) = refused(replace(FACTS, key_pair="ssh-ed25519 AAAAother somebody"))
    assert (key(error.path), error.value) == ("mlbatch:openstack.name", "mlops-platform")
    assert "`openstack keypair delete mlops-platform`, which takes no key from any VM" in str(error)
    assert refused(replace(FACTS, key_pair=f"{openstack().ssh_public_key} another comment")) == []
    # The key of a stack that exists may change: its own key pair goes first.
    assert refused(replace(TestWhatIsThere.FULL, key_pair="ssh-ed25519 AAAAother somebody")) == []


class TestWhatIsThere:
    """A stack that exists: its own VM, volume and address are counted as used already."""

    FULL = replace(
        FACTS,
        quotas={
            "instances": Room(limit=1, used=1),
            "cores": Room(limit=8, used=8),
            "memory": Room(limit=63_488, used=31_744),
            "volumes": Room(limit=1, used=1),
            "gigabytes": Room(limit=600, used=500),
            "floating addresses": Room(limit=1, used=1),
            "security groups": Room(limit=1, used=1),
            "security group rules": Room(limit=3, used=3),
            "ports": Room(limit=2, used=2),
        },
        server=ServerFacts(flavor="standard.xxlarge"),
        volume=VolumeFacts(size_gib=500, status="in-use", has_system=False),
        has_address=True,
        has_port=True,
        has_group=True,
        rules=(RuleFacts(ports="22", source="203.0.113.7/32", description="SSH from me"),),
    )

    def test_a_rule_more_takes_one_more(self) -> None:
        (error,) = refused(self.FULL, ports=[{"name": "web", "port": 443, "source": "203.0.113.7/32"}])
        assert key(error.path) == "mlbatch:openstack.ports"
        assert "security group rules is 1 too small: the stack takes 1, and of 3 3 are used" in error.message

    @pytest.mark.parametrize(
        ("changed", "path", "value"),
        [({"kubernetes": "1.31.12"}, "kind.kubernetes", "1.31.12"), ({"apiPort": 6444}, "kind.apiPort", 6444)],
    )
    def test_another_cluster_than_the_volume_has_is_refused_while_its_vm_is_there(
        self, changed: dict[str, Any], path: str, value: object
    ) -> None:
        assert self.FULL.server is not None
        facts = replace(self.FULL, server=replace(self.FULL.server, cluster="Kubernetes 1.34.0, port 6443"))
        assert refused(facts) == []
        (error,) = refused(facts, kind=changed)
        assert (key(error.path), error.value) == (f"mlbatch:openstack.{path}", value)
        assert error.expected == "Kubernetes 1.34.0, port 6443"
        assert "set mlbatch:openstack.kind.recreate to true, which removes it with all of its data" in str(error)
        assert refused(facts, kind={**changed, "recreate": True}) == []
        (gone,) = project_rules.warnings(openstack(kind={**changed, "recreate": True}), facts)
        assert (
            "the cluster on the volume, which has Kubernetes 1.34.0, port 6443, is REMOVED WITH ALL OF ITS DATA" in gone
        )
        assert list(project_rules.warnings(openstack(kind={"recreate": True}), facts)) == []
        assert self.FULL.volume is not None
        nobody = replace(facts, server=None, quotas={})
        assert refused(nobody, kind=changed) == []
        noted = replace(nobody, volume=replace(self.FULL.volume, cluster="Kubernetes 1.34.0, port 6443"))
        assert [key(each.path) for each in refused(noted, kind=changed)] == [f"mlbatch:openstack.{path}"]
        assert refused(noted) == []

    def test_it_takes_nothing_more(self) -> None:
        assert refused(self.FULL) == []

    def test_a_larger_flavor_and_volume_take_the_difference(self) -> None:
        assert refused(self.FULL, flavor="standard.3xlarge", volume={"size": 600}) == []
        (error,) = refused(self.FULL, volume={"size": 601})
        assert "gigabytes is 1 GiB too small: the stack takes 101 GiB" in error.message

    def test_a_volume_that_is_another_ones_takes_nothing_of_the_quota(self) -> None:
        full = replace(self.FULL, volume=VolumeFacts(size_gib=100, status="available", has_system=False))
        assert project_rules.needs(openstack(volume={"existing": VOLUME}), full)["gigabytes"].amount == 0

    def test_a_first_volume_to_boot_from_is_what_takes_more(self) -> None:
        volumes, gigabytes = refused(self.FULL, bootVolume=101)
        assert [key(error.path) for error in (volumes, gigabytes)] == ["mlbatch:openstack.bootVolume"] * 2
        assert "volumes is 1 too small: the stack takes 1, and of 1 1 are used" in volumes.message
        assert "gigabytes is 1 GiB too small: the stack takes 101 GiB" in gigabytes.message

    def test_a_volume_does_not_shrink(self) -> None:
        (error,) = refused(self.FULL, volume={"size": 400})
        assert (error.message, error.expected) == ("the volume has 500 GiB, and volumes do not shrink", "at least 500")

    def test_a_flavor_that_adds_gpus_replaces_the_vm_and_says_so(self) -> None:
        (warning,) = project_rules.warnings(openstack(flavor="gpu.1.1gpu"), self.FULL)
        assert "the VM is replaced; its address, its volume and what is on that stay" in warning

    def test_another_flavor_is_a_resize_where_csc_has_one(self) -> None:
        (within,) = project_rules.warnings(openstack(flavor="standard.3xlarge"), self.FULL)
        assert within.endswith("the VM is resized from standard.xxlarge to standard.3xlarge, which restarts it")
        (across,) = project_rules.warnings(openstack(flavor="hpc.6.14core"), self.FULL)
        assert "most VMs do not survive another family of flavors), so that the VM is replaced" in across
        with_gpu = replace(self.FULL, server=ServerFacts(flavor="gpu.1.1gpu"))
        (gpus,) = project_rules.warnings(openstack(flavor="gpu.1.2gpu"), with_gpu)
        assert "a VM with GPUs would not boot again), so that the VM is replaced" in gpus
        assert list(project_rules.warnings(openstack(), self.FULL)) == []

    def test_who_else_was_let_in_is_told_and_an_address_that_changes_is_not(self) -> None:
        rules = (
            RuleFacts(ports="22", source="203.0.113.7/32", description="SSH from me"),
            RuleFacts(ports="22", source="198.51.100.7/32", description="SSH from me"),
            RuleFacts(ports="443", source="198.51.100.7/32", description="web"),
            RuleFacts(ports="22", source="0.0.0.0/0", description=""),
            RuleFacts(ports="all", source=None, description=""),
        )
        web = [{"name": "web", "port": 443, "source": "203.0.113.7/32"}]
        said = list(project_rules.warnings(openstack(ports=web), replace(self.FULL, rules=rules)))
        assert [text.partition(", which")[0] for text in said] == [
            "the security group mlops-platform lets in 0.0.0.0/0 (port: 22)",
            "the security group mlops-platform lets in everybody (port: all)",
        ]

    @pytest.mark.parametrize(
        ("ports", "source", "description"),
        [
            ("22", "0.0.0.0/0", "SSH from everywhere"),
            ("22", "0.0.0.0/0", "SSH from me"),
            ("22", "198.51.100.7/32", "SSH from nobody"),
            ("8080", "198.51.100.7/32", "SSH from me"),
            ("443", "198.51.100.0/24", "web"),
            ("22", "other-group", "helper"),
        ],
    )
    def test_what_a_rule_calls_itself_hides_it_from_nobody(self, ports: str, source: str, description: str) -> None:
        rule = RuleFacts(ports=ports, source=source, description=description)
        (said,) = project_rules.warnings(openstack(), replace(self.FULL, rules=(rule,)))
        assert said.startswith(
            f'the security group mlops-platform lets in {source} (port: {ports}, described as "{description}")'
        )
        assert "if no update of this stack made the rule, which then goes with this one, somebody has opened it" in said

    def test_a_group_that_somebody_else_has_put_the_vm_into_is_told(self) -> None:
        group = (
            RuleFacts(ports="22", source="0.0.0.0/0", description=""),
            RuleFacts(ports="all", source=None, description=""),
        )
        (said, empty) = project_rules.warnings(
            openstack(), replace(self.FULL, other_groups={"default": group, "new": ()})
        )
        assert said.startswith("the VM is in the security group default, too")
        assert "lets in 0.0.0.0/0 (port: 22), everybody (port: all): " in said
        assert "`openstack server remove security group mlops-platform default`" in said
        assert "the group lets in nobody yet" in empty

    def test_a_port_that_no_rule_guards_is_told(self) -> None:
        (off,) = project_rules.warnings(openstack(), replace(self.FULL, unguarded=("p2",), is_left_out=True))
        assert off == (
            "port security of the VM's port p2 is switched off, so that no rule holds and everybody reaches all of the "
            "VM: `openstack port set --enable-port-security --security-group mlops-platform p2` switches it on"
        )
        (left,) = project_rules.warnings(openstack(), replace(self.FULL, is_left_out=True))
        assert left.startswith("the VM's port mlops-platform is not in the security group mlops-platform")


def test_an_existing_volume_is_looked_at() -> None:
    (absent,) = refused(FACTS, volume={"existing": VOLUME})
    assert absent.message == "the project has no volume of this id"
    system = replace(FACTS, existing=VolumeFacts(size_gib=500, status="available", has_system=True))
    (error,) = refused(system, volume={"existing": VOLUME})
    assert error.message == "an image was written to this volume, and its data would be lost to a new file system"
    assert (
        refused(
            replace(FACTS, existing=VolumeFacts(size_gib=500, status="available", has_system=False)),
            volume={"existing": VOLUME},
        )
        == []
    )


@pytest.mark.parametrize(
    ("there", "said", "hint"),
    [
        (
            {"status": "error"},
            "its status is error, in which no VM can take it",
            f"wait until it is available, as `openstack volume show` tells; where it stays error, {ANOTHER}",
        ),
        (
            {"status": "reserved"},
            "its status is reserved, in which no VM can take it",
            f"wait until it is available, as `openstack volume show` tells; where it stays reserved, {ANOTHER}",
        ),
        (
            {"status": "in-use", "servers": frozenset({"other", "and-another"})},
            "VM and-another, other has it",
            "`openstack server remove volume and-another <volume>` first",
        ),
        ({"size_gib": 74}, "the platform's images and volumes do not fit into its 74 GiB", ANOTHER),
        ({"kind": "capacity"}, "it is of type capacity, too slow for databases such as the cluster's", ANOTHER),
    ],
)
def test_an_existing_volume_that_the_vm_cannot_take_is_refused(there: dict[str, Any], said: str, hint: str) -> None:
    whole: dict[str, Any] = {"size_gib": 75, "status": "available", "has_system": False, **there}
    (error,) = refused(replace(FACTS, existing=VolumeFacts(**whole)), volume={"existing": VOLUME})
    assert (key(error.path), error.message) == ("mlbatch:openstack.volume.existing", said)
    assert error.expected == "a volume of at least 75 GiB that is available, or that the stack's VM has"
    assert error.hint == hint


def test_an_existing_volume_with_another_cluster_is_refused_before_there_is_a_vm() -> None:
    """After a destroy, say, by a version of the program that has another Kubernetes by default."""
    older = VolumeFacts(size_gib=75, status="available", has_system=False, cluster="Kubernetes 1.33.4, port 6443")
    (error,) = refused(replace(FACTS, existing=older), volume={"existing": VOLUME})
    assert (key(error.path), error.expected) == ("mlbatch:openstack.kind.kubernetes", "Kubernetes 1.33.4, port 6443")
    assert refused(replace(FACTS, existing=older), volume={"existing": VOLUME}, kind={"kubernetes": "1.33.4"}) == []
    by_now = f"`openstack volume set --property 'mlbatch-cluster=Kubernetes 1.34.0, port 6443' {VOLUME}`"
    assert str(error.hint).endswith(f"; or, where that is on it by now, {by_now}")
    # What its VM has is the newer word: no stack writes to a volume that it is told of.
    own = ServerFacts(
        flavor="standard.xxlarge",
        id="own",
        cluster="Kubernetes 1.34.0, port 6443",
    )
    used = replace(older, status="in-use", servers=frozenset({"own"}))
    assert refused(replace(FACTS, server=own, existing=used), volume={"existing": VOLUME}) == []


def test_a_volume_that_the_stacks_own_vm_has_is_taken() -> None:
    own = ServerFacts(flavor="standard.xxlarge", id="own")
    volume = VolumeFacts(size_gib=75, status="in-use", has_system=False, servers=frozenset({"own"}))
    assert refused(replace(FACTS, server=own, existing=volume), volume={"existing": VOLUME}) == []


class TestCredentials:
    def test_without_any_a_preview_is_told_what_was_not_checked(self) -> None:
        found = inputs.interpret(shipped(), base=ROOT, environment={})
        assert found.site is None
        assert found.unanswered is not None
        text = str(found.unanswered)
        assert "flavor, image, network, pool and quotas" in text
        assert "neither OS_AUTH_URL nor OS_CLOUD is set" in text
        assert "`source` it in the shell" in text

    @pytest.mark.parametrize("is_preview", [True, False])
    def test_an_update_without_any_is_refused(self, monkeypatch: pytest.MonkeyPatch, is_preview: bool) -> None:
        monkeypatch.setattr(inputs, "configuration", shipped)
        monkeypatch.setattr(inputs.os, "environ", {})
        monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: is_preview)
        said: list[str] = []
        monkeypatch.setattr(pulumi.log, "warn", said.append)
        if is_preview:
            inputs.load()
            assert said[0].startswith("Not checked in this preview, and refused in an update: mlbatch:openstack")
        else:
            with pytest.raises(pulumi.RunError, match="Nothing was created or changed"):
                inputs.load()

    def test_a_keystone_that_is_not_there_is_told_by_its_address(self) -> None:
        with pytest.raises(ProjectError, match=r"no answer from http://127\.0\.0\.1:1/v3") as caught:
            project_facts.ask(credentials("http://127.0.0.1:1/v3"), name="a", existing=None)
        assert "OS_AUTH_URL" in caught.value.hint

    @pytest.mark.parametrize(
        ("error", "said", "hint"),
        [
            (
                signing.Unauthorized("nobody\nat all"),
                "nobody could sign in: nobody; the credentials are wrong or expired",
                project_facts.OPENRC,
            ),
            (
                answers.ConfigException("no cloud"),
                "the credentials are not whole: no cloud",
                project_facts.OPENRC,
            ),
            (
                answers.ForbiddenException("not you"),
                "the project lets these credentials not look: not you",
                "make an application credential with the role member, and no access rules",
            ),
            (
                answers.SDKException("broken"),
                "no answer from csc: broken",
                "look at the address in OS_AUTH_URL, at the network, and at CSC's service breaks; then try again",
            ),
            (
                RequestException(),
                "no answer from csc: RequestException",
                "look at the address in OS_AUTH_URL, at the network, and at CSC's service breaks; then try again",
            ),
        ],
    )
    def test_what_a_service_refuses_is_told_with_what_to_do(
        self, error: Exception, said: str, hint: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def connect(environment: object) -> None:
            raise error

        monkeypatch.setattr(project_facts, "_connect", connect)
        with pytest.raises(ProjectError) as caught:
            project_facts.ask({"OS_CLOUD": "csc"}, name="a", existing=None)
        assert (str(caught.value), caught.value.hint) == (said, hint)

    def test_clouds_yaml_is_found_where_the_official_provider_finds_it(self, refusing: str, tmp_path: Path) -> None:
        """And nowhere else: what is signed in with here and not there would fail in the middle of an update."""
        auth = {"auth_url": refusing, "application_credential_id": "0123"}
        whole = {**auth, "application_credential_secret": "hunter2"}
        for file, given in (("part", auth), ("rest", whole), ("whole", whole)):
            cloud = {"auth_type": "v3applicationcredential", "auth": given}
            (tmp_path / file).write_text(json.dumps({"clouds": {"csc": cloud}}))
        environment = {"OS_CLOUD": "csc", "OS_CLIENT_SECURE_FILE": str(tmp_path / "rest")}
        for file, said in (("whole", "credentials are wrong or expired$"), ("part", "You must provide an auth secret")):
            with pytest.raises(ProjectError, match=said):
                project_facts.ask(
                    {**environment, "OS_CLIENT_CONFIG_FILE": str(tmp_path / file)}, name="a", existing=None
                )

    @pytest.mark.parametrize("name", ["OS_PASSWORD", "OS_TOKEN", "OS_AUTH_TOKEN"])
    def test_a_variable_that_the_provider_prefers_is_refused(self, refusing: str, name: str) -> None:
        """Keystone gets the password where both are set (gophercloud, ToTokenV3CreateMap)."""
        with pytest.raises(ProjectError, match=f"{name} and an application credential are set") as caught:
            project_facts.ask({**credentials(refusing), name: "s3cret"}, name="a", existing=None)
        assert f"unset {name}" in caught.value.hint
        assert "s3cret" not in f"{caught.value}{caught.value.hint}"

    def test_expired_ones_are_told_so_without_showing_them(self, refusing: str) -> None:
        with pytest.raises(ProjectError, match="wrong or expired") as caught:
            project_facts.ask(credentials(refusing), name="a", existing=None)
        assert "source" in caught.value.hint
        assert "hunter2" not in f"{caught.value}{caught.value.hint}"


def credentials(auth_url: str) -> dict[str, str]:
    return {
        "OS_AUTH_URL": auth_url,
        "OS_AUTH_TYPE": "v3applicationcredential",
        "OS_APPLICATION_CREDENTIAL_ID": "0123456789abcdef0123456789abcdef",
        "OS_APPLICATION_CREDENTIAL_SECRET": "hunter2",
        "OS_REGION_NAME": "regionOne",
    }


class _Keystone(BaseHTTPRequestHandler):
    """Knows nobody."""

    def do_GET(self) -> None:
        self._answer(200, b'{"version": {"id": "v3.14", "status": "stable", "links": []}}')

    def do_POST(self) -> None:
        self._answer(401, b'{"error": {"code": 401, "message": "The request you have made requires authentication."}}')

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[str]:
    """Yield the address of a Keystone that lets nobody in."""
    server = HTTPServer(("127.0.0.1", 0), _Keystone)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v3"
    server.shutdown()
    server.server_close()


def _port(
    identifier: str,
    *,
    device_id: str,
    network_id: str,
    name: str = "",
    groups: Sequence[str] = (),
    secure: bool | None = False,
) -> SimpleNamespace:
    return SimpleNamespace(
        id=identifier,
        name=name,
        project_id="p",
        device_id=device_id,
        network_id=network_id,
        security_group_ids=list(groups),
        is_port_security_enabled=secure,
    )


def test_facts_are_read_off_the_services() -> None:
    """What each service answers, as openstacksdk hands it over, becomes one value."""
    thing = SimpleNamespace
    cloud: Any = thing(
        current_project_id="p",
        network=thing(
            networks=lambda: [
                thing(name="project_1", id="n1", is_router_external=False, project_id="p"),
                thing(name="inside", id="n3", is_router_external=False, project_id="p"),
                thing(name="shared", id="n4", is_router_external=False, project_id="others"),
                thing(name="shared", id="n5", is_router_external=False, project_id="others"),
                thing(name="public", id="n2", is_router_external=True, project_id="others"),
            ],
            routers=lambda project_id: [
                thing(id="r1", external_gateway_info={"network_id": "n2"}),
                thing(id="r2", external_gateway_info=None),
            ],
            ips=lambda: [
                thing(id="a1", description="The address of vm"),
                thing(id="a2", description="The address of another"),
                thing(id="a3", description="The address of vm"),
            ],
            ports=lambda **asked: [
                each
                for each in (
                    _port("p1", name="vm", device_id="s0", network_id="n1", groups=["g3"], secure=True),
                    _port("p2", device_id="s0", network_id="n1"),
                    _port("p3", device_id="s9", network_id="n1", groups=["g9"]),
                    _port("p4", device_id="r1", network_id="n1"),
                    _port("p5", device_id="r2", network_id="n3"),
                    # Of a Neutron without the extension port-security, where all ports are guarded.
                    _port("p6", device_id="s0", network_id="n1", groups=["g1"], secure=None),
                )
                if all(getattr(each, field) == value for field, value in asked.items())
            ],
            find_security_group=lambda identifier: thing(name=f"name of {identifier}"),
            security_groups=lambda name: [thing(id="g1", description="Who may reach vm, of stack acme/mlbatch/site")],
            security_group_rules=lambda security_group_id, direction: [
                thing(port_range_min=22, port_range_max=22, remote_ip_prefix="0.0.0.0/0", description=None),
                thing(port_range_min=80, port_range_max=90, remote_ip_prefix="192.0.2.0/24", description="web"),
                thing(
                    port_range_min=None,
                    port_range_max=None,
                    remote_ip_prefix=None,
                    remote_group_id="g2",
                    description="",
                ),
            ],
            get_quota=lambda project, details: thing(
                floating_ips={"limit": 2, "used": 1},
                security_groups={"limit": -1, "used": 0},
                security_group_rules={"limit": 100, "used": 7},
                ports={"limit": 500, "used": 3},
            ),
        ),
        compute=thing(
            flavors=lambda: [thing(name="standard.xxlarge", vcpus=8, ram=31_744)],
            availability_zones=lambda: [thing(name="nova", state={"available": True})],
            servers=lambda name: [
                thing(name="vm-2", metadata={}, image=None, flavor={}),
                thing(name="vm", id="by-hand", metadata={}, image={"id": "i9"}, flavor={}),
                thing(
                    name="vm",
                    id="s0",
                    metadata={"mlbatch-image": "Ubuntu-22.04", "mlbatch-cluster": "Kubernetes 1.34.0, port 6443"},
                    image={"id": "i0"},
                    flavor={"original_name": "standard.xxlarge"},
                ),
            ],
            find_keypair=lambda name: thing(public_key=f"ssh-ed25519 AAAA {name}"),
            get_limits=lambda: thing(
                absolute=thing(
                    instances=8,
                    instances_used=1,
                    total_cores=8,
                    total_cores_used=8,
                    total_ram=32_768,
                    total_ram_used=31_744,
                )
            ),
        ),
        image=thing(
            images=lambda **_: [
                thing(name="Ubuntu-22.04", id="old", visibility="public"),
                thing(name="Ubuntu-22.04", id="new", visibility="public"),
                thing(name="ours", id="i7", visibility="private"),
            ]
        ),
        block_storage=thing(
            types=lambda: [thing(name="standard")],
            volumes=lambda name=None: [
                thing(
                    description="somebody's",
                    metadata={},
                    size=90,
                    status="in-use",
                    volume_image_metadata={"os_distro": "ubuntu"},
                    volume_type="standard",
                    attachments=[{"server_id": "s0"}],
                ),
                thing(
                    description="Data of vm",
                    metadata={"mlbatch-cluster": "Kubernetes 1.34.0, port 6443"},
                    size=500,
                    status="in-use",
                    volume_image_metadata=None,
                    volume_type="standard",
                    attachments=[{"server_id": "s0"}],
                ),
            ],
            find_volume=lambda identifier: None,
            get_limits=lambda: thing(
                absolute=thing(
                    max_total_volumes=10,
                    total_volumes_used=1,
                    max_total_volume_gigabytes=1000,
                    total_gigabytes_used=500,
                )
            ),
        ),
    )
    assert project_facts._facts(cloud, "vm", None) == ProjectFacts(
        flavors={"standard.xxlarge": FlavorFacts(cores=8, memory_mib=31_744)},
        images={"Ubuntu-22.04": "new", "ours": "i7"},
        own_images=frozenset({"ours"}),
        networks={"project_1": "n1", "inside": "n3", "shared": "n5"},
        pools=frozenset({"public"}),
        ambiguous=frozenset({"shared"}),
        routes={"project_1": frozenset({"public"}), "inside": frozenset({""})},
        volume_types=frozenset({"standard"}),
        zones=frozenset({"nova"}),
        quotas={
            "instances": Room(limit=8, used=1),
            "cores": Room(limit=8, used=8),
            "memory": Room(limit=32_768, used=31_744),
            "volumes": Room(limit=10, used=1),
            "gigabytes": Room(limit=1000, used=500),
            "floating addresses": Room(limit=2, used=1),
            "security groups": Room(limit=None, used=0),
            "security group rules": Room(limit=100, used=7),
            "ports": Room(limit=500, used=3),
        },
        server=ServerFacts(
            flavor="standard.xxlarge",
            id="s0",
            cluster="Kubernetes 1.34.0, port 6443",
            boot_volume_gib=90,
        ),
        key_pair="ssh-ed25519 AAAA vm",
        volume=VolumeFacts(
            size_gib=500,
            status="in-use",
            has_system=False,
            kind="standard",
            servers=frozenset({"s0"}),
            cluster="Kubernetes 1.34.0, port 6443",
        ),
        has_address=True,
        has_port=True,
        has_group=True,
        doubles={"floating ip": ("a1", "a3")},
        owner="acme/mlbatch/site",
        rules=(
            RuleFacts(ports="22", source="0.0.0.0/0", description=""),
            RuleFacts(ports="80 to 90", source="192.0.2.0/24", description="web"),
            RuleFacts(ports="all", source="g2", description=""),
        ),
        other_groups={
            "name of g3": (
                RuleFacts(ports="22", source="0.0.0.0/0", description=""),
                RuleFacts(ports="80 to 90", source="192.0.2.0/24", description="web"),
                RuleFacts(ports="all", source="g2", description=""),
            )
        },
        unguarded=("p2",),
        is_left_out=True,
    )


def test_a_vm_is_found_by_its_whole_name_which_nova_reads_as_an_expression() -> None:
    thing = SimpleNamespace
    server = thing(name="v.m", id="s0", metadata={"mlbatch-image": "Ubuntu-22.04"}, flavor={"name": "m1"})
    asked: list[str] = []
    cloud: Any = thing(
        compute=thing(servers=lambda name: asked.append(name) or [server]), block_storage=thing(volumes=list)
    )
    (found,) = project_facts._servers(cloud, "v.m")
    assert project_facts._server(cloud, found) == ServerFacts(flavor="m1", id="s0", cluster="")
    assert asked == [r"^v\.m$"]
    assert list(project_facts._servers(cloud, "vm")) == []
