"""The running stack's configuration, as the engine hands it over."""

import json
from collections.abc import Iterator
from pathlib import Path

import pulumi
import pytest
from pulumi.runtime.config import set_all_config

from stacks.config import inputs, secrets
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.kubeconfig import Kubeconfig
from stacks.targets.registry import SECRET_KEYS, TARGETS
from stacks.validation import rules
from tests.unit.configurations import aks
from tests.unit.test_settings import valid


@pytest.fixture(autouse=True)
def no_configuration() -> Iterator[None]:
    yield
    set_all_config({}, [])


def configure(raw: dict[str, object], secrets: list[str] | None = None) -> None:
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in raw.items()}
    set_all_config(
        {f"mlbatch:{name}": text for name, text in texts.items()}, [f"mlbatch:{name}" for name in secrets or []]
    )


def test_lists_and_mappings_come_back_as_they_were_written() -> None:
    configure(valid())
    assert inputs.configuration() == valid()


def test_keys_of_other_projects_are_none_of_ours() -> None:
    set_all_config({"mlbatch:target": "simulated", "kubernetes:context": "x", "mlbatchother:a": "b"})
    assert inputs.configuration() == {"target": "simulated"}


def test_keys_that_nobody_declared_are_seen() -> None:
    configure({"target": "simulated", "taget": "x"})
    assert inputs.configuration()["taget"] == "x"


def test_text_that_only_looks_like_json_stays_text() -> None:
    configure({"target": "{simulated"})
    assert inputs.configuration() == {"target": "{simulated"}


def test_a_secret_never_reaches_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    configure({"target": "simulated", "token": "correct-horse-battery"}, secrets=["token"])
    with pytest.raises(pulumi.RunError) as error:
        inputs.load()
    assert "correct-horse-battery" not in str(error.value)
    assert "mlbatch:token\n    wrong:   unknown key 'token'" in str(error.value)


def test_mistakes_end_the_program_with_the_message_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    configure({"target": "moon"})
    with pytest.raises(pulumi.RunError, match=r"has 2 problems\. Nothing was created or changed") as error:
        inputs.load()
    assert error.value.__suppress_context__, "a person should see the message, not how the program came to it"


def test_the_cluster_is_asked_before_anything_else_happens(kubeconfig: Path) -> None:
    asked: list[str] = []

    def ask(config: Kubeconfig, nodes: object) -> ClusterFacts:
        asked.append(config.server)
        return ClusterFacts(identifier="lab", version="1.34")

    stack = inputs.interpret(
        {"target": "simulated"}, base=kubeconfig.parent, environment={"KUBECONFIG": str(kubeconfig)}, ask=ask
    )
    assert asked == ["https://127.0.0.1:6443"]
    assert stack.require_cluster().kubeconfig.cluster == "lab-cluster"


def problems_of(raw: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encrypted: list[str]) -> str:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    configure(raw, secrets=encrypted)
    with pytest.raises(pulumi.RunError) as error:
        inputs.load()
    return str(error.value)


@pytest.mark.parametrize("name", SECRET_KEYS)
def test_a_secret_in_plain_text_is_refused_and_not_shown(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for target in TARGETS.values():
        for value in ("correct-horse-battery", "replace-me-hunter2", "[secret]", "[empty secret]"):
            said = problems_of({"target": target.name, name: value}, tmp_path, monkeypatch, [])
            assert f"mlbatch:{name}\n    wrong:   this secret is in plain text" in said
            command = "set --secret" if name in secrets.of_target(target) else "rm"
            assert f"pulumi config {command} mlbatch:{name}" in said
            assert value not in said


@pytest.mark.parametrize("section", ["mirror", "samples", "teams"])
@pytest.mark.parametrize("text", ["[secret]", "[empty secret]"])
def test_a_text_that_stands_for_a_secret_is_none(
    section: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = problems_of({"target": "simulated", section: text}, tmp_path, monkeypatch, [])
    kind = "list" if section == "teams" else "mapping"
    assert f"mlbatch:{section}\n    wrong:   expected a {kind}, found text" in said


@pytest.mark.parametrize("name", SECRET_KEYS)
def test_a_secret_that_is_one_is_no_mistake(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = "aks" if name == secrets.BLOB_SAS_TOKEN else "simulated"
    raw: dict[str, object] = {"target": target, name: "correct-horse-battery"}
    said = problems_of(raw, tmp_path, monkeypatch, [name])
    assert f"mlbatch:{name}\n    wrong:   this secret is in plain text" not in said


@pytest.mark.parametrize("section", ["mirror", "samples", "teams"])
def test_a_secret_inside_of_a_section_is_one_mistake_and_told_with_its_way_out(
    section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = {"gang": {"team": "blue", "user": "alice", "pods": 1, "gpusPerPod": 1}}
    raw: dict[str, object] = {"target": "simulated", "samples": sample, section: {"images": "s3cr3t"}}
    if section != "teams":
        raw["teams"] = [{"name": "blue", "users": ["alice"], "share": 1}]
    said = problems_of(raw, tmp_path, monkeypatch, [section])
    assert "has 2 problems" in said, "the other one is that there is no cluster"
    assert f"mlbatch:{section}\n    wrong:   a value in this section is encrypted" in said
    assert "s3cr3t" not in said


def test_a_target_that_makes_its_cluster_names_none() -> None:
    made = inputs.interpret(aks(), base=Path("/nowhere"), environment={})
    with pytest.raises(LookupError, match=r"^target aks makes its own cluster$"):
        made.require_cluster()


def test_each_target_has_a_folder_and_its_rules_are_checked() -> None:
    assert list(TARGETS) == ["simulated", "aks", "existing", "openshift", "cpouta"]
    folder = Path(rules.__file__).parents[1] / "targets"
    assert {file.parent.name for file in folder.glob("*/deploy.py")} == set(TARGETS)
    assert {file.parent.name for file in folder.glob("*/rules.py")} == set(rules.OF_TARGETS)
