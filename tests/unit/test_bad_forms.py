"""What the forms of values show: nothing that might be secret, no words but ours, one problem for one mistake."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from pulumi.runtime.config import set_all_config

from stacks.config import engine_yaml, inputs
from stacks.config.errors import key
from stacks.targets.registry import TARGETS
from stacks.validation import rules
from tests.unit.configurations import ROOT, aks, errors_of, partial_of
from tests.unit.settings_strategies import at, paths, put
from tests.unit.test_cpouta_settings import shipped as cpouta
from tests.unit.test_existing import shipped
from tests.unit.test_inputs import configure
from tests.unit.test_settings import changed, interpret, valid

PASSWORD = "hunter2-hunter2"
NUMBER = 55556666
NCCL = {"enabled": True, "tag": "1"}
NOTHING = {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}
VOLUME = {"name": "data", "container": "data"}


@pytest.fixture(autouse=True)
def no_configuration() -> Iterator[None]:
    yield
    set_all_config({}, [])


def said(raw: dict[str, Any], *secrets: str) -> str:
    return "\n".join(str(error) for error in errors_of(raw, *secrets))


UNKNOWN_PLACES: list[dict[str, Any]] = [
    {**valid(), "dbPassword": PASSWORD},
    {**valid(), "db": {"password": PASSWORD}},
    {**valid(), "nodes": {"token": PASSWORD}},
    {**valid(), "teams": {"blue": {"key": PASSWORD}}},
    {**valid(), "teams": [[PASSWORD]]},
    {**valid(), "azure": {"clientSecret": PASSWORD}},
    {**valid(), "nodes": [PASSWORD]},
    {**valid(), "nodes": {"count": {"key": PASSWORD}}},
    {**valid(), "nodes": {"count": 3, "instanceType": {"key": PASSWORD}}},
    {**valid(), "target": {"key": PASSWORD}},
    {**valid(), "queueing": {"slack": {"cpu": {"key": PASSWORD}}}},
    aks({"storage": {"account": "abc", "accountKey": PASSWORD}}),
    aks({"storage": {"account": f"AccountName=x;AccountKey={PASSWORD};"}}),
    aks(workloads={"jupyterlab": {"Token": PASSWORD}}),
    aks(workloads={"nccl": {"image": f"robot:{PASSWORD}@registry.example.org/nccl:1"}}),
    {**valid(), "mirror": {"images": {"password": PASSWORD}}},
    {**valid(), "grafanaPasswort": NUMBER},
    aks(monitoring={"grafanaPassword": NUMBER}),
    aks(monitoring={"grafanaPassword": {"value": NUMBER}}),
    aks({"registry": {"adminUser": PASSWORD}}),
    aks({"registry": {"adminUser": NUMBER}}),
    aks({"storage": {"account": "abc", "sharedKey": PASSWORD}}),
    aks({"gpuPool": {"count": PASSWORD}}),
    aks({"adminUser": f"azureuser:{PASSWORD}"}),
    {**valid(), "azure": PASSWORD},
    {"target": "aks", "azure": PASSWORD},
    aks(monitoring=PASSWORD),
    {**valid(), "teams": PASSWORD},
    {**valid(), "target": PASSWORD},
    {**valid(), "queueing": {"slack": {"cpu": PASSWORD}}},
    aks(storage={"volumes": [{"name": "data", "container": "data", "access": PASSWORD}]}),
    aks(workloads={"jupyterlab": {"enabled": True, "scratch": PASSWORD}}),
    aks({"tags": {"a/b": "c", "dbPassword": PASSWORD}}),
    aks({"tags": {"dbPassword": NUMBER}}),
    {"target": "existing", "cluster": {"pool": {"rdma": {"perNode": 1, "variables": {"MY-TOKEN": PASSWORD}}}}},
    {"target": "existing", "cluster": {"pool": {"rdma": {"perNode": 1, "variables": {"TOKEN": NUMBER}}}}},
    {"target": "existing", "cluster": {"internalLoadBalancer": {"my token": PASSWORD}}},
    {"target": "existing", "cluster": {"pool": {"nodeSelector": {"my token": PASSWORD}}}},
    {"target": "existing", "cluster": {"pool": {"nodeSelector": {"token": f"{PASSWORD}!"}}}},
    {"target": "existing", "cluster": {"registry": f"robot:@{PASSWORD}@registry.example.org/x"}},
    *(
        aks(workloads={"nccl": {"image": f"{address}/nccl:1"}})
        for address in (
            f"robot:ab/{PASSWORD}@registry.example.org",
            f"robot:ab@{PASSWORD}@registry.example.org",
            f"robot:ab {PASSWORD}@registry.example.org",
            f'robot:ab"{PASSWORD}@registry.example.org',
            f"https://{PASSWORD}@registry.example.org",
            f"https://registry.example.org?token={PASSWORD}#x",
            f"https://registry.example.org#{PASSWORD}",
        )
    ),
]


@pytest.mark.parametrize("raw", UNKNOWN_PLACES, ids=lambda raw: str(sorted(raw)))
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
    ("raw", "value"),
    [
        (aks({"access": {"localAccounts": "ture"}}), '"ture"'),
        (aks({"access": {"localAccounts": "Yes"}}), '"Yes"'),
        (aks({"gpuPool": {"count": "8x"}}), '"8x"'),
        (aks({"access": {"login": "azurecli2"}}), '"azurecli2"'),
        (aks(scheduling={"packing": "off"}), '"off"'),
        (aks(workloads={"cpu": "8 GB"}), '"8 GB"'),
        (aks(workloads={"namespace": 5}), "5"),
    ],
)
def test_a_slip_is_shown(raw: dict[str, Any], value: str) -> None:
    (problem,) = errors_of(raw)
    assert str(problem).split("\n")[0] == f"{key(problem.path)} = {value}"


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
    assert "an image's name has no password" in str(error.value)


@pytest.mark.parametrize(
    ("artifacts", "wrong"),
    [
        ("", "this names no folder"),
        ("~nobody-of-this-name/x", "this cannot be a folder"),
        ("/" + "a" * 5000, "this cannot be a folder: File name too long"),
        ("a\0b", "there is no folder"),
        ("https://", "this is no address"),
        ("https://[::1", "this is no address"),
        ("https://a b/c", "this is no address"),
        ("https://mirror.example.org:99999/", "this is no address"),
        ("https://robot@mirror.example.org/x", "a user or a password stands in the address"),
        ("https://mirror.example.org/x?version=1", "the names of files are put behind it"),
        ("https://mirror.example.org/x#files", "the names of files are put behind it"),
    ],
)
def test_a_mirror_that_cannot_be_one_is_one_problem(
    artifacts: str, wrong: str, kubeconfig: Path, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match="has 1 problem") as error:
        interpret({**valid(), "mirror": {"artifacts": artifacts}}, kubeconfig, tmp_path)
    assert wrong in str(error.value)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        (aks({"storage": {"acount": "abc"}}), ["azure.storage.acount"]),  # which is why account is missing
        (changed(("teams", 0, "quota"), {"cpu": 1, "memory": "8Gi", "gpu": 8}), ["teams[0].quota.gpu"]),
        (changed(("teams", 1), valid()["teams"][0]), ["teams[1].name"]),
        (aks(storage={"volumes": [VOLUME, VOLUME]}), ["storage.volumes[1].name"]),
        (
            aks({"zzz": 1}, workloads={"nccl": {**NCCL, "submission": {"gang": "none"}}}),
            ["azure.zzz"],
        ),
        (
            {**shipped(), "cluster": {"zzz": 1}, "workloads": {"nccl": {**NCCL, "submission": {"gang": "none"}}}},
            ["cluster.zzz"],
        ),
        (aks({"network": {"podCidr": "0.0.0.0/0"}}), ["azure.network.podCidr"]),
        (aks({"network": {"podCidr": "10.0.0.0/8"}}), ["azure.network.podCidr"]),
        (aks(teams=[{"name": "workloads", "users": [], "share": 1}]), ["teams[0].name"]),
        (
            aks(teams=[{"name": "ml", "users": [], "share": 1}], workloads={"namespace": "ml"}),
            ["workloads.namespace"],
        ),
        (
            aks(tenancy={"enabled": False}, workloads={"nccl": NCCL}),
            ["workloads.nccl.submission.gang"],
        ),
        ({**valid(), "teams": "blue"}, ["teams"]),  # nobody knows which teams there are
        ({**valid(), "teams": [None, *valid()["teams"][1:]]}, ["teams[0]"]),
        (changed(("samples", "gang", "gpusPerPod"), 9), ["samples.gang.gpusPerPod"]),
    ],
    ids=str,
)
def test_one_mistake_is_one_problem(raw: dict[str, Any], keys: list[str]) -> None:
    assert [str(error).split("\n")[0].split(" = ")[0] for error in errors_of(raw)] == [f"mlbatch:{key}" for key in keys]


def test_a_section_with_nothing_behind_it_is_one_that_is_not_there() -> None:
    """`mlbatch:kubernetes:` reaches the program as an empty text."""
    for target in TARGETS.values():
        given = valid() if target.name == "simulated" else aks() if target.name == "aks" else {"target": target.name}
        for section in set(target.sections) - {"azure", *given}:
            assert said({**given, section: ""}) == said(given)


def test_a_required_section_with_nothing_behind_it_is_missing() -> None:
    (problem,) = errors_of({"target": "aks", "azure": ""})
    assert str(problem).startswith("mlbatch:azure\n    wrong:   this key is required and is not there")


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
        assert 'YAML makes a date of it: write it in quotes, as "2024-01-02"' in hints
    for text in (noon, elsewhere):
        (problem,) = errors_of(aks({"storage": {"account": "abc", "container": text}}))
        assert problem.hint == "YAML makes a date of it: write it in quotes, as it was written"


def test_a_text_that_only_looks_like_a_date_is_none() -> None:
    (problem,) = errors_of(aks({"storage": {"account": "abc", "container": "2024-01-02 00:00"}}))
    assert "YAML" not in problem.hint
    assert rules.warnings(partial_of(aks({"tags": {"since": "2024-01-02", "at": "2024-01-02 00:00:00"}}))) == []


def test_a_date_that_is_allowed_is_warned_of() -> None:
    (date,) = engine_yaml.load("[2024-01-02]")
    raw = aks({"tags": {"since": date}}, health={"nodeCheck": {"enabled": True, "trigger": date}})
    hint = 'is "2024-01-02 00:00:00 +0000 UTC"; YAML makes a date of it: write it in quotes, as "2024-01-02"'
    found = [warning for warning in rules.warnings(partial_of(raw)) if "YAML" in warning]
    assert found == [f"mlbatch:azure.tags.since {hint}", f"mlbatch:health.nodeCheck.trigger {hint}"]


@pytest.mark.parametrize(("trigger", "length"), [("", 0), ("x" * 64, 64)])
def test_the_length_of_a_text_is_told_in_our_words(trigger: str, length: int) -> None:
    (problem,) = errors_of(aks(health={"nodeCheck": {"trigger": trigger}}))
    assert problem.message == f"this text has {length} characters"
    assert problem.expected == "1 to 63 characters"


def test_a_null_is_nothing_and_no_text() -> None:
    for raw, hint in (
        (changed(("teams", 0, "users"), [None]), "write a value behind it"),
        ({"target": "simulated", "teams": [{"name": None, "users": [], "share": 1}]}, "write a value behind it"),
        ({"target": "simulated", "queueing": {"slack": {**NOTHING, "cpu": None}}}, "write a value behind it"),
        (aks({"network": {"policy": None}}), "write a value behind it, or remove the key for its default"),
        (aks({"upgrades": {"nodeOs": None}}), "write a value behind it, or remove the key for its default"),
        (aks({"network": {"podCidr": None}}), "write a value behind it, or remove the key for its default"),
        (aks({"gpuPool": {"count": None}}), "write a value behind it, or remove the key for its default"),
    ):
        (problem,) = errors_of(raw)
        assert (problem.message, problem.hint) == ("nothing stands behind this key", hint)


def test_what_a_fix_says_is_allowed_when_it_is_done() -> None:
    taken = aks(teams=[{"name": "workloads", "users": [], "share": 1}])
    (problem,) = errors_of(taken)
    assert problem.hint == "give the team another name, or name another namespace in mlbatch:workloads.namespace"
    assert errors_of({**taken, "workloads": {"namespace": "jobs"}}) == []
    without = aks(tenancy={"enabled": False}, workloads={"nccl": NCCL})
    (problem,) = errors_of(without)
    assert problem.hint == "set mlbatch:tenancy.enabled to true, or take another gang"
    (problem,) = errors_of(changed(("teams", 0, "quota"), {"cpu": 1, "memory": "8Gi", "gpu": 8}))
    assert problem.hint == "did you mean 'nvidia.com/gpu'?"


@pytest.mark.parametrize("nothing", ["", " ", False])
@pytest.mark.parametrize(
    ("section", "key", "word"),
    [("network", "policy", "none"), ("upgrades", "kubernetes", "none"), ("upgrades", "nodeOs", "None")],
)
def test_who_writes_an_empty_text_where_there_is_a_word_for_it_is_told_the_word(
    section: str, key: str, word: str, nothing: object
) -> None:
    (problem,) = errors_of(aks({section: {key: nothing}}))
    assert problem.path == ("azure", section, key)
    assert problem.hint == f"did you mean {word}?"


def test_a_number_that_is_missing_is_asked_for_with_its_bounds() -> None:
    (problem,) = errors_of(aks({"gpuPool": {"autoscale": {"min": 1}}}))
    assert problem.expected == "a whole number from 1 to 1000"


def test_a_value_that_nobody_wrote_is_said_to_be_a_default() -> None:
    raw = aks({"location": "northcentralus", "gpuPool": {"anyRegion": True}})
    (problem,) = errors_of(raw)
    assert str(problem).startswith('mlbatch:azure.systemPool.zones = ["1", "2", "3"] (the default)\n')


def test_a_value_is_shown_as_it_was_written() -> None:
    raw = changed(("teams", 0, "lendingLimit"), {"memory": "3000.0G"})
    (problem,) = errors_of(raw)
    assert str(problem).startswith('mlbatch:teams[0].lendingLimit.memory = "3000.0G"\n')


@pytest.mark.parametrize("namespace", ["mlbach", "ml-batch", "MLBatch", "mlbatch "])
def test_a_key_under_a_misspelt_project_is_refused(namespace: str, kubeconfig: Path) -> None:
    set_all_config({"mlbatch:target": "simulated", f"{namespace}:teams": "[]"}, [])
    raw = inputs.configuration()
    with pytest.raises(Exception, match="1 problem") as error:
        interpret(dict(raw), kubeconfig, kubeconfig.parent)
    assert f"it stands in the configuration as {namespace}:teams, which nobody reads" in str(error.value)
    assert f"rename {namespace}:teams to mlbatch:teams" in str(error.value)


def test_other_projects_and_providers_keep_their_keys() -> None:
    set_all_config({"mlbatch:target": "aks", "azure-native:location": "x", "mlbatchother:teams": "y"}, [])
    assert inputs.configuration() == {"target": "aks"}


def test_a_secret_without_a_value_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    configure({"target": "existing", "jupyterToken": " "}, secrets=["jupyterToken"])
    with pytest.raises(pulumi.RunError) as error:
        inputs.load()
    assert "mlbatch:jupyterToken\n    wrong:   this secret is empty" in str(error.value)


def test_a_secret_that_the_target_has_no_use_for_is_refused() -> None:
    (problem,) = errors_of(valid(), "blobSasToken")
    assert problem.message == "target simulated has no use for this secret"


def test_a_misspelt_secret_is_told_the_right_one() -> None:
    (problem,) = errors_of({**valid(), "jupyterTokn": PASSWORD})
    assert problem.hint == "did you mean 'jupyterToken'?"
