"""The copy of a stack's settings that the local environment runs leads nowhere else, and is else the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.settings import ARTIFACTS, foreign_secrets, localise, sign_in_with, unprotect
from runner.stack_file import StackFile, spelled

MIRROR = Path("/local/mirror")


def localised(document: dict[str, Any], project: dict[str, Any] | None = None) -> dict[str, Any]:
    file = StackFile(yaml.safe_dump(document))
    localise(file, project or {}, MIRROR)
    return file.values


CONTENTS: tuple[Callable[[], dict[str, Any]], ...] = (
    lambda: {"config": {"mlbatch:kubernetes": {"kubeconfig": "x", "context": "y"}}},
    lambda: {"config": {"mlbatch:kubernetes": '{"kubeconfig": "x", "context": "y"}'}},
    lambda: {"config": {"mlbatch:kubernetes": {"secure": "v1:abc"}}},
    lambda: {"config": {"mlbatch:kubernetes": {}}},
    lambda: {"config": {}},
    dict,
)


@pytest.mark.parametrize("content", CONTENTS)
def test_a_real_cluster_is_taken_out_of_the_copied_settings(content: Callable[[], Any]) -> None:
    document = localised({**content(), "more": "kept"})
    assert not document["config"].get("mlbatch:kubernetes")
    assert document["more"] == "kept"


@pytest.mark.parametrize("declared", [{"default": {"kubeconfig": "x"}}, {"value": {"kubeconfig": "x"}}])
@pytest.mark.parametrize("key", ["kubernetes", "mlbatch:kubernetes"])
def test_a_real_cluster_of_the_projects_defaults_is_overridden(declared: dict[str, Any], key: str) -> None:
    assert localised({"config": {}}, {"config": {key: declared}})["config"]["mlbatch:kubernetes"] == {}


def test_other_keys_of_the_cluster_stay() -> None:
    config = {
        "mlbatch:kubernetes": {"kubeconfig": "x", "context": "y", "identifier": "i", "pool": "z"},
        "kubernetes:context": "real",
    }
    found = localised({"config": config})["config"]
    assert found["mlbatch:kubernetes"] == {"pool": "z"}
    assert "kubernetes:context" not in found


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, {}),
        ({}, {}),
        ({"images": "registry.example.org/m"}, {"images": "registry.example.org/m"}),
        ({ARTIFACTS: "https://mirror.example.org", "verify": True}, {}),
        ('{"images": "registry.example.org/m"}', {"images": "registry.example.org/m"}),
    ],
)
def test_the_files_of_upstream_come_from_the_local_mirror(given: Any, wanted: dict[str, Any]) -> None:
    config = {} if given is None else {"mlbatch:mirror": given}
    local = {ARTIFACTS: str(MIRROR), "verify": False}
    assert localised({"config": config})["config"]["mlbatch:mirror"] == {**wanted, **local}


def test_a_mistake_in_the_settings_is_left_for_the_program_to_name() -> None:
    config = {"mlbatch:mirror": "nonsense", "mlbatch:kubernetes": ["nonsense"], "mlbatch:teams": 3}
    assert localised({"config": config})["config"] == config


def test_no_vault_of_a_cloud_is_asked_for_a_key() -> None:
    document = {"secretsprovider": "hashivault://k", "encryptedkey": "abc", "encryptionsalt": "v1:x", "config": {}}
    assert localised(document).keys() == {"config"}


SECURE = {"config": {"mlbatch:token": {"secure": "v1:abc:def"}, "mlbatch:target": "aks"}}


@pytest.mark.parametrize(
    ("more", "foreign"),
    [
        ({}, []),
        ({"encryptionsalt": "v1:mine"}, []),
        ({"encryptionsalt": "v1:theirs"}, [("mlbatch:token",)]),
        ({"secretsprovider": "passphrase", "encryptionsalt": "v1:mine"}, []),
        ({"secretsprovider": "awskms://alias/k", "encryptedkey": "x"}, [("mlbatch:token",)]),
        ({"config": {"mlbatch:token": {"secure": "AAABAMhtJ9Y="}}}, [("mlbatch:token",)]),
        ({"config": {"mlbatch:a": {"b.c": [1, {"secure": "AAAB"}]}}}, [("mlbatch:a", "b.c", 1)]),
    ],
)
def test_secrets_of_another_backend_are_told_from_the_local_ones(more: dict[str, Any], foreign: list[Any]) -> None:
    assert list(foreign_secrets(StackFile(yaml.safe_dump({**SECURE, **more})), "v1:mine")) == foreign


@pytest.mark.parametrize(
    "value",
    [
        "secure",
        {"secure": 1},
        {"secure": "x", "more": "y"},
        {"secure": {"a": "b"}},
        '{"secure": "x"}',
        {"secure": None},
    ],
)
def test_only_what_the_engine_takes_for_a_secret_is_one(value: Any) -> None:
    assert StackFile(yaml.safe_dump({"config": {"mlbatch:a": value}})).secrets == {}


def test_a_secret_gets_another_ciphertext_where_it_stands() -> None:
    text = "config:\n  a: no\n  mlbatch:a:\n    b.c:\n    - x: 1:30\n      y:\n        secure: old\n"
    file = StackFile(text)
    (path,) = file.secrets
    assert spelled(path) == 'mlbatch:a["b.c"][0].y'
    file.put_secret(path, "new")
    assert file.text() == text.replace("old", "new")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("config:\n  a: 's3cr3t' {\n", r"line 2, column \d+ is not valid YAML: "),
        ("config: s3cr3t\x00", "this is not valid YAML: "),
    ],
)
def test_what_is_not_yaml_is_an_error_that_quotes_nothing(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}") as raised:
        StackFile(text)
    assert "s3cr3t" not in str(raised.value)


def test_what_is_not_changed_keeps_its_spelling() -> None:
    text = "config:\n  a: no\n  b: 1:30\n  c: 'no'\n  d: 0755\n  e: \"x\"\n"
    file = StackFile(text)
    file.put_config("f", "no")
    file.put("encryptionsalt", "v1:x")
    assert file.text() == f"{text}  f: 'no'\nencryptionsalt: v1:x\n"
    file.drop_config("f")
    file.drop("encryptionsalt")
    assert file.text() == text


@pytest.mark.parametrize("text", ["", "config:\n", "config: {}\n", "# nothing\n"])
def test_an_empty_file_takes_settings(text: str) -> None:
    file = StackFile(text)
    assert file.config == {}
    file.put_config("mlbatch:a", {"b": [1]})
    assert file.values == {"config": {"mlbatch:a": {"b": [1]}}}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"location": "eastus"}, {"location": "eastus", "protect": False}),
        ({"protect": True}, {"protect": False}),
        ('{"protect": true}', {"protect": False}),
        ({"protect": False}, {"protect": False}),
        ({"protect": "perhaps"}, {"protect": "perhaps"}),
        ({"secure": "v1:abc"}, {"secure": "v1:abc"}),
        ([], []),
    ],
)
def test_a_place_that_is_thrown_away_protects_nothing(given: Any, wanted: Any) -> None:
    for section in ("azure", "tenancy"):
        file = StackFile(yaml.safe_dump({"config": {f"mlbatch:{section}": given}}))
        unprotect(file, {})
        assert file.config[f"mlbatch:{section}"] == wanted


def test_a_stack_without_azure_gets_no_such_section() -> None:
    file = StackFile(yaml.safe_dump({"config": {"mlbatch:target": "simulated"}}))
    unprotect(file, {})
    assert file.config == {"mlbatch:target": "simulated", "mlbatch:tenancy": {"protect": False}}


def test_vms_let_in_who_works_in_the_local_cloud(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.with_suffix(".pub").write_text("ssh-ed25519 AAAA local\n")
    section = {"network": "project_1", "sshPublicKey": "ssh-ed25519 BBBB mine"}
    file = StackFile(yaml.safe_dump({"config": {"mlbatch:openstack": section, "mlbatch:target": "cpouta"}}))
    sign_in_with(file, {}, key)
    own = {"sshPublicKey": "ssh-ed25519 AAAA local", "privateKeyFile": str(key)}
    assert file.config == {"mlbatch:target": "cpouta", "mlbatch:openstack": {**section, **own}}


def test_a_stack_without_vms_gets_no_key(tmp_path: Path) -> None:
    file = StackFile("config: {}")
    sign_in_with(file, {"config": {"openstack": {"default": {}}}}, tmp_path / "key")
    assert file.config == {}
