"""Which setting of target `aks` becomes which field: each is given another value than its default, and found again."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulumi
import pytest
import yaml

from components.artifacts import Mirror
from components.azure import roles
from stacks.config.secrets import Concealed
from stacks.deploy import deploy
from tests.unit.conftest import ROOT
from tests.unit.harness import Record, build
from tests.unit.test_aks import CALLS, CLUSTER, deployed, loaded, only, provided, settings, shipped

CONTAINER = "azure-native:storage:BlobContainer"
WIRED = yaml.safe_load((ROOT / "tests" / "unit" / "aks_fields.yaml").read_text())
READS, WRITES = roles.BLOB_DATA_READER, roles.BLOB_DATA_CONTRIBUTOR


@pytest.fixture(scope="module")
def unusual(mirror: Mirror) -> Record:
    raw = settings(workloads={}, teams=[], queueing__enabled=False)
    raw["azure"] |= WIRED["settings"]
    raw["storage"]["volumes"][0]["container"] = "corpus"
    return deployed(mirror, raw)


def fields(value: object, path: str = "") -> dict[str, object]:
    """Return a value's fields by path with dots."""
    if isinstance(value, Mapping):
        return {name: found for key, inner in value.items() for name, found in fields(inner, f"{path}.{key}").items()}
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        items = (fields(inner, f"{path}[{index}]").items() for index, inner in enumerate(value))
        return {name: found for item in items for name, found in item}
    return {path.removeprefix("."): value}


@pytest.mark.parametrize("kind", WIRED["fields"])
def test_every_setting_reaches_its_field(unusual: Record, kind: str) -> None:
    expected = WIRED["fields"][kind]
    found = fields(only(unusual, kind).inputs)
    assert {path: found.get(path) for path in expected} == expected


def test_an_api_server_in_the_network_alone_is_asked_for(mirror: Mirror) -> None:
    raw = settings(workloads={}, teams=[], queueing__enabled=False)
    raw["azure"]["apiServer"] = {"private": True}
    profile = only(deployed(mirror, raw), CLUSTER).inputs["apiServerAccessProfile"]
    assert profile == {"enablePrivateCluster": True, "disableRunCommand": True}


def volume(name: str, **values: object) -> dict[str, object]:
    return {"name": name, "namespace": "blue", "container": f"corpus-{name}", **values}


def test_a_volume_that_is_reached_with_a_token_has_the_stacks_own(mirror: Mirror) -> None:
    raw = {**shipped(), "blobSasToken": Concealed.SECRET, "storage": {"volumes": [volume("a", access="sas")]}}
    stack = loaded(mirror, raw)
    token = "sv=2024-11-04&sr=c&sp=rl&sig=c2VjcmV0"

    def program() -> None:
        deploy(replace(stack, secrets={"blobSasToken": pulumi.Output.secret(token)}))

    (secret,) = [
        item
        for item in build(program, calls=CALLS, outputs=provided).resources
        if item.kind == "Secret" and item.object_name.endswith("-sas-token")
    ]
    assert "sas" in secret.object_name
    assert b64decode(secret.inputs["data"]["azurestorageaccountsastoken"]).decode() == token
    assert "data" in secret.secrets


@pytest.mark.parametrize(
    ("volumes", "given"),
    [
        pytest.param([], {}, id="no volume, no right"),
        pytest.param([volume("a")], {"corpus-a": READS}, id="reading alone"),
        pytest.param([volume("a"), volume("b")], {"corpus-a": READS, "corpus-b": READS}, id="two that are read"),
        pytest.param(
            [volume("a"), volume("b", readOnly=False)], {"corpus-a": READS, "corpus-b": WRITES}, id="one is written"
        ),
        pytest.param([volume("a", account="elsewhere", readOnly=False)], {}, id="on an account of somebody else"),
        pytest.param(
            [volume("a"), volume("b", account="elsewhere", readOnly=False)],
            {"corpus-a": READS},
            id="what is written elsewhere gives no right here",
        ),
    ],
)
def test_nodes_may_do_with_the_accounts_blobs_what_volumes_need_and_no_more(
    mirror: Mirror, volumes: Sequence[Mapping[str, Any]], given: Mapping[str, str]
) -> None:
    raw = {**shipped(), "storage": {"volumes": volumes}}
    found = deployed(mirror, raw)
    containers = {f"{item.name}-id": item.inputs["containerName"] for item in found.resources if item.type == CONTAINER}
    blobs = [
        (role.inputs["scope"], role.inputs["roleDefinitionId"].rpartition("/")[2])
        for role in found.resources
        if role.type.endswith(":RoleAssignment")
    ]
    assert [scope for scope, role in blobs if role in (READS, WRITES) and scope not in containers] == []
    assert {containers[scope]: role for scope, role in blobs if scope in containers} == given
