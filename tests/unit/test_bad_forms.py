"""Errors in the form of values: they contain no secrets, only this project's words, and one problem for each error."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from pulumi.runtime.config import set_all_config

from stacks.config import engine_yaml, inputs
from stacks.targets.registry import TARGETS
from stacks.validation import rules
from tests.unit.configurations import ROOT, aks, errors_of, partial_of
from tests.unit.refusals.cases import cases
from tests.unit.settings_strategies import at, paths, put
from tests.unit.test_cpouta_settings import shipped as cpouta
from tests.unit.test_inputs import configure
from tests.unit.test_settings import changed, interpret, valid

PASSWORD = "hunter2-hunter2"
NUMBER = 55556666


@pytest.fixture(autouse=True)
def no_configuration() -> Iterator[None]:
    yield
    set_all_config({}, [])


def said(raw: dict[str, Any], *secrets: str) -> str:
    return "\n".join(str(error) for error in errors_of(raw, *secrets))


@pytest.mark.parametrize("raw", list(cases("secrets")), ids=lambda raw: str(sorted(raw)))
def test_what_may_be_a_password_is_in_no_message(raw: dict[str, Any]) -> None:
    text = said(raw)
    assert text
    assert PASSWORD not in text
    assert str(NUMBER) not in text


SECRET_BY_FORM = {
    "address": f"https://robot:{PASSWORD}@registry.example.org/x",
    "kubeconfig": f"apiVersion: v1\nkind: Config\nusers: [{{name: a, user: {{token: {PASSWORD}}}}}]",
    "private key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PASSWORD}\n-----END OPENSSH PRIVATE KEY-----",
    "two lines": f"ssh-ed25519 AAAA\n{PASSWORD}",
    "connection string": f"AccountName=x;AccountKey={PASSWORD};",
    "shared access signature": f"https://abc.blob.core.windows.net/y?sv=2024-05-04&sig={PASSWORD}&se=2025-01-01",
    "token": "hf_" + "hunter2" * 5,
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", SECRET_BY_FORM)
def test_what_is_a_secret_by_its_form_is_in_no_message_wherever_it_was_pasted(form: str, target: str) -> None:
    raw = yaml.safe_load((ROOT / "reference" / "examples" / f"{target}.yaml").read_text())["config"]
    raw = {name.removeprefix("mlbatch:"): value for name, value in raw.items()}
    texts = [path for path in paths(target) if at(target, path).get("type") == "string"]
    for path in texts:
        put(raw, path, SECRET_BY_FORM[form])
    found = errors_of(raw)
    assert len(found) >= 15
    assert [error for error in found if "hunter2" in str(error)] == []


ONE_LINE = f"{{apiVersion: v1, kind: Config, users: [{{name: a, user: {{token: {PASSWORD}}}}}]}}"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        *((aks({"sshPublicKey": key}), "azure.sshPublicKey") for key in (PASSWORD, *SECRET_BY_FORM.values())),
        *((cpouta(sshPublicKey=key), "openstack.sshPublicKey") for key in (PASSWORD, *SECRET_BY_FORM.values())),
        (cpouta(privateKeyFile=SECRET_BY_FORM["private key"]), "openstack.privateKeyFile"),
        (aks({"adminUser": f"azureuser:{PASSWORD}"}), "azure.adminUser"),
        (aks({"resourceGroup": f"robot:{PASSWORD}"}), "azure.resourceGroup"),
        (aks(workloads={"jupyterlab": {"token": PASSWORD}}), "workloads.jupyterlab.token"),
        *(
            ({**valid(), "kubernetes": {"kubeconfig": text}}, "kubernetes.kubeconfig")
            for text in (ONE_LINE, b64encode(ONE_LINE.encode()).decode(), SECRET_BY_FORM["kubeconfig"])
        ),
    ],
    ids=str,
)
def test_of_a_value_that_is_a_secret_where_it_stands_nothing_is_shown(raw: dict[str, Any], path: str) -> None:
    (problem,) = errors_of(raw)
    assert str(problem).split("\n")[0] == f"mlbatch:{path}"
    assert "hunter2" not in str(problem)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"http://robot:{PASSWORD}@mirror.example.org/x", "http://robot:[secret]@mirror.example.org/x"),
        (f"https://robot:{PASSWORD}@mirror.example.org/x", "https://robot:[secret]@mirror.example.org/x"),
        (f"https://robot:ab/{PASSWORD}@mirror.example.org/x", "https://robot:[secret]@mirror.example.org/x"),
        (f"https://robot:ab@{PASSWORD}@mirror.example.org/x", "https://robot:[secret]@mirror.example.org/x"),
        (f"https://robot:ab {PASSWORD}@mirror.example.org/x", "https://robot:[secret]@mirror.example.org/x"),
        (f"https://{PASSWORD}@mirror.example.org/x", "https://[secret]@mirror.example.org/x"),
        (f"http://mirror.example.org/x?token={PASSWORD}", "http://mirror.example.org/x?token=[secret]"),
        (f"https://mirror.example.org/x?a={PASSWORD}&b=c", "https://mirror.example.org/x?a=[secret]&b=[secret]"),
        (f"https://mirror.example.org/x#{PASSWORD}", "https://mirror.example.org/x#[secret]"),
        (f"robot:ab/{PASSWORD}@mirror.example.org/x", "robot:[secret]@mirror.example.org/x"),
        (f"robot:ab {PASSWORD}@mirror.example.org/x", "robot:[secret]@mirror.example.org/x"),
    ],
)
def test_an_address_with_a_password_is_refused_and_shown_without_it(
    address: str, shown: str, kubeconfig: Path, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match="1 problem") as error:
        interpret({**valid(), "mirror": {"artifacts": address}}, kubeconfig, tmp_path)
    assert PASSWORD not in str(error.value)
    assert f'mlbatch:mirror.artifacts = "{shown}"' in str(error.value)


@pytest.mark.parametrize("user", [f"robot:{PASSWORD}", f"robot:ab@{PASSWORD}", f"robot:ab/{PASSWORD}"])
def test_a_password_in_a_registrys_name_is_told_and_not_shown(user: str, kubeconfig: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="1 problem") as error:
        interpret({**valid(), "mirror": {"images": f"{user}@registry.example.org"}}, kubeconfig, tmp_path)
    assert PASSWORD not in str(error.value)
    assert 'mlbatch:mirror.images = "robot:[secret]@registry.example.org"' in str(error.value)
    assert "an image's name cannot have a password" in str(error.value)


def test_a_folder_that_no_system_can_have_is_one_problem(kubeconfig: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="has 1 problem") as error:
        interpret({**valid(), "mirror": {"artifacts": "a\0b"}}, kubeconfig, tmp_path)
    assert "there is no folder" in str(error.value)


def test_a_section_with_nothing_behind_it_is_one_that_is_not_there() -> None:
    """`mlbatch:kubernetes:` reaches the program as an empty text."""
    for target in TARGETS.values():
        given = valid() if target.name == "simulated" else aks() if target.name == "aks" else {"target": target.name}
        for section in set(target.sections) - {"azure", *given}:
            assert said({**given, section: ""}) == said(given)


def test_a_date_that_yaml_makes_of_a_tag_is_told_with_its_way_out() -> None:
    midnight, noon, elsewhere = engine_yaml.load("[2024-01-02, 2024-01-02T12:00:00Z, 2024-01-02T12:00:00+01:00]")
    for raw in (
        aks(workloads={"nccl": {"enabled": True, "tag": midnight, "submission": {"gang": "none"}}}),
        aks({"storage": {"account": "abc", "container": midnight}}),
        aks({"access": {"login": midnight}}),
        changed(("nodes", "cpu"), midnight),
        changed(("teams", 0, "name"), midnight),
    ):
        hints = {problem.hint for problem in errors_of(raw)}
        assert 'YAML reads it as a date: write it in quotes, as "2024-01-02"' in hints
    for text in (noon, elsewhere):
        (problem,) = errors_of(aks({"storage": {"account": "abc", "container": text}}))
        assert problem.hint == "YAML reads it as a date: write it in quotes, as it was written"


def test_a_text_that_only_looks_like_a_date_is_none() -> None:
    (problem,) = errors_of(aks({"storage": {"account": "abc", "container": "2024-01-02 00:00"}}))
    assert "YAML" not in problem.hint
    assert rules.warnings(partial_of(aks({"tags": {"since": "2024-01-02", "at": "2024-01-02 00:00:00"}}))) == []


def test_a_date_that_is_allowed_is_warned_of() -> None:
    (date,) = engine_yaml.load("[2024-01-02]")
    raw = aks({"tags": {"since": date}}, health={"nodeCheck": {"enabled": True, "trigger": date}})
    hint = 'is "2024-01-02 00:00:00 +0000 UTC"; YAML reads it as a date: write it in quotes, as "2024-01-02"'
    found = [warning for warning in rules.warnings(partial_of(raw)) if "YAML" in warning]
    assert found == [f"mlbatch:azure.tags.since {hint}", f"mlbatch:health.nodeCheck.trigger {hint}"]


@pytest.mark.parametrize("namespace", ["mlbach", "ml-batch", "MLBatch", "mlbatch "])
def test_a_key_under_a_misspelt_project_is_refused(namespace: str, kubeconfig: Path) -> None:
    set_all_config({"mlbatch:target": "simulated", f"{namespace}:teams": "[]"}, [])
    raw = inputs.configuration()
    with pytest.raises(Exception, match="1 problem") as error:
        interpret(dict(raw), kubeconfig, kubeconfig.parent)
    assert f"the configuration has {namespace}:teams, which is ignored" in str(error.value)
    assert f"rename {namespace}:teams to mlbatch:teams" in str(error.value)


def test_a_secret_without_a_value_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    configure({"target": "existing", "jupyterToken": " "}, secrets=["jupyterToken"])
    with pytest.raises(pulumi.RunError) as error:
        inputs.load()
    assert "mlbatch:jupyterToken\n    wrong:   this secret is empty" in str(error.value)
