"""Sign-in to the local Keystone: the check before an update, and the provider, which signs in during it.

What only one of them accepts would fail in the middle of an update, or refuse credentials that are fine.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import openstack
import pytest
import yaml
from openstack.connection import Connection
from pulumi.runtime.proto import provider_pb2 as pb

from emulator.environment import environment
from emulator.openstack.deployment import Deployment
from emulator.openstack.facts import facts
from emulator.paths import Paths
from stacks.targets.cpouta import project_facts
from stacks.targets.cpouta.sign_in import ProjectError
from tests.local.environment import local_environment
from tests.local.test_openstack_services import provider, struct

pytestmark = pytest.mark.emulated("it signs in to the local Keystone")

DOMAINS = {"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_ID": "default"}
READ, GROUP = "openstack:networking/secGroup:SecGroup", "default"
UNCLEAR = "unclear which of them signs in"
WRONG = "wrong or expired"


@dataclass(frozen=True)
class Identities:
    """What a member of the project can sign in with, as variables, and the folder of clouds.yaml."""

    credential: Mapping[str, str]
    password: Mapping[str, str]
    token: str
    folder: Path

    @property
    def address(self) -> Mapping[str, str]:
        return {name: self.credential[name] for name in ("OS_AUTH_URL", "OS_REGION_NAME")}

    @property
    def typeless(self) -> Mapping[str, str]:
        return {name: text for name, text in self.credential.items() if name != "OS_AUTH_TYPE"}

    def cloud(self, variables: Mapping[str, str], **more: Any) -> Mapping[str, str]:
        """Write clouds.yaml with the identity of these variables; return the variables that name it."""
        auth = {
            name.removeprefix("OS_").lower(): text
            for name, text in variables.items()
            if name not in ("OS_REGION_NAME", "OS_AUTH_TYPE", "OS_INTERFACE", "OS_IDENTITY_API_VERSION")
        }
        file = self.folder / "clouds.yaml"
        file.write_text(yaml.safe_dump({"clouds": {"csc": {"auth": auth, "region_name": facts()["region"], **more}}}))
        return {"OS_CLOUD": "csc", "OS_CLIENT_CONFIG_FILE": str(file)}


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    with local_environment(openstack=True) as paths:
        yield paths


@pytest.fixture(scope="module")
def member(paths: Paths) -> Connection:
    """Return the project's member, who signed in by password."""
    return openstack.connect(
        load_envvars=False,
        load_yaml_config=False,
        region_name=facts()["region"],
        auth={
            "auth_url": environment(paths).variables["OS_AUTH_URL"],
            "username": facts()["user"],
            "password": Deployment(paths).folder.secrets()["member"],
            "project_name": facts()["project"],
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
    )


@pytest.fixture
def known(paths: Paths, member: Connection, tmp_path: Path) -> Identities:
    variables = {name: text for name, text in environment(paths).variables.items() if name.startswith("OS_")}
    password = {
        "OS_AUTH_URL": variables["OS_AUTH_URL"],
        "OS_REGION_NAME": variables["OS_REGION_NAME"],
        "OS_USERNAME": facts()["user"],
        "OS_PASSWORD": Deployment(paths).folder.secrets()["member"],
        "OS_PROJECT_NAME": facts()["project"],
    }
    return Identities(variables, password, str(member.session.get_token()), tmp_path)


Case = Callable[[Identities], Mapping[str, str]]
ALIKE: Mapping[str, Case] = {
    "application credential": lambda known: known.credential,
    "application credential without a type": lambda known: known.typeless,
    "application credential by name": lambda known: {
        **{name: text for name, text in known.credential.items() if not name.endswith("CREDENTIAL_ID")},
        **DOMAINS,
        "OS_APPLICATION_CREDENTIAL_NAME": facts()["credential"]["name"],
        "OS_USERNAME": facts()["user"],
    },
    "application credential beside a user": lambda known: {**known.credential, "OS_USERNAME": "other"},
    "application credential beside a domain": lambda known: {**known.credential, "OS_DOMAIN_NAME": "other"},
    "application credential, another interface": lambda known: {**known.credential, "OS_INTERFACE": "internal"},
    "password": lambda known: {**known.password, **DOMAINS},
    "password without domains": lambda known: known.password,
    "password with another type": lambda known: {**known.password, "OS_AUTH_TYPE": "v3applicationcredential"},
    "token": lambda known: {**known.address, "OS_TOKEN": known.token, "OS_PROJECT_NAME": facts()["project"]},
    "token by its other name": lambda known: {
        **known.address,
        **DOMAINS,
        "OS_AUTH_TOKEN": known.token,
        "OS_PROJECT_NAME": facts()["project"],
    },
    "token beside a wrong password": lambda known: {**known.password, "OS_TOKEN": known.token, "OS_PASSWORD": "x"},
    "clouds.yaml, application credential": lambda known: known.cloud(
        known.credential, auth_type="v3applicationcredential", interface="public"
    ),
    "clouds.yaml without a type": lambda known: known.cloud(known.credential),
    "clouds.yaml, password": lambda known: known.cloud({**known.password, **DOMAINS}),
    "clouds.yaml, region": lambda known: {**known.cloud(known.credential), "OS_REGION_NAME": facts()["region"]},
}
REFUSED: Mapping[str, tuple[Case, str]] = {
    "token": (lambda known: {**known.credential, "OS_TOKEN": known.token}, f"^OS_TOKEN and .* {UNCLEAR}"),
    "password": (
        lambda known: {**known.credential, **known.password},
        f"^OS_PASSWORD, OS_PROJECT_NAME and an application credential are set, so it is {UNCLEAR}",
    ),
    "project": (lambda known: {**known.credential, "OS_PROJECT_ID": "0" * 32}, f"^OS_PROJECT_ID and .* {UNCLEAR}"),
    "clouds.yaml": (
        lambda known: {**known.cloud(known.credential), **known.address, "OS_PASSWORD": "x"},
        f"^OS_CLOUD and OS_AUTH_URL, OS_PASSWORD are set, so it is {UNCLEAR}",
    ),
    "wrong token": (lambda known: {**known.password, "OS_TOKEN": "wrong"}, WRONG),
    "wrong project": (lambda known: {**known.password, "OS_PROJECT_ID": "0" * 32}, WRONG),
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_the_check_accepts_the_provider_accepts(
    name: str, known: Identities, member: Connection, paths: Paths
) -> None:
    variables = ALIKE[name](known)
    facts_of_project = project_facts.ask(variables, name="absent", existing=None)
    assert set(facts_of_project.networks) == {facts()["project"]}
    assert reads(paths, variables, member)


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_provider_may_take_otherwise_is_refused_by_name(
    name: str, known: Identities, member: Connection, paths: Paths
) -> None:
    given, said = REFUSED[name]
    with pytest.raises(ProjectError, match=said):
        project_facts.ask(given(known), name="absent", existing=None)
    # The credential's project is the one that the provider then uses, without a word about the variable.
    ignored = name == "project"
    if ignored:
        assert reads(paths, given(known), member)
    elif name != "clouds.yaml":
        with pytest.raises(grpc.RpcError):
            reads(paths, given(known), member)


def reads(paths: Paths, variables: Mapping[str, str], member: Connection) -> bool:
    """Return whether the provider reads a security group of the project; raises grpc.RpcError if it cannot sign in."""
    group = member.network.find_security_group(GROUP, project_id=member.current_project_id)
    with provider(paths, variables) as called:
        urn = "urn:pulumi:s::p::pulumi:providers:openstack::openstack"
        checked = called.CheckConfig(pb.CheckRequest(urn=urn, news=struct({})))
        called.Configure(pb.ConfigureRequest(args=checked.inputs))
        found = called.Read(pb.ReadRequest(id=group.id, urn=f"urn:pulumi:s::p::{READ}::group"))
    return bool(found.id == group.id)
