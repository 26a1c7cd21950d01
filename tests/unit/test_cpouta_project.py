"""The requests to the project before an update, and the messages about the answers."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
import yaml
from keystoneauth1 import exceptions as signing
from openstack import exceptions as answers
from pydantic import TypeAdapter
from requests import RequestException

from stacks.config import inputs, parsing
from stacks.config.errors import ConfigError, SettingsError, key
from stacks.targets.cpouta import project_facts, project_rules, sign_in
from stacks.targets.cpouta.project_facts import FlavorFacts, ProjectFacts, Room, RuleFacts, ServerFacts, VolumeFacts
from stacks.targets.cpouta.settings import OpenstackSettings
from stacks.targets.cpouta.sign_in import ProjectError
from stacks.validation import rules as every
from tests.unit.configurations import ROOT, settings_of
from tests.unit.servers import Handler, serving
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


def openstack(**values: Any) -> OpenstackSettings:
    section: OpenstackSettings = settings_of(shipped(**values)).openstack
    return section


def refused(facts: ProjectFacts, **values: Any) -> list[ConfigError]:
    wanted = openstack(**values)
    return [*project_rules.offers(wanted, facts), *project_rules.room(wanted, facts)]


def test_a_key_that_nobody_could_sign_in_by_is_told_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_facts, "ask", lambda environment, **_: FACTS)
    with pytest.raises(SettingsError) as caught:
        inputs.interpret(shipped(privateKeyFile="/nowhere/key"), base=ROOT, environment={})
    (error,) = caught.value.problems
    assert (key(error.path), error.value) == ("mlbatch:openstack.privateKeyFile", "/nowhere/key")
    assert error.message == "there is no file /nowhere/key on this machine"


def existing(**values: Any) -> ProjectFacts:
    """Return a project with a volume that the settings name."""
    whole = {"size_gib": 75, "status": "available", "has_system": False, **values}
    return replace(FACTS, existing=VolumeFacts(**whole))


CLUSTER = "Kubernetes 1.35.8, port 6443"
OTHER_KEY = "ssh-ed25519 AAAAother somebody"
OWN = ServerFacts(flavor="standard.xxlarge", id="own")
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
    assert text.startswith("mlbatch:openstack.volume.existing names a volume with a cluster")
    assert "`pulumi config set --secret mlbatch:mlopsPassword`" in text
    own = ServerFacts(flavor="standard.xxlarge", id="vm")
    for fine in (
        told(raw, "mlopsPassword"),
        told(raw, existing=replace(noted, cluster="")),
        told(raw, existing=replace(noted, servers=frozenset({"vm"}), status="in-use"), server=own),
        told({**raw, "mlops": {"enabled": False}}),
    ):
        assert fine == []


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

    def test_a_volume_that_is_another_ones_takes_nothing_of_the_quota(self) -> None:
        full = replace(self.FULL, volume=VolumeFacts(size_gib=100, status="available", has_system=False))
        assert project_rules.needs(openstack(volume={"existing": VOLUME}), full)["gigabytes"].amount == 0


NAMED = {"volume": {"existing": VOLUME}}
NOTED = replace(TestWhatIsThere.FULL, server=ServerFacts(flavor="standard.xxlarge", cluster=CLUSTER))
GONE = replace(TestWhatIsThere.FULL, server=None, quotas={})
TAKEN: list[tuple[dict[str, Any], ProjectFacts]] = [
    ({}, FACTS),
    ({}, replace(FACTS, routes={"project_2001234": frozenset({"public"})})),
    ({}, replace(FACTS, key_pair=f"{openstack().ssh_public_key} another comment")),
    ({}, TestWhatIsThere.FULL),
    # The key of a stack that exists may change: its own key pair goes first.
    ({}, replace(TestWhatIsThere.FULL, key_pair=OTHER_KEY)),
    ({"flavor": "standard.3xlarge", "volume": {"size": 600}}, TestWhatIsThere.FULL),
    ({}, NOTED),
    *(
        ({"kind": {**kind, **more}}, facts)
        for kind in ({"kubernetes": "1.31.12"}, {"apiPort": 6444})
        for more, facts in (({"recreate": True}, NOTED), ({}, GONE))
    ),
    ({}, replace(GONE, volume=VolumeFacts(size_gib=500, status="in-use", has_system=False, cluster=CLUSTER))),
    (NAMED, existing()),
    ({**NAMED, "kind": {"kubernetes": "1.33.4"}}, existing(cluster="Kubernetes 1.33.4, port 6443")),
    (NAMED, replace(existing(status="in-use", servers=frozenset({"own"})), server=OWN)),
    # The VM's record is newer than the volume's, because a stack does not write to a volume that its settings name.
    (
        NAMED,
        replace(
            existing(status="in-use", servers=frozenset({"own"}), cluster="Kubernetes 1.33.4, port 6443"),
            server=replace(OWN, cluster=CLUSTER),
        ),
    ),
]


@pytest.mark.parametrize(("values", "facts"), TAKEN)
def test_what_the_project_can_give_is_taken(values: dict[str, Any], facts: ProjectFacts) -> None:
    assert refused(facts, **values) == []


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ({"image": "ours", "ubuntu": "22.04"}, replace(FACTS, images={"ours": "i9"}, own_images=frozenset({"ours"}))),
        ({"kind": {"recreate": True}}, NOTED),
        ({}, TestWhatIsThere.FULL),
    ],
)
def test_what_needs_no_warning(values: dict[str, Any], facts: ProjectFacts) -> None:
    assert list(project_rules.warnings(openstack(**values), facts)) == []


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
            assert said[0].startswith("This preview skips a check that an update requires: mlbatch:openstack")
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
                "cannot sign in: nobody; the credentials are wrong or expired",
                sign_in.OPENRC,
            ),
            (answers.ConfigException("no cloud"), "the credentials are incomplete: no cloud", sign_in.OPENRC),
            (
                answers.ForbiddenException("not you"),
                "these credentials cannot read the project: not you",
                "create an application credential with the role member and without access rules",
            ),
            (
                answers.SDKException("broken"),
                "no answer from csc: broken",
                "check the address in OS_AUTH_URL, the network, and CSC's service breaks; then try again",
            ),
            (
                RequestException(),
                "no answer from csc: RequestException",
                "check the address in OS_AUTH_URL, the network, and CSC's service breaks; then try again",
            ),
        ],
    )
    def test_what_a_service_refuses_is_told_with_what_to_do(
        self, error: Exception, said: str, hint: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def connect(environment: object) -> None:
            raise error

        monkeypatch.setattr(sign_in, "connect", connect)
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

    @pytest.mark.parametrize(
        ("name", "others"),
        [
            *((name, "an application credential") for name in ("OS_PASSWORD", "OS_TOKEN", "OS_AUTH_TOKEN")),
            ("OS_PROJECT_ID", "an application credential"),
            ("OS_CLOUD", "OS_AUTH_URL, OS_APPLICATION_CREDENTIAL_ID, OS_APPLICATION_CREDENTIAL_SECRET"),
        ],
    )
    def test_variables_of_two_identities_are_refused(self, refusing: str, name: str, others: str) -> None:
        """tests/local/test_openstack_sign_in.py shows what the provider would do with them."""
        with pytest.raises(ProjectError, match=f"{name} and {others} are set") as caught:
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


class _Keystone(Handler):
    """Rejects every user."""

    def respond(self) -> None:
        if self.command == "GET":
            self.answer(200, {"version": {"id": "v3.14", "status": "stable", "links": []}})
        else:
            self.answer(401, {"error": {"code": 401, "message": "The request you have made requires authentication."}})


@pytest.fixture
def refusing() -> Iterator[str]:
    """Yield the address of a Keystone that rejects every user."""
    with serving(_Keystone) as port:
        yield f"http://127.0.0.1:{port}/v3"


class _Service:
    """A service of a cloud as openstacksdk has it. A method selects from its answers by the fields that it is asked."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *_, **asked: self._select(self._answers.get(method), asked)

    def _select(self, found: Any, asked: dict[str, str]) -> Any:
        if isinstance(found, list):
            return [
                SimpleNamespace(**each)
                for each in found
                if all(field not in each or re.fullmatch(value, each[field]) for field, value in asked.items())
            ]
        if found is not None and "absolute" in found:
            return SimpleNamespace(absolute=SimpleNamespace(**found["absolute"]))
        return found and SimpleNamespace(**found)


def test_facts_are_read_off_the_services() -> None:
    known = yaml.safe_load((ROOT / "tests" / "unit" / "cpouta_project.yaml").read_text())
    services = {name: _Service(answers) for name, answers in known["services"].items()}
    cloud: Any = SimpleNamespace(current_project_id="p", **services)
    assert project_facts._facts(cloud, "vm", None) == TypeAdapter(ProjectFacts).validate_python(known["facts"])


def test_a_vm_is_found_by_its_whole_name_which_nova_reads_as_an_expression() -> None:
    thing = SimpleNamespace
    server = thing(
        name="v.m", id="s0", metadata={"mlbatch-image": "Ubuntu-22.04"}, flavor={"name": "m1"}, status="ACTIVE"
    )
    asked: list[str] = []
    cloud: Any = thing(
        compute=thing(servers=lambda name: asked.append(name) or [server]), block_storage=thing(volumes=list)
    )
    (found,) = project_facts._servers(cloud, "v.m")
    assert project_facts._server(cloud, found) == ServerFacts(flavor="m1", id="s0", cluster="")
    assert asked == [r"^v\.m$"]
    assert list(project_facts._servers(cloud, "vm")) == []
